import { load } from "./sdk.mjs";

const twilio = load("twilio");

export const id = "9f3a1c52-7b0e-4c1d-8f7e-2d2c8a6b1e42";
const type = "received";

export const event = {
  id,
  type,
  contentType: "application/x-www-form-urlencoded",
  body: new URLSearchParams({
    AccountSid: "AC00000000000000000000000000004665",
    MessageSid: "SM00000000000000000000000000000042",
    SmsStatus: type,
    From: "+15550100001",
    Body: "Zoë & 1 + 1",
  }).toString(),
};

const form = (body) => Object.fromEntries(new URLSearchParams(body.toString()));

export const sign = (secret, url, body) => ({
  "i-twilio-idempotency-token": id,
  "x-twilio-signature": twilio.getExpectedTwilioSignature(secret, url, form(body)),
});

export const verify = (secret, { url, headers, body }) => {
  const signature = headers["x-twilio-signature"];
  const algorithm = twilio.getSignatureAlgorithm(headers["x-twilio-webhooks-signature-settings"]);
  return url.includes("bodySHA256=")
    ? twilio.validateRequestWithBody(secret, signature, url, body.toString(), algorithm)
    : twilio.validateRequest(secret, signature, url, form(body), algorithm);
};
