"""What a request must be before the page sees it, and how much the page keeps of what it is given."""

import contextlib
import ipaddress
import os
import pathlib
import socket
from urllib.parse import urlsplit

MOST_BYTES = 32 * 2**20  # of one file
FRAMING = 2**16  # bytes of a request around a file
MOST_KEPT = 2**28  # bytes of all files
LEAST = 2**16  # bytes that a file counts, however small: there are at most MOST_KEPT / LEAST files


class Guard:
    """ASGI middleware that lets the page's own requests through, and keeps its folder small.

    Every web page that the user has open reaches this machine: by a form that it sends here, or by a name of its own
    that it lets mean this machine (DNS rebinding). So a request must name a host that was listened on, and come from no
    other origin.

    Args:
        app: The ASGI application.
        host: Address or name that was listened on.
        folder: Folder of the files that the application is given and makes. The oldest make room for new ones, but for
            those that are there from the start.
    """

    def __init__(self, app, host, folder):
        self.app, self.folder, self.arriving = app, folder, 0
        self.own = set(_files(folder))
        self.names = {"localhost", host.lower()}
        self.local = _is_loopback(host)
        if not self.local:  # other machines call this one by its name
            self.names |= {socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        headers = [(name.decode("latin-1"), value.decode("latin-1").lower()) for name, value in scope["headers"]]
        method = scope.get("method", "GET")
        size = 0 if method in ("GET", "HEAD", "OPTIONS") else _size(headers)
        refusal = self._refusal(headers, size)
        if refusal:
            return await _refuse(scope, receive, send, *refusal)
        counted = size and max(size, LEAST)
        self.arriving += counted
        try:
            if counted:
                self._make_room()
            await self.app(scope, receive, send)
        finally:
            self.arriving -= counted

    def _refusal(self, headers, size):
        """Returns the status and the sentence that a request is refused with, or `None`."""
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return 400, f"This page is not served under that name. Received: Host {', '.join(hosts)!r}"
        others = [value for name, value in headers if name == "origin" and value.partition("://")[2] != hosts[0]]
        if others:
            return 403, f"Only this page itself may send it anything. Received: Origin {others[0]!r}"
        if size is None:
            return 411, "A request says how long it is."
        if size > MOST_BYTES + FRAMING:
            return 413, f"A file has at most {MOST_BYTES // 2**20} MiB."
        if self.arriving + size > MOST_KEPT:
            return 503, "Too many files arrive at once."
        return None

    def _is_ours(self, authority):
        """Returns whether a `name[:port]` means this machine, as no name does that a stranger owns."""
        try:
            name = urlsplit(f"//{authority}").hostname or ""
        except ValueError:
            return False
        return name in self.names or _is_loopback(name) or (not self.local and _is_address(name))

    def _make_room(self):
        found = []
        for path in set(_files(self.folder)) - self.own:
            with contextlib.suppress(FileNotFoundError):  # the application moves them
                status = os.stat(path)
                found.append((status.st_mtime_ns, max(status.st_size, LEAST), path))
        excess = sum(size for _, size, _ in found) + self.arriving - MOST_KEPT
        for _, size, path in sorted(found):
            if excess <= 0:
                break
            pathlib.Path(path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it holds other files
                if os.path.dirname(path) != os.fspath(self.folder):
                    os.rmdir(os.path.dirname(path))
            excess -= size


def _files(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]


def _size(headers):
    """Returns the length of a request, or `None` if it does not say."""
    found = [value for name, value in headers if name == "content-length"]
    return int(found[0]) if len(found) == 1 and found[0].isdecimal() else None


def _is_address(name):
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _is_loopback(name):
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


async def _refuse(scope, receive, send, status, sentence):
    from starlette.responses import PlainTextResponse

    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": 1008, "reason": sentence})
    return await PlainTextResponse(sentence, status)(scope, receive, send)
