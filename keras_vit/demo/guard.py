"""Checks requests before the page sees them, and limits the size of all uploads together.

Gradio deletes those that are old.
"""

import contextlib
import ipaddress
import os
import socket
from urllib.parse import urlsplit

MOST_BYTES = 32 * 2**20  # of one file
FRAMING = 2**16  # bytes of a request besides its file
MOST_KEPT = 2**28  # bytes of all files
LEAST = 2**16  # a smaller file counts as this many bytes, so there are at most MOST_KEPT / LEAST files


class Guard:
    """ASGI middleware that accepts only the page's own requests, and uploads only while its folder has room.

    Any web page that the user has open can reach this machine: by sending a form, or by pointing a host name of its own
    at this machine (DNS rebinding). A request must therefore name the host that the server listens on, and come from no
    other origin.

    Args:
        app: The ASGI application.
        host: Address or name that the server listens on.
        folder: Folder of the files that the application receives and writes.
    """

    def __init__(self, app, host, folder):
        self.app = app
        self.folder = folder
        self.arriving = 0
        self.names = {"localhost", host.lower()}
        self.local = _is_loopback(host)
        if not self.local:  # other machines use this one's name
            self.names |= {socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        headers = [(name.decode("latin-1"), value.decode("latin-1").lower()) for name, value in scope["headers"]]
        method = scope.get("method", "GET")
        size = 0 if method in ("GET", "HEAD", "OPTIONS") else _size(headers)
        refusal = self._refusal(headers, size, scope["path"].endswith("/upload"))
        if refusal:
            return await _refuse(scope, receive, send, *refusal)
        counted = size and max(size, LEAST)
        self.arriving += counted
        try:
            await self.app(scope, receive, send)
        finally:
            self.arriving -= counted

    def _refusal(self, headers, size, uploads):
        """Returns the status and the message with which a request is refused, or `None`."""
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return 400, f"The request must name the host of this page. Received: Host {', '.join(hosts)!r}"
        others = [value for name, value in headers if name == "origin" and value.partition("://")[2] != hosts[0]]
        if others:
            return 403, f"The request must come from this page. Received: Origin {others[0]!r}"
        if size is None:
            return 411, "The request must have one Content-Length."
        if size > MOST_BYTES + FRAMING:
            return 413, f"A request must have at most {MOST_BYTES // 2**20} MiB."
        if uploads and self._kept() + self.arriving + size > MOST_KEPT:
            return 503, "Too many uploads: try again in a few minutes."
        return None

    def _is_ours(self, authority):
        """Returns whether `name[:port]` is a name of this machine, which nobody else can own."""
        try:
            name = urlsplit(f"//{authority}").hostname or ""
        except ValueError:
            return False
        return name in self.names or _is_loopback(name) or (not self.local and _is_address(name))

    def _kept(self):
        """Returns how many bytes the files in the folder count as."""
        size = 0
        for path in (os.path.join(at, name) for at, _, names in os.walk(self.folder) for name in names):
            with contextlib.suppress(FileNotFoundError):  # the application moves and deletes files
                size += max(os.stat(path).st_size, LEAST)
        return size


def _size(headers):
    """Returns the Content-Length of a request, or `None` without a valid one."""
    lengths = [value for name, value in headers if name == "content-length"]
    return int(lengths[0]) if len(lengths) == 1 and lengths[0].isdecimal() else None


def _is_address(name):
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _is_loopback(name):
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


async def _refuse(scope, receive, send, status, message):
    from starlette.responses import PlainTextResponse

    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": 1008, "reason": message})
    return await PlainTextResponse(message, status)(scope, receive, send)
