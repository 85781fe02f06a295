// The newer kind of Shopify's webhooks, whose header names have no `X-`.

import { event, signed, verify } from "./shopify.mjs";

export { event, verify };

export const sign = (secret, _url, body) => signed("", secret, body);
