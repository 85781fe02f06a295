// Sends one event three ways and prints what was answered, as JSON.

import { createRequire } from "node:module";
import { join } from "node:path";

/// Loads a package from the folder that `cargo xtask setup` filled.
export const load = createRequire(join(process.env.HOOKSTEAD_SENDERS, "package.json"));

/// `sign(body)` gives the headers with which the SDK would send this body.
export async function send(url, event, sign) {
  const body = JSON.stringify(event.body);
  const headers = { "content-type": "application/json", ...sign(body) };
  const post = async (bytes) => {
    const response = await fetch(url, { method: "POST", headers, body: bytes });
    await response.arrayBuffer();
    return response.status;
  };

  const first = await post(body);
  const again = await post(body);
  const flipped = [];
  for (let position = 0; position < Buffer.byteLength(body); position++) {
    const bytes = Buffer.from(body);
    bytes[position] ^= 1;
    flipped.push(await post(bytes));
  }
  console.log(JSON.stringify({ id: event.id, type: event.type, body, first, again, flipped }));
}
