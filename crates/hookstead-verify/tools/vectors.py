#!/usr/bin/env python3
"""Makes vectors for providers that have none from an SDK: a second reading of the record language.

Python's standard library and `cryptography` sign here; nothing of the crate is used, so that a mistake in it cannot
hide. Run it from anywhere, without arguments; it writes `../vectors/<name>.json` for the names in `OWN`, and the same
bytes each time. The keys are for these tests only.
"""

import base64
import email.mime.multipart
import email.mime.nonmultipart
import email.policy
import hashlib
import hmac
import json
import pathlib
import re
import tomllib
import unicodedata
import urllib.parse
from datetime import datetime, timezone
from email.utils import format_datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

CRATE = pathlib.Path(__file__).resolve().parent.parent
NOW = 1760000000
OWN = """
ably acuity adyen airwallex alchemy anthropic attio auth0 authorize-net azure-devops azure-eventgrid box buildkite
calendly coinbase-cdp commercelayer contentful customerio datadog docusign dropbox-sign easypost ebay elevenlabs fal
figma fintoc folk freshchat highlevel huggingface incident-io jobber kinde lark line livechat mattermost messagebird
messagebird-legacy meta miro mollie mux netlify openai pandadoc paystack persona plivo razorpay recall-ai recurly
render retell ringcentral segment sinch-numbers standardwebhooks-v1a strava telegram travis-ci trello twitch typeform
vapi vercel vonage whereby workos x-twitter xero zendesk zoho-payments
""".split()

# What the records of providers with published keys do not have: an event.
EVENTS = {
    "ebay": ('{"metadata":{"topic":"MARKETPLACE_ACCOUNT_DELETION"},"notification":{"notificationId":"ntf-7","publishAttemptCount":1}}', "ntf-7", "MARKETPLACE_ACCOUNT_DELETION"),
    "fal": ('{"status":"OK","request_id":"req-7","payload":{"images":[]}}', "req-7", "OK"),
    "kinde": ("", "event_7", "user.created"),
}

ED25519 = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
P256 = ec.derive_private_key(0x4665466546654665466546654665466546654665466546654665466546654665, ec.SECP256R1())
RSA = serialization.load_pem_private_key((CRATE / "tools" / "test-rsa-key.pem").read_bytes(), None)
OTHER_ED25519 = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
OTHER_P256 = ec.derive_private_key(0x1234, ec.SECP256R1())
OTHER_RSA = serialization.load_pem_private_key((CRATE / "tools" / "test-rsa-key-2.pem").read_bytes(), None)


def conf_of(record):
    """What a source is asked for beside secrets."""
    return {key: "example.kinde.com" if key == "domain" else f"{key}_1" for key in record.get("conf", {})}


class Absent(Exception):
    """A variable of a template has no value."""


class Request:
    """What will be sent, while it is put together."""

    def __init__(self, record, name, now):
        self.record, self.name, self.now = record, name, now
        self.method = record.get("methods", ["POST"])[0]
        self.path, self.query = f"/in/{name}", []
        self.headers, self.body = [], b""
        self.fields, self.item, self.secret = {}, None, b""
        self.conf = conf_of(record)

    def target(self):
        query = "&".join(f"{k}={urllib.parse.quote(v, safe='')}" for k, v in self.query)
        return self.path + ("?" + query if query else "")

    def add(self, name, value):
        if name.lower() not in [found.lower() for found, _ in self.headers]:
            self.headers.append([name, value])

    def document(self):
        payload = self.record.get("payload")
        if payload:
            return json.loads(self.value(payload))
        return json.loads(self.body)

    def form(self):
        return urllib.parse.parse_qsl(self.body.decode(), keep_blank_values=True)

    def value(self, name):
        """The bytes of a variable."""
        url = "https://hooks.example.com" + self.path
        plain = {
            "body": lambda: self.body, "json": lambda: self.body, "form": lambda: self.body,
            "method": lambda: self.method, "path": lambda: self.path, "target": self.target, "lf": lambda: "\n",
            "url": lambda: "https://hooks.example.com" + self.target(), "url_base": lambda: url,
            "query": lambda: self.target().partition("?")[2], "secret": lambda: self.secret,
        }
        if name in plain:
            found = plain[name]()
        elif name.startswith("json:"):
            found = pointed(self.document(), name[5:])
        elif name.startswith("item:"):
            found = pointed(self.item, name[5:])
        else:
            kind, _, key = name.partition(".")
            tables = {
                "header": {k.lower(): v for k, v in self.headers}, "query": dict(self.query), "conf": self.conf,
                "sig": self.fields,
            }
            if kind == "form":
                tables["form"] = dict(self.form())
            found = tables.get(kind, {}).get(key.lower() if kind == "header" else key)
        if found is None:
            raise Absent(name)
        return found if isinstance(found, bytes) else str(found).encode()

    def fill(self, template):
        """The bytes of a template."""
        out, at = b"", 0
        while at < len(template):
            if template[at:at + 2] in ("[[", "]]", "{{", "}}"):
                out, at = out + template[at].encode(), at + 2
            elif template[at] == "{":
                end = template.index("}", at)
                name, *filters = template[at + 1:end].split("|")
                value = self.value(name)
                for word in filters:
                    value = FILTERS[word](value, self)
                out, at = out + value, end + 1
            elif template[at] == "[":
                end = template.index("]", at)
                try:
                    out += self.fill(template[at + 1:end])
                except Absent:
                    pass
                at = end + 1
            else:
                out, at = out + template[at].encode(), at + 1
        return out


