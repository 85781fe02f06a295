// An event as Stripe's own SDK signs it: node stripe.mjs URL SECRET

import { load, send } from "./send.mjs";

const Stripe = load("stripe");
const [url, secret] = process.argv.slice(2);
const stripe = new Stripe("sk_test_of_no_account");

const id = "evt_1SendersTest";
const body = {
  id,
  object: "event",
  api_version: "2026-01-28.clover",
  created: Math.floor(Date.now() / 1000),
  data: { object: { id: "in_1", object: "invoice", amount_paid: 1999, currency: "eur", customer_name: "Zoë" } },
  livemode: false,
  pending_webhooks: 1,
  request: { id: null, idempotency_key: null },
  type: "invoice.paid",
};

await send(url, { id, type: body.type, body }, (payload) => ({
  "stripe-signature": stripe.webhooks.generateTestHeaderString({ payload, secret }),
}));
