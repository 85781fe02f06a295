import { load } from "./sdk.mjs";

const { validateSignature } = load("@line/bot-sdk");

export const verify = (secret, { headers, body }) => validateSignature(body, secret, headers["x-line-signature"]);