def pointed(document, pointer):
    for step in pointer[1:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return {True: "true", False: "false"}.get(document, document) if isinstance(document, bool) else document


def php_escape(value, _):
    text = "".join(c if c < "\x7f" else "".join(f"\\u{u:04x}" for u in units(c)) for c in value.decode())
    return re.sub(r"(?<!\\)/", r"\\/", text).encode()


def units(character):
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i:i + 2], "big") for i in range(0, len(encoded), 2)]


def pairs(value):
    return urllib.parse.parse_qsl(value.decode(), keep_blank_values=True)


def signed_headers(value, request):
    found = {k.lower(): v for k, v in request.headers}
    return ";".join(f"{name}:{found[name]}" for name in sorted(value.decode().split(","))).encode()


FILTERS = {
    "hex": lambda v, _: v.hex().encode(), "base64": lambda v, _: base64.b64encode(v),
    "base64url": lambda v, _: base64.urlsafe_b64encode(v).rstrip(b"="), "lower": lambda v, _: v.lower(),
    "sha256": lambda v, _: hashlib.sha256(v).digest(), "php_escape": php_escape, "signed_headers": signed_headers,
    "sorted_kv_all": lambda v, _: "".join(k + x for k, x in sorted(pairs(v))).encode(),
    "sorted_amp": lambda v, _: "&".join(f"{k}={x}" for k, x in sorted(pairs(v))).encode(),
    "sorted_query": lambda v, _: "&".join(
        f"{urllib.parse.quote(k, safe='')}={urllib.parse.quote(x, safe='')}" for k, x in sorted(pairs(v))).encode(),
}


def time_text(unit, now):
    moment = datetime.fromtimestamp(now, timezone.utc)
    return {"s": str(now), "ms": str(now * 1000), "rfc3339": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "http-date": format_datetime(moment, usegmt=True)}[unit]


def shared_secret(scheme, prefix, seed):
    """A secret in the provider's form, and the bytes of its key."""
    raw = hashlib.sha256(seed.encode()).digest()
    rule = scheme.get("key", {})
    if scheme["kind"] == "basic":
        text = "hookstead:" + raw.hex()
        return text, text.encode()
    decode = rule.get("decode", "utf8")
    text = {"utf8": raw.hex(), "base64": base64.b64encode(raw).decode(), "hex": raw.hex()}[decode]
    key = {"utf8": text.encode(), "base64": raw, "hex": raw}[decode]
    strips = rule.get("strip", [])
    if prefix and not strips:
        text, key = prefix + text, (prefix + text).encode()
    elif strips:
        text = "".join(strips) + text
    if rule.get("normalize"):
        # One character of the secret is a ligature, so that the step shows.
        text = "\ufb01" + text
        key = unicodedata.normalize(rule["normalize"], text).encode()
    key += rule.get("append", "").encode()
    return text, (getattr(hashlib, rule["digest"])(key).digest() if "digest" in rule else key)


