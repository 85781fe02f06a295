import { load } from "./sdk.mjs";

load("@shopify/shopify-api/adapters/node");
const { shopifyApi } = load("@shopify/shopify-api");
const { createSHA256HMAC } = load("@shopify/shopify-api/runtime");

export const event = {
  id: "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
  type: "orders/create",
  contentType: "application/json",
  body: JSON.stringify({ name: "#1042", customer: "Zoë" }),
};

/// The headers of a webhook, all names after this start.
export const signed = async (start, secret, body) => ({
  [`${start}shopify-webhook-id`]: event.id,
  [`${start}shopify-event-id`]: "98880550-7158-44d4-b7cd-2c97c8a091b5",
  [`${start}shopify-topic`]: event.type,
  [`${start}shopify-shop-domain`]: "example.myshopify.com",
  [`${start}shopify-api-version`]: "2026-10",
  [`${start}shopify-hmac-sha256`]: await createSHA256HMAC(secret, body),
});

export const sign = (secret, _url, body) => signed("x-", secret, body);

export const verify = async (secret, { headers, body }) => {
  const apiVersion = "2026-10";
  const logger = { log: () => {} };
  const { webhooks } = shopifyApi({
    apiKey: "of no app",
    apiSecretKey: secret,
    apiVersion,
    hostName: "localhost",
    isEmbeddedApp: true,
    logger,
  });
  const told = await webhooks.validate({ rawBody: body.toString(), rawRequest: { headers, url: "/" } });
  return told.valid;
};
