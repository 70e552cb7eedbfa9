"""A client that sends a body piece by piece and reads the answer meanwhile, on a plain socket."""

import json
import socket
from urllib.parse import urlsplit

TIMEOUT_S = 30


class Chunked:
    """One request whose body has no end yet; a context manager."""

    def __init__(self, url, path, *, method="POST", content_type="application/json", receive_bytes=None):
        parts = urlsplit(url)
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect((parts.hostname, parts.port))
        head = f"{method} {path} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-type: {content_type}\r\n"
        self.socket.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        self._reader = self.socket.makefile("rb")
        self.status = None

    def send(self, text):
        """One piece."""
        data = text if isinstance(text, bytes) else text.encode()
        self.socket.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self):
        """There is no more."""
        self.socket.sendall(b"0\r\n\r\n")

    def head(self):
        """The status, when the answer has begun."""
        self.status = int(self._reader.readline().split()[1])
        while self._reader.readline().strip():
            pass
        return self.status

    def reports(self):
        """Reports as they come, to the end of the answer."""
        if self.status is None:
            self.head()
        text = b""
        while size := int(self._reader.readline(), 16):
            text += self._reader.read(size)
            self._reader.readline()
            *lines, text = text.split(b"\n")
            yield from map(json.loads, lines)
        assert text == b""

    def close(self):
        """Hang up."""
        self._reader.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
