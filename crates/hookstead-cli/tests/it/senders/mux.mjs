import { load } from "./sdk.mjs";

const { Mux } = load("@mux/mux-node");
const { webhooks } = new Mux({ tokenId: "of-no-account", tokenSecret: "of-no-account" });

export const verify = (secret, { headers, body }) => webhooks.verifySignature(body.toString(), headers, secret);
