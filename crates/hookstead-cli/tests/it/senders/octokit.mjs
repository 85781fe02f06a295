import { loadFile } from "./sdk.mjs";

const methods = await loadFile("@octokit/webhooks-methods/dist-node/index.js");

export const event = {
  id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  type: "issues",
  contentType: "application/json",
  body: JSON.stringify({ action: "opened", issue: { number: 42, title: "Zoë" }, sender: { login: "ada" } }),
};

export const sign = async (secret, _url, body) => ({
  "x-github-delivery": event.id,
  "x-github-event": event.type,
  "x-github-hook-id": "292430182",
  "x-hub-signature-256": await methods.sign(secret, body),
});

export const verify = (secret, { headers, body }) =>
  methods.verify(secret, body.toString(), headers["x-hub-signature-256"]);
