"""A third party's server on a free loopback port, stopped at the end whatever happens."""

import os
import socket
import subprocess
import time

PATIENCE = 120  # seconds; most start in one or two, localemu in ten


class Peer:
    """`{port}` in the command and in the environment stands for the port.

    `log` takes what it prints, and `inherited` is the environment below the given one.
    """

    def __init__(self, command, folder, log=subprocess.DEVNULL, inherited=os.environ, **environment):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [part.format(port=self.port) for part in command]
        environment = {name: value.format(port=self.port) for name, value in environment.items()}
        self.process = subprocess.Popen(
            command, cwd=folder, env={**inherited, **environment}, stdout=log, stderr=log
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE
        while not self.listens():
            assert self.process.poll() is None, f"{self.process.args} ended"
            assert time.monotonic() < deadline, f"{self.process.args} does not listen"
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False
