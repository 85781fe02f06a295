// Twilio with a shared key, which a header beside the signature names together with its algorithm.

import { load } from "./sdk.mjs";
import { event, sign as signJson, verify } from "./twilio_json.mjs";

const twilio = load("twilio");

export { event, verify };

export const sign = (secret, registered, body) => {
  const { url, ...headers } = signJson(secret, registered, body);
  return {
    ...headers,
    url,
    "x-twilio-webhooks-signature-settings": "key=webhooks_sharedkey_1,algorithm=HMAC_SHA256",
    "x-twilio-signature": twilio.getExpectedTwilioSignature(secret, url, {}, "HMAC_SHA256"),
  };
};
