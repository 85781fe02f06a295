import { load } from "./sdk.mjs";

const { Paddle } = load("@paddle/paddle-node-sdk");
const { webhooks } = new Paddle("key_of_no_account");

export const verify = (secret, { headers, body }) =>
  webhooks.isSignatureValid(body.toString(), secret, headers["paddle-signature"]);
