import json
from datetime import datetime, timezone

from standardwebhooks import Webhook

ID = "msg_4SendersTest"
TYPE = "contact.updated"
BODY = json.dumps({"type": TYPE, "data": {"id": "con_1", "name": "Zoë"}}, ensure_ascii=False)
EVENT = {"id": ID, "type": TYPE, "contentType": "application/json", "body": BODY}


def sign(secret, body):
    now = datetime.now(timezone.utc)
    return {
        "webhook-id": ID,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(ID, now, body),
    }


def verify(secret, headers, body):
    Webhook(secret).verify(body, headers)
