"""The worker's end of the channel (protocol.md): JSON packets on descriptor 3, each with at most one
descriptor."""

import json
import socket

DESCRIPTOR = 3
LARGEST = 192 * 1024


class Wire:
    def __init__(self):
        self._socket = socket.socket(fileno=DESCRIPTOR)

    def receive(self):
        """The next request and the descriptor sent with it (-1: none); (None, -1) if the judge has closed the
        channel."""
        data, descriptors, _, _ = socket.recv_fds(self._socket, LARGEST, 1)
        if not data:
            return None, -1
        return json.loads(data), descriptors[0] if descriptors else -1

    def forget(self):
        """Leaves the descriptor to somebody else."""
        self._socket.detach()

    def send(self, message, descriptor=-1):
        data = json.dumps(message).encode()
        if len(data) >= LARGEST:
            data = json.dumps({"ok": False, "kind": "exception",
                               "message": "the answer is too long"}).encode()
        try:
            if descriptor >= 0:
                socket.send_fds(self._socket, [data], [descriptor])
            else:
                self._socket.send(data)
        except BrokenPipeError:
            pass
