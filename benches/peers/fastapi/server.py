"""A durable inbox as one writes it with FastAPI and sqlite3: check the signature over the raw body, one row a
request, and the primary key finds the duplicate. The usage is `python3 server.py DATABASE`."""

import hashlib
import hmac
import json
import os
import socket
import sqlite3
import sys
import threading
import time

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

SECRET = os.environ["BENCH_SECRET"].encode()
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = FULL")
database.execute(
    "CREATE TABLE IF NOT EXISTS events ("
    "id TEXT PRIMARY KEY, received_at INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL)"
)
app = FastAPI()


def is_signed(headers, body):
    signed_at = headers.get("x-timestamp", "")
    if not signed_at.isdigit() or abs(time.time() - int(signed_at)) > 300:
        return False
    signed = f"{signed_at}.{headers.get('x-delivery-id')}.".encode() + body
    wanted = "v1=" + hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, headers.get("x-signature", ""))


@app.post("/in/bench")
async def receive(request: Request):
    body = await request.body()
    headers = request.headers
    if not is_signed(headers, body):
        return JSONResponse({"error": "signature"}, 401)
    row = (headers["x-delivery-id"], int(time.time()), json.dumps(dict(headers)), body)
    inserted = database.execute("INSERT INTO events VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING", row)
    if inserted.rowcount == 1:
        return JSONResponse({"outcome": "stored", "id": row[0]}, 202)
    (stored,) = database.execute("SELECT body FROM events WHERE id = ?", (row[0],)).fetchone()
    if stored == body:
        return JSONResponse({"outcome": "duplicate", "id": row[0]}, 200)
    return JSONResponse({"outcome": "conflict", "id": row[0]}, 409)


def end_with_stdin():
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = listener.getsockname()[1]
    threading.Thread(target=end_with_stdin, daemon=True).start()
    print(json.dumps({"ready": True, "address": f"127.0.0.1:{port}", "pid": os.getpid()}), flush=True)
    # uvicorn takes uvloop and httptools by itself when they are installed.
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
