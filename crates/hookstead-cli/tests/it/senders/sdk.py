"""One SDK as a sender and as a receiver, as `sdk.mjs` is: python3 sdk.py NAME VERB ...

NAME.py has `EVENT` (id, type, contentType, body), `sign(secret, body)`, which gives headers, and
`verify(secret, headers, body)`, which raises or gives false if the SDK refuses.
"""

import importlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

TIMEOUT_S = 40


def sign(sdk, secret, url):
    event = dict(sdk.EVENT)
    headers = {"content-type": event.pop("contentType"), **sdk.sign(secret, event["body"])}
    return {**event, "url": url, "headers": headers}


def send(sdk, secret, signed_url, to):
    signed = sign(sdk, secret, signed_url)
    body = signed["body"].encode()
    first, again = (post(to, signed["headers"], body) for _ in range(2))
    flips = (body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :] for at in range(len(body)))
    flipped = [post(to, signed["headers"], flip) for flip in flips]
    return {**signed, "first": first, "again": again, "flipped": flipped}


def post(url, headers, body):
    try:
        with urlopen(Request(url, body, headers), timeout=TIMEOUT_S) as response:
            return response.status
    except HTTPError as refusal:
        with refusal:
            return refusal.code


def receive(sdk, secret):
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200 if accepts(sdk, secret, dict(self.headers), body) else 401)
            self.end_headers()

        def log_message(self, *_):
            """Says nothing: only failures are worth reading."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def accepts(sdk, secret, headers, body):
    try:
        return sdk.verify(secret, headers, body) is not False
    except Exception:
        return False


def main():
    name, verb, *rest = sys.argv[1:]
    sys.path.append(os.path.join(os.environ["HOOKSTEAD_SENDERS"], "python"))
    sdk = importlib.import_module(name)
    print(json.dumps({"sign": sign, "send": send, "receive": receive}[verb](sdk, *rest)), flush=True)
    if verb == "receive":
        # Whoever started it holds its stdin open; when that ends, so does this.
        sys.stdin.read()


main()
