"""Runs a command while two stand-ins for Stripe are up, each on a free loopback port.

usage: stripe_peers.py LOCALSTRIPE_PROGRAMS STATEFUL_MOCK_PROGRAMS COMMAND...

The command finds them by LOCALSTRIPE_URL and STRIPE_STATEFUL_MOCK_URL. localstripe refuses some parameters that
Stripe has; they are stripped on the way (docs/peers.md).
"""

import http.client
import os
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from peer import Peer

# Their own command lines listen on every interface.
LOCALSTRIPE = "from aiohttp import web; from localstripe.server import app; web.run_app(app, host='127.0.0.1', port={port})"
STATEFUL_MOCK = "require('stripe-stateful-mock').createExpressApp().listen({port}, '127.0.0.1')"
REFUSED = ("off_session", "error_on_requires_action", "cancellation_reason", "payment_method_types[]")


def main():
    localstripe, mock, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        python = os.path.join(localstripe, "python")
        node_modules = os.path.dirname(mock)
        with Peer([python, "-c", LOCALSTRIPE], folder) as states, Peer(
            ["node", "-e", STATEFUL_MOCK], folder, NODE_PATH=node_modules, LOG_LEVEL="error"
        ) as keys:
            proxy = Stripping(states.port)
            environment = os.environ | {
                "LOCALSTRIPE_URL": f"http://127.0.0.1:{proxy.server_address[1]}",
                "STRIPE_STATEFUL_MOCK_URL": f"http://127.0.0.1:{keys.port}",
            }
            sys.exit(subprocess.run(command, env=environment).returncode)


class Stripping(ThreadingHTTPServer):
    """Passes requests on without the form fields that localstripe refuses."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = port
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        fields = urllib.parse.parse_qsl(body, keep_blank_values=True)
        body = urllib.parse.urlencode([(name, value) for name, value in fields if name not in REFUSED])
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.upstream)
        connection.request(self.command, self.path, body or None, headers)
        response = connection.getresponse()
        payload = response.read()
        connection.close()
        self.send_response(response.status)
        self.send_header("Content-Type", response.headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = pass_on

    def log_message(self, *_):
        pass


main()
