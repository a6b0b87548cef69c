"""Runs a command while two emulators of SQS are up, each on a free loopback port.

usage: queue_peers.py MINISTACK_PROGRAMS LOCALEMU_PROGRAMS|- COMMAND...

The command finds them by MINISTACK_URL and LOCALEMU_URL; with `-` there is only the first.
"""

import contextlib
import os
import subprocess
import sys
import tempfile

from peer import Peer


def main():
    ministack, localemu, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        own = {"HOME": folder, "TMPDIR": folder}
        queues = Peer(
            [os.path.join(ministack, "ministack")],
            folder,
            BIND_HOST="127.0.0.1",
            MINISTACK_HOST="127.0.0.1",
            GATEWAY_PORT="{port}",
            **own,
        )
        urls = {"MINISTACK_URL": stack.enter_context(queues).url}
        if localemu != "-":
            moves = Peer(
                # Without the options it listens on every interface, whatever GATEWAY_LISTEN says.
                [os.path.join(localemu, "localemu"), "start", "--host", "127.0.0.1", "--port", "{port}"],
                folder,
                GATEWAY_LISTEN="127.0.0.1:{port}",
                SERVICES="sqs",
                DNS_ADDRESS="0",
                DISABLE_EVENTS="1",
                **own,
            )
            urls["LOCALEMU_URL"] = stack.enter_context(moves).url
        sys.exit(subprocess.run(command, env=os.environ | urls).returncode)


main()
