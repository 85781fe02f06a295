import json
import time

from slack_sdk.signature import SignatureVerifier

ID = "Ev08SendersTest"
TYPE = "message"
MESSAGE = {"type": TYPE, "channel": "C1", "user": "U1", "text": "Zoë"}
CALLBACK = {"type": "event_callback", "event_id": ID, "team_id": "T1", "event": MESSAGE}
BODY = json.dumps(CALLBACK, ensure_ascii=False)
EVENT = {"id": ID, "type": TYPE, "contentType": "application/json", "body": BODY}


def sign(secret, body):
    timestamp = str(int(time.time()))
    signature = SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body)
    return {"x-slack-request-timestamp": timestamp, "x-slack-signature": signature}


def verify(secret, headers, body):
    return SignatureVerifier(secret).is_valid_request(body, headers)
