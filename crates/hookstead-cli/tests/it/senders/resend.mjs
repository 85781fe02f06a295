import { load } from "./sdk.mjs";

const { Resend } = load("resend");
const { webhooks } = new Resend("re_of_no_account");

export const verify = (secret, { headers, body }) =>
  webhooks.verify({
    payload: body.toString(),
    headers: {
      id: headers["svix-id"],
      timestamp: headers["svix-timestamp"],
      signature: headers["svix-signature"],
    },
    webhookSecret: secret,
  });
