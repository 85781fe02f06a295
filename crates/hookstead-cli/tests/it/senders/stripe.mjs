import { load } from "./sdk.mjs";

const Stripe = load("stripe");
const { webhooks } = new Stripe("sk_test_of_no_account");

const id = "evt_1SendersTest";
const type = "invoice.paid";
const invoice = { id: "in_1", object: "invoice", amount_paid: 1999, currency: "eur", customer_name: "Zoë" };

export const event = {
  id,
  type,
  contentType: "application/json; charset=utf-8",
  body: JSON.stringify({ id, object: "event", pending_webhooks: 1, type, data: { object: invoice } }),
};

export const sign = (secret, _url, payload) => ({
  "stripe-signature": webhooks.generateTestHeaderString({ payload, secret }),
});

export const verify = (secret, { headers, body }) =>
  webhooks.constructEvent(body, headers["stripe-signature"], secret);