def private_keys(kind):
    return {"ed25519": (ED25519, OTHER_ED25519), "ecdsa": (P256, OTHER_P256), "rsa": (RSA, OTHER_RSA),
            "jwt": (RSA, OTHER_RSA)}[kind]


def public_text(private, decode):
    public = private.public_key()
    spki = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if decode == "pem":
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        return pem.decode()
    return {"spki-base64": base64.b64encode(spki), "raw-hex": spki[-32:].hex().encode(),
            "raw-base64": base64.b64encode(spki[-32:])}[decode].decode()


def asymmetric(scheme, private, message):
    digest = {"1": hashes.SHA1(), "6": hashes.SHA256(), "2": hashes.SHA512()}[scheme.get("alg", "6")[-1]] \
        if scheme["kind"] != "ed25519" else None
    if scheme["kind"] == "ed25519":
        return private.sign(message)
    if scheme["kind"] == "ecdsa":
        return private.sign(message, ec.ECDSA(digest, deterministic_signing=True))
    return private.sign(message, padding.PKCS1v15(), digest)


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwk(private, kid):
    numbers = private.public_key().public_numbers()
    width = lambda n: (n.bit_length() + 7) // 8
    return {"kty": "RSA", "kid": kid, "n": b64url(numbers.n.to_bytes(width(numbers.n), "big")),
            "e": b64url(numbers.e.to_bytes(3, "big"))}


