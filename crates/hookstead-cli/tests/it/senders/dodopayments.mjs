import { load } from "./sdk.mjs";

const { DodoPayments } = load("dodopayments");
const { webhooks } = new DodoPayments({ bearerToken: "of-no-account" });

export const verify = (key, { headers, body }) => webhooks.unwrap(body.toString(), { headers, key });
