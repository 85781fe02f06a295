// Twilio with a JSON body, whose digest stands in the address that is signed.

import { load } from "./sdk.mjs";
import { id, verify } from "./twilio.mjs";

const twilio = load("twilio");

export { verify };

export const event = {
  id,
  type: null,
  contentType: "application/json",
  body: JSON.stringify({ conversation: "CH42", name: "Zoë" }),
};

export const sign = (secret, registered, body) => {
  const url = `${registered}?bodySHA256=${twilio.getExpectedBodyHash(body)}`;
  return {
    url,
    "i-twilio-idempotency-token": id,
    "x-twilio-signature": twilio.getExpectedTwilioSignature(secret, url, {}),
  };
};
