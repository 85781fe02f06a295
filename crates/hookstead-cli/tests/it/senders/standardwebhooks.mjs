import { load } from "./sdk.mjs";

const { Webhook } = load("standardwebhooks");

const id = "msg_3SendersTest";
const type = "contact.created";

export const event = {
  id,
  type,
  contentType: "application/json",
  body: JSON.stringify({ type, data: { id: "con_1", name: "Zoë" } }),
};

export const sign = (secret, _url, body) => {
  const now = new Date();
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign(id, now, body),
  };
};

export const verify = (secret, { headers, body }) => new Webhook(secret).verify(body, headers);
