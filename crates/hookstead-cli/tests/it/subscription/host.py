# Amazon's host, as far as a subscription sees it: https on the address given, the certificate that signs under every
# path that ends with .pem, a word under every other. Each request is a line on stdout: its host and its target.
import http.server
import ssl
import sys

address, certificate, key, signer = sys.argv[1:]
signing_certificate = open(signer, "rb").read()


class Host(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.headers["Host"], self.path, flush=True)
        body = signing_certificate if self.path.endswith(".pem") else b"<ok/>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer((address, 443), Host)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
