// A message as Svix's own SDK signs it: node svix.mjs URL SECRET

import { load, send } from "./send.mjs";

const { Webhook } = load("svix");
const [url, secret] = process.argv.slice(2);
const webhook = new Webhook(secret);

const id = "msg_2SendersTest";
const body = { type: "user.created", timestamp: new Date().toISOString(), data: { id: "usr_1", name: "Zoë" } };

await send(url, { id, type: body.type, body }, (payload) => {
  const now = new Date();
  return {
    "svix-id": id,
    "svix-timestamp": String(Math.floor(now.getTime() / 1000)),
    "svix-signature": webhook.sign(id, now, payload),
  };
});
