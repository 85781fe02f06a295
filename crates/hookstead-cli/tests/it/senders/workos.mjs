import { load } from "./sdk.mjs";

const { WorkOS } = load("@workos-inc/node");
const { webhooks } = new WorkOS("sk_test_of_no_account");

const id = "event_1SendersTest";
const type = "user.created";

export const event = {
  id,
  type,
  contentType: "application/json",
  body: JSON.stringify({ id, event: type, data: { id: "user_1", first_name: "Zoe" } }),
};

export const sign = async (secret, _url, body) => {
  const timestamp = Date.now();
  const signature = await webhooks.computeSignature(timestamp, JSON.parse(body), secret);
  return { "workos-signature": `t=${timestamp}, v1=${signature}` };
};

export const verify = (secret, { headers, body }) =>
  webhooks.verifyHeader({ payload: JSON.parse(body), sigHeader: headers["workos-signature"], secret });
