import { load } from "./sdk.mjs";

const { Webhook } = load("svix");

const id = "msg_2SendersTest";
const type = "user.created";

export const event = {
  id,
  type,
  contentType: "application/json",
  body: JSON.stringify({ type, data: { id: "usr_1", name: "Zoë" } }),
};

export const sign = (secret, _url, body) => {
  const now = new Date();
  return {
    "svix-id": id,
    "svix-timestamp": String(Math.floor(now.getTime() / 1000)),
    "svix-signature": new Webhook(secret).sign(id, now, body),
  };
};

export const verify = (secret, { headers, body }) => new Webhook(secret).verify(body, headers);
