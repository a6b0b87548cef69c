"""A payment provider for the end-to-end run: the contract of the `http` gateway (docs/ledger.md), and a log.

It remembers every Idempotency-Key, so a resend replays its answer. Orders whose id contains `flaky` get one 503
before anything is charged.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.answers = {}  # Idempotency-Key -> answer
        self.charges = []  # order ids, in the order of their charges
        self.refused = set()  # flaky orders that had their 503
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/charges"

    def charge(self, key, order):
        """Status and answer for one POST."""
        order_id = order["order_id"]
        with self.lock:
            if "flaky" in order_id and order_id not in self.refused:
                self.refused.add(order_id)
                return 503, {"error": "try later"}
            if key not in self.answers:
                self.charges.append(order_id)
                self.answers[key] = {"id": f"ch_{len(self.charges)}", "status": "succeeded"}
            return 200, self.answers[key]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, answer = self.server.charge(self.headers["Idempotency-Key"], json.loads(body))
        payload = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass
