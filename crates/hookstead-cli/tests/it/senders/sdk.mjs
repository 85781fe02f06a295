// One SDK as a sender and as a receiver: node sdk.mjs NAME VERB ...
//
//   sign SECRET SIGNED-URL         prints the request as the SDK signs it, as JSON
//   send SECRET SIGNED-URL URL     posts it, again, and with each byte changed in turn; prints the answers
//   receive SECRET                 serves HTTP and prints its port; the SDK's verifier decides: 200 or 401
//
// NAME.mjs exports `event` (id, type, content type, body), `sign(secret, url, body)`, which gives headers, and
// `verify(secret, { url, headers, body })`, which throws or gives false if the SDK refuses.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const packages = process.env.HOOKSTEAD_SENDERS;
const TIMEOUT_MS = 40_000;

/// Loads a package from the folder that `cargo xtask setup` filled.
export const load = createRequire(join(packages, "package.json"));

/// The same for a file of a package that can only be imported.
export const loadFile = (file) => import(join(packages, "node_modules", file));

const verbs = { sign, send, receive };

async function sign({ event, sign }, secret, signedUrl) {
  const { url = signedUrl, ...headers } = await sign(secret, signedUrl, event.body);
  const { contentType, ...told } = event;
  return { ...told, url, headers: { "content-type": contentType, ...headers } };
}

async function send(sdk, secret, signedUrl, to) {
  const signed = await sign(sdk, secret, signedUrl);
  const url = to + signed.url.slice(signedUrl.length);
  const first = await post(url, signed.headers, signed.body);
  const again = await post(url, signed.headers, signed.body);
  const flipped = [];
  for (let position = 0; position < Buffer.byteLength(signed.body); position++) {
    const bytes = Buffer.from(signed.body);
    bytes[position] ^= 1;
    flipped.push(await post(url, signed.headers, bytes));
  }
  return { ...signed, first, again, flipped };
}

async function post(url, headers, body) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { method: "POST", headers, body, signal });
  await response.arrayBuffer();
  return response.status;
}

function receive(sdk, secret) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const url = `http://${request.headers.host}${request.url}`;
    const received = { url, headers: request.headers, body: Buffer.concat(chunks) };
    response.writeHead((await accepts(sdk, secret, received)) ? 200 : 401).end();
  });
  // Whoever started it holds its stdin open; when that ends, so does this.
  process.stdin.resume().on("end", () => process.exit());
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
}

async function accepts(sdk, secret, received) {
  try {
    return (await sdk.verify(secret, received)) !== false;
  } catch {
    return false;
  }
}

// The modules of the SDKs import this one, so they can only be loaded once it is complete.
const [name, verb, ...rest] = process.argv.slice(2);
import(`./${name}.mjs`).then(async (sdk) => console.log(JSON.stringify(await verbs[verb](sdk, ...rest))));
