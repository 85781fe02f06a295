import { load } from "./sdk.mjs";

const { validateWebhookSignature } = load("razorpay");

export const verify = (secret, { headers, body }) =>
  validateWebhookSignature(body.toString(), headers["x-razorpay-signature"], secret);
