#!/usr/bin/env python3
"""Asks the test at 127.0.0.1:PORT to kill and restart the server; returns once it is ready.

The server stays a child of the test, which alone can wait for its end without polling.
"""
import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as test:
    test.sendall(b"restart\n")
    answer = test.makefile("rb").readline()
sys.exit(answer != b"ready\n")