def token(request, scheme, key, event_id, alter):
    claims = {name.rstrip("?"): request.fill(value if isinstance(value, str) else value[0]).decode()
              for table in ("claims", "claims_if_body") for name, value in scheme.get(table, {}).items()
              if table == "claims" or request.body}
    claims |= {"iat": request.now, "nbf": request.now, "exp": request.now + 900, "jti": event_id}
    if request.name == "kinde":
        claims |= {"event_id": event_id, "type": "user.created"}
    header = {"alg": scheme["algs"][0], "typ": "JWT"} | ({"kid": "key-1"} if "keysource" in scheme else {})
    header, claims = alter(header, claims)
    text = ".".join(b64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    if scheme["algs"][0] == "RS256":
        signature = asymmetric({"kind": "rsa"}, key, text.encode())
    else:
        signature = hmac.new(key, text.encode(), "sha256").digest()
    return f"{text}.{b64url(signature)}"


def coded(sig, signature):
    encoding = sig.get("encoding", "text")
    text = {"hex": lambda: signature.hex(), "base64": lambda: base64.b64encode(signature).decode(),
            "text": lambda: signature.decode()}[encoding]()
    return sig.get("prefix", "") + text


def located(request, scheme, text):
    """The signature as the header has it, with the fields beside it."""
    sig = scheme["sig"]
    if "wrap" in sig:
        wrapped = {"alg": "ecdsa", "kid": request.fields["kid"], "signature": text, "digest": "SHA1"}
        return base64.b64encode(json.dumps(wrapped).encode()).decode()
    if "kv" in sig:
        field = sig["field"] if isinstance(sig["field"], str) else sig["field"][0]
        items = [f"{k}{sig['kv']}{v}" for k, v in request.fields.items()] + [f"{field}{sig['kv']}{text}"]
        return sig["items"].join(items)
    if "positional" in sig:
        return sig["items"].join(list(request.fields.values()) + [text])
    return text


def put(request, scheme, text):
    at = scheme["sig"]["at"]
    at = at if isinstance(at, str) else at[0]
    kind, _, name = at.partition(".")
    if kind == "header":
        request.add(name.replace("*", "1"), text)
    elif kind == "query":
        request.query.append((name, text))
    elif at == "body":
        request.body = text.encode()
    else:
        code = urllib.parse.quote(text, safe="") if kind == "form" else text
        request.body = request.body.replace(b"@signature@", code.encode())


def base_request(name, record, variant, now, event):
    """Everything but the proof; also the event's id and type."""
    request = Request(record, name, now)
    body, event_id, event_type, content_type = event
    request.body = body
    if content_type:
        request.add("Content-Type", content_type)
    for key in ("id", "type"):
        template = record["event"].get(key)
        template = template if isinstance(template, str) or template is None else template[0]
        value = event_id if key == "id" else event_type
        match = re.fullmatch(r"\{(header|query)\.([^}|]+)\}", template or "")
        if match and match[1] == "header":
            request.add(match[2], value)
        elif match:
            request.query.append((match[2], value))
    for key, value in record.get("headers", {}).items():
        request.add(key, value)
    for key, value in variant.get("when", {}).get("equals", {}).items():
        if key.startswith("header."):
            request.add(key[7:], value if isinstance(value, str) else value[0])
    stamp = variant.get("timestamp")
    if stamp:
        kind, _, field = stamp["from"].strip("{}").partition(".")
        if kind == "header":
            request.add(field, time_text(stamp["unit"], now))
        elif kind == "sig":
            request.fields[field] = time_text(stamp["unit"], now)
    if variant.get("keysource", {}).get("kid") == "{sig.kid}" and variant["kind"] != "jwt":
        request.fields["kid"] = "key-1"
    if name == "fal":
        request.add("X-Fal-Webhook-User-Id", "user-1")
    return request


def sample(name, record, now, extra=""):
    """A body, its id, its type and its content type."""
    if name in EVENTS:
        body, event_id, event_type = EVENTS[name]
        return body.encode(), event_id, event_type, "application/json"
    found = record["sample"][0] if "sample" in record else {
        "event": "event", "id": "", "body": '{"type":"event","object":"@id@"}'}
    inner = found["id"] + "000000000007"
    body = found["body"].lstrip("\n").replace("@id@", inner).replace("@unix@", str(now))
    body = body.replace("@unix_ms@", str(now * 1000)).replace("@rfc3339@", time_text("rfc3339", now))
    if extra:
        at = body.rindex("}")
        body = body[:at].rstrip() + extra + body[at:]
    event_id = found.get("before", "") + inner + found.get("after", "")
    return body.encode(), event_id, found["event"], found.get("content_type", "application/json")


def prove(request, scheme, key, event_id, alter=lambda header, claims: (header, claims)):
    kind = scheme["kind"]
    if "each" in scheme:
        request.item = pointed(json.loads(request.body), scheme["each"] + "/0")
    contents = scheme.get("content", "")
    content = contents if isinstance(contents, str) else contents[0]
    if kind == "none":
        return
    if kind == "basic":
        request.add("Authorization", "Basic " + base64.b64encode(key).decode())
        return
    if kind == "jwt":
        text = scheme["sig"].get("prefix", "") + token(request, scheme, key, event_id, alter)
        put(request, scheme, text)
        return
    if kind == "token":
        put(request, scheme, coded(scheme["sig"], key))
        return
    if kind == "hmac":
        signature = hmac.new(key, request.fill(content), scheme["hash"]).digest()
    elif kind == "hash":
        request.secret = key
        signature = hashlib.new(scheme["hash"], request.fill(content)).digest()
    else:
        signature = asymmetric(scheme, key, request.fill(content))
    put(request, scheme, located(request, scheme, coded(scheme["sig"], signature)))


def keys_of(name, record, scheme):
    """The configuration of a source, its key, and the key of somebody else."""
    conf = conf_of(record)
    config = {"url": f"https://hooks.example.com/in/{name}"} | ({"vars": conf} if conf else {})
    prefix = record.get("secret", {}).get("prefix", "")
    if scheme["kind"] == "none":
        return config, None, None
    if "keysource" in scheme:
        key, other = private_keys(scheme["kind"])
        if scheme["keysource"]["from"] == "jwks":
            public = jwk(key, "key-1") if scheme["kind"] == "jwt" else {
                "kty": "OKP", "crv": "Ed25519", "x": b64url(bytes.fromhex(public_text(key, "raw-hex")))}
            return config | {"jwks": {"keys": [public]}}, key, other
        return config | {"keys": {"key-1": public_text(key, "pem")}}, key, other
    decode = scheme.get("key", {}).get("decode", "")
    if decode in ("pem", "spki-base64", "raw-hex", "raw-base64"):
        key, other = private_keys(scheme["kind"])
        text = public_text(key, decode)
        return config | {"secrets": [scheme["key"].get("strip", [""])[0] + text]}, key, other
    text, key = shared_secret(scheme, prefix, name)
    _, other = shared_secret(scheme, prefix, name + " other")
    return config | {"secrets": [text]}, key, other


def vectors(name, record):
    out = []

    def add(case, request, config, expect, note=""):
        entry = {"id": f"{name}/{case}", "provider": name, "kind": "verify", "now": NOW, "config": config,
                 "request": {"method": request.method, "path": request.target(), "headers": request.headers,
                             "body_b64": base64.b64encode(request.body).decode()}, "expect": expect}
        out.append(entry | ({"note": note} if note else {}))

    for number, scheme in enumerate(record["scheme"], 1):
        suffix = "" if number == 1 else f"-v{number}"
        config, key, other = keys_of(name, record, scheme)

        def made(now=NOW, with_key=key, extra="", alter=lambda header, claims: (header, claims)):
            event = sample(name, record, now, extra)
            request = base_request(name, record, scheme, now, event)
            prove(request, scheme, with_key, event[1], alter)
            return request, event

        request, event = made()
        expect = {"verdict": "valid"}
        has_type = "type" in record["event"]
        if record["event"].get("id") and name != "dropbox-sign":
            expect["event_id"] = event[1]
        expect |= {"event_type": event[2]} if has_type else {}
        add("valid-basic" + suffix, request, config, expect)
        json_body = event[3] == "application/json" and event[0].rstrip().endswith(b"}") and name not in EVENTS
        if json_body:
            add("valid-unicode" + suffix, made(extra=',\n  "note": "Zo\u00eb \u2013 \u65e5\u672c </script> \\ud83c\\udf89/"\n')[0], config, expect)
        if scheme["kind"] == "none":
            continue
        add("wrong-secret" + suffix, made(with_key=other)[0], config, {"verdict": "bad_signature"})
        bare = base_request(name, record, scheme, NOW, event)
        add("missing-signature" + suffix, bare, config, {"verdict": "missing_header", "also_ok": ["malformed", "bad_signature"]})
        contents = scheme.get("content", "")
        claims = json.dumps(scheme.get("claims", {})) + json.dumps(scheme.get("claims_if_body", {}))
        if "{body" in (contents if isinstance(contents, str) else contents[0]) + claims:
            changed = made()[0]
            changed.body = changed.body + b" "
            add("tampered-body" + suffix, changed, config, {"verdict": "bad_signature"})
        if scheme["kind"] == "jwt":
            none = made(alter=lambda header, claims: (header | {"alg": "none"}, claims))[0]
            add("alg-none" + suffix, none, config, {"verdict": "bad_signature", "also_ok": ["malformed"]})
            add("expired" + suffix, made(now=NOW - 1000)[0], config, {"verdict": "stale"})
        stamp = scheme.get("timestamp", {})
        tolerance = stamp.get("tolerance", "unbounded")
        if tolerance != "unbounded":
            edge = tolerance - 1 if stamp.get("exclusive") else tolerance
            add("valid-old-limit" + suffix, made(now=NOW - edge)[0], config, {"verdict": "valid"})
            add("stale" + suffix, made(now=NOW - edge - 1)[0], config, {"verdict": "stale"})
            future = stamp.get("future", tolerance)
            if future != "unbounded":
                add("stale-future" + suffix, made(now=NOW + future + 1)[0], config, {"verdict": "stale"})
    return out


# The escapes that HubSpot's documentation has undone before version 3 is signed.
HUBSPOT_UNDONE = ["%3A", "%2F", "%3F", "%40", "%21", "%24", "%27", "%28", "%29", "%2A", "%2C", "%3B"]


def hubspot_addresses():
    """HubSpot's version 3 over addresses with escapes, as its documentation has it and as its SDK does it."""
    body, secret, out = b'[{"eventId":7,"subscriptionType":"contact.creation"}]', "hubspot_1_Sec-ret9secretsec", []

    def undone(url):
        return re.sub("|".join(HUBSPOT_UNDONE), lambda found: urllib.parse.unquote(found[0]), url)

    def add(case, target, signed, expect):
        url = "https://hooks.example.com/in/hubspot"
        mac = hmac.new(secret.encode(), f"POST{url}{signed}".encode() + body + b"1760000000000", hashlib.sha256)
        headers = [["Content-Type", "application/json"], ["X-HubSpot-Request-Timestamp", "1760000000000"]]
        headers.append(["X-HubSpot-Signature-v3", base64.b64encode(mac.digest()).decode()])
        out.append({
            "id": f"hubspot/{case}", "provider": "hubspot", "kind": "verify", "now": NOW,
            "config": {"url": url + target, "secrets": [secret]},
            "request": {"method": "POST", "path": "/in/hubspot" + target, "headers": headers, "body_b64": base64.b64encode(body).decode()},
            "expect": expect,
        })

    valid = {"verdict": "valid", "event_id": "7", "event_type": "contact.creation"}
    all_of_them, others = "?x=" + "".join(HUBSPOT_UNDONE), "?x=a%3Ab%20c%26d%3De%25f%2Bg"
    add("valid-escapes-undone", all_of_them, undone(all_of_them), valid)
    add("valid-escapes-as-they-are", all_of_them, all_of_them, valid)
    add("valid-other-escapes-stay", others, undone(others), valid)
    add("all-escapes-undone", others, urllib.parse.unquote(others), {"verdict": "bad_signature"})
    add("valid-escaped-percent-stays", "?x=%253A", "?x=%253A", valid)
    add("undone-twice", "?x=%253A", "?x=:", {"verdict": "bad_signature"})
    return out


def xero_intent():
    """What Xero asks before it sends: an empty list of events, signed well and badly. No answer has a body."""
    body, secret = b'{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4nd0mt3xt"}', "xero_1_Sec-ret9secretsec"

    def entry(case, body, key, expect):
        mac = base64.b64encode(hmac.new(key.encode(), body, hashlib.sha256).digest()).decode()
        return {
            "id": f"xero/{case}", "kind": "verify" if "verdict" in expect else "handshake", "provider": "xero", "now": NOW,
            "config": {"url": "https://hooks.example.com/in/xero", "secrets": [secret]},
            "request": {
                "method": "POST", "path": "/in/xero",
                "headers": [["Content-Type", "application/json"], ["x-xero-signature", mac]],
                "body_b64": base64.b64encode(body).decode(),
            },
            "expect": expect,
        }

    answered, refused = {"response": {"status": 200, "body": ""}}, {"verdict": "bad_signature"}
    return [
        entry("handshake-intent-to-receive", body, secret, answered),
        entry("handshake-intent-with-space", body.replace(b"[]", b"[ \n ]"), secret, answered),
        entry("bad-intent-to-receive", body, secret[::-1], refused),
    ]


def sns_topics():
    """Genuine messages of a topic, at sources that name it, another one, or several."""
    genuine = json.loads((CRATE / "vectors" / "aws-sns.json").read_text())
    out = []
    for name in ("valid-basic", "handshake-subscribe"):
        entry = next(found for found in genuine if found["id"] == f"aws-sns/{name}")
        topic = json.loads(base64.b64decode(entry["request"]["body_b64"]))["TopicArn"]
        refused = {"kind": "verify", "expect": {"verdict": "bad_signature"}}
        for case, pinned, changes in [
            ("of-the-topic", topic, {}),
            ("of-one-of-the-topics", f"arn:aws:sns:eu-west-1:1:other, {topic}", {}),
            ("of-any-topic", " any ", {}),
            ("of-a-list-with-any", "arn:aws:sns:eu-west-1:1:other, any", refused),
            ("of-another-topic", "arn:aws:sns:eu-west-1:1:other", refused),
            ("of-a-topic-that-begins-so", topic + "s", refused),
        ]:
            config = entry["config"] | {"vars": {"topic_arn": pinned}}
            out.append(entry | changes | {"id": f"aws-sns/{name}-{case}", "config": config})
    return out


SNS_CERT_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-recut.pem"


def sns_certificate():
    """A certificate of the tests' own key; PKCS #1 signs the same bytes each time."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sns.amazonaws.com")])
    builder = x509.CertificateBuilder(name, name, RSA.public_key(), 7, datetime(2020, 1, 1), datetime(2045, 1, 1))
    return builder.sign(RSA, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def sns_recut():
    """One signed text of Amazon, shown with its line feeds read as other fields."""
    victim, attacker, out = "arn:aws:sns:eu-west-1:1:victim", "arn:aws:sns:eu-west-1:2:attacker", []
    certificate = sns_certificate()

    def signed(fields):
        names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
        return "".join(f"{name}\n{fields[name]}\n" for name in names if name in fields)

    def add(case, version, genuine, shown, expect):
        assert signed(genuine) == signed(shown), case
        digest = {"1": hashes.SHA1(), "2": hashes.SHA256()}[version]
        signature = base64.b64encode(RSA.sign(signed(genuine).encode(), padding.PKCS1v15(), digest)).decode()
        message = shown | {"SignatureVersion": version, "SigningCertURL": SNS_CERT_URL, "Signature": signature}
        out.append({
            "id": f"aws-sns/{case}-v{version}", "provider": "aws-sns", "kind": "verify", "now": NOW,
            "config": {"url": "https://hooks.example.com/in/aws-sns", "certs": {SNS_CERT_URL: certificate}, "vars": {"topic_arn": victim}},
            "request": {
                "method": "POST", "path": "/in/aws-sns", "headers": [["Content-Type", "text/plain; charset=UTF-8"]],
                "body_b64": base64.b64encode(json.dumps(message).encode()).decode(),
            },
            "expect": expect,
        })

    forged = {"MessageId": "forged-1", "Timestamp": "2025-10-09T08:53:20.000Z", "TopicArn": victim, "Type": "Notification"}
    rest = {"MessageId": "real-1", "Timestamp": "2025-10-09T08:53:20.000Z", "TopicArn": attacker, "Type": "Notification"}
    inside = "pay 1000\n" + signed(forged).removesuffix("\n")
    elsewhere = {"Message": inside} | rest
    own = elsewhere | {"TopicArn": victim}
    refused = {"verdict": "bad_signature", "also_ok": ["malformed"]}
    for version in "12":
        valid = {"verdict": "valid", "event_id": "real-1", "event_type": "Notification", "account": victim}
        add("valid-message-like-fields", version, own, own, valid)
        # Another account's topic, whose message brings the fields of a message of ours.
        shown = {"Message": "pay 1000"} | forged | {"Type": "Notification\n" + signed(rest).removesuffix("\n")}
        add("recut-topic", version, elsewhere, shown, refused)
        # Our own topic: what one may publish, another id, another time or a subject for it.
        message_id = signed(own).removeprefix("Message\npay 1000\nMessageId\n").rpartition("\nTimestamp\n")[0]
        add("recut-id", version, own, own | {"Message": "pay 1000", "MessageId": message_id}, refused)
        time = signed(own).partition("\nTimestamp\n")[2].rpartition("\nTopicArn\n")[0]
        shown = own | {"Message": "pay 1000", "MessageId": "forged-1", "Timestamp": time}
        add("recut-time", version, own, shown, refused)
    return out


def recut():
    """Texts of other providers that could be cut into values in two ways: the other way gives another id."""

    def hexadecimal(key, text):
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def b64(key, text):
        return base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()

    def entry(provider, case, secret, headers, body, expect):
        return {
            "id": f"{provider}/{case}", "provider": provider, "kind": "verify", "now": NOW,
            "config": {"url": f"https://hooks.example.com/in/{provider}", "secrets": [secret]},
            "request": {
                "method": "POST", "path": f"/in/{provider}", "headers": [["Content-Type", "application/json"]] + headers,
                "body_b64": base64.b64encode(body.encode()).decode(),
            },
            "expect": expect,
        }

    refused = {"verdict": "bad_signature"}
    secret, out = "recut_1_Sec-ret9secretsecret", []
    # Adyen: a merchant's reference may hold a colon, the other values may not.
    key = "00112233445566778899aabbccddeeff"
    mac = b64(bytes.fromhex(key), "psp::account:o:7:10:EUR:AUTHORISATION:true")
    for case, psp, original, account, reference, expect in [
        ("valid-reference-with-colon", "psp", "", "account", "o:7", {"verdict": "valid", "event_id": "AUTHORISATION:psp:true"}),
        ("recut-id", "psp:", "account", "o", "7", refused),
    ]:
        item = {
            "pspReference": psp, "originalReference": original, "merchantAccountCode": account, "merchantReference": reference,
            "amount": {"value": 10, "currency": "EUR"}, "eventCode": "AUTHORISATION", "success": "true",
            "additionalData": {"hmacSignature": mac},
        }
        out.append(entry("adyen", case, key, [], json.dumps({"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}), expect))
    # Sinch: body and nonce.
    whole = '{"event_time":"t1","app_id":"a1","text":"1.2"}'
    mac = b64(secret.encode(), f"{whole}.n1.{NOW}")
    for case, body, nonce, expect in [
        ("valid-body-with-full-stop", whole, "n1", {"verdict": "valid", "event_id": "t1:a1"}),
        ("recut-body", whole[:-3], '2"}.n1', refused),
    ]:
        headers = [["x-sinch-webhook-signature", mac], ["x-sinch-webhook-signature-nonce", nonce], ["x-sinch-webhook-signature-timestamp", str(NOW)]]
        out.append(entry("sinch", case, secret, headers, body, expect))
    # QuickNode: nothing stands between nonce and time, so the time has one spelling only.
    mac = hexadecimal(secret.encode(), f"n-10{NOW}{{}}")
    for case, nonce, time, expect in [
        ("valid-nonce-that-ends-in-a-digit", "n-10", str(NOW), {"verdict": "valid", "event_id": "n-10"}),
        ("recut-id", "n-1", f"0{NOW}", refused | {"also_ok": ["malformed"]}),
    ]:
        headers = [["X-QN-Signature", mac], ["X-QN-Nonce", nonce], ["X-QN-Timestamp", time]]
        out.append(entry("quicknode", case, secret, headers, "{}", expect))
    return out


def mailgun_multipart():
    """Mail with an attachment: Mailgun's routes as a multipart form, made by Python's own writer of such bodies."""
    secret, token, out = "mailgun_1_Sec-ret9secretsec", "t" * 50, []
    mac = hmac.new(secret.encode(), f"{NOW}{token}".encode(), hashlib.sha256).hexdigest()
    fields = [("Message-Id", "<m1@example.com>"), ("recipient", "acct_1"), ("timestamp", str(NOW)), ("token", token), ("signature", mac)]

    def add(case, fields, expect):
        form = email.mime.multipart.MIMEMultipart("form-data", boundary="hookstead-7")
        for name, value in fields + [("attachment-1", "\x00 --hookstead-7 \x01")]:
            part = email.mime.nonmultipart.MIMENonMultipart("text", "plain")
            part.set_payload(value)
            file = {"filename": "a.bin"} if name == "attachment-1" else {}
            part.add_header("Content-Disposition", "form-data", name=name, **file)
            form.attach(part)
        _, _, body = form.as_bytes(policy=email.policy.HTTP).partition(b"\r\n\r\n")
        out.append({
            "id": f"mailgun-routes/{case}", "provider": "mailgun-routes", "kind": "verify", "now": NOW,
            "config": {"url": "https://hooks.example.com/in/mailgun-routes", "secrets": [secret]},
            "request": {
                "method": "POST", "path": "/in/mailgun-routes",
                "headers": [["Content-Type", 'multipart/form-data; boundary="hookstead-7"']],
                "body_b64": base64.b64encode(body).decode(),
            },
            "expect": expect,
        })

    add("valid-multipart", fields, {"verdict": "valid", "event_id": "<m1@example.com>", "account": "acct_1"})
    add("wrong-secret-multipart", fields[:-1] + [("signature", mac[::-1])], {"verdict": "bad_signature"})
    add("token-twice-multipart", fields + [("token", token)], {"verdict": "malformed", "also_ok": ["bad_signature", "missing_header"]})
    add("missing-signature-multipart", fields[:-1], {"verdict": "missing_header", "also_ok": ["malformed", "bad_signature"]})
    return out


def write(file, entries):
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    (CRATE / "vectors" / file).write_text(f"[\n{lines}\n]\n")


def main():
    write("hubspot-own.json", hubspot_addresses())
    write("xero-own.json", xero_intent())
    write("aws-sns-own.json", sns_topics())
    write("aws-sns-recut.json", sns_recut())
    write("recut.json", recut())
    write("mailgun-routes-own.json", mailgun_multipart())
    for name in OWN:
        record = tomllib.loads((CRATE / "providers" / f"{name}.toml").read_text())
        made = vectors(name, record)
        # Those of mattermost stand beside others.
        file = "mattermost-own.json" if name == "mattermost" else f"{name}.json"
        if name == "mattermost":
            made = [entry | {"id": entry["id"] + "-own"} for entry in made]
        write(file, made)


if __name__ == "__main__":
    main()
