import { load } from "./sdk.mjs";

const { Lithic } = load("lithic");
const { webhooks } = new Lithic({ apiKey: "of-no-account" });

export const verify = (secret, { headers, body }) => webhooks.verifySignature(body.toString(), headers, secret);
