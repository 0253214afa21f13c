"""A hub on loopback, in place of the network: it keeps what is uploaded, and gives it back."""

import base64
import hashlib
import http.server
import json
import re
import threading


def commit(files):
    """Returns the commit of a repository with some files, 40 hex digits."""
    contents = [hashlib.sha1(body).hexdigest() for _, body in sorted(files.items())]
    return hashlib.sha1("".join([*sorted(files), *contents]).encode()).hexdigest()


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers what `huggingface_hub` asks to create, fill and read a repository of models."""

    def do_POST(self):
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length)) if length else b"".join(self.chunks())
        if self.server.forbids:
            return self.answer({"error": "no token may do that"}, 403)
        if self.path == "/api/repos/create":
            return self.answer({"url": f"{self.server.url}/{json.loads(body)['organization']}/x", "id": "x"})
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        name, word = re.match(r"/api/models/([\w.-]+/[\w.-]+)/(preupload|commit)/", self.path).groups()
        if word == "preupload":
            paths = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]
            return self.answer({"files": modes})
        for line in map(json.loads, body.decode().splitlines()):
            files = self.server.repositories.setdefault(name, {})
            if line["key"] == "deletedFile":
                del files[line["value"]["path"]]
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        url = f"{self.server.url}/{name}/commit/{commit(files)}"
        self.answer({"commitUrl": url, "commitOid": commit(files), "hookOutput": "", "success": True})

    def chunks(self):
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def do_GET(self):
        path = self.path.partition("?")[0].removeprefix("/api/models").strip("/")
        name, word, revision, file = re.fullmatch(
            r"([\w.-]+/[\w.-]+)(?:/(revision|tree|resolve)/(\w+)(?:/(.*))?)?", path
        ).groups()
        files = self.server.repositories.get(name)
        if files is None or revision not in (None, "main", "v1", commit(files)):
            return self.answer({}, 404, X_Error_Code="RepoNotFound" if files is None else "RevisionNotFound")
        if word == "resolve":
            return self.answer(
                files[file], ETag=f'"{hashlib.sha256(files[file]).hexdigest()}"', X_Repo_Commit=commit(files)
            )
        if word == "tree":
            sizes = self.server.claims | {path: len(body) for path, body in files.items()}
            return self.answer([{"type": "file", "path": path, "size": sizes[path], "oid": path} for path in files])
        sizes = {path: len(body) for path, body in files.items()} | self.server.claims
        siblings = [{"rfilename": path, "size": size} for path, size in sizes.items()]
        self.answer({"id": name, "sha": commit(files), "siblings": siblings})

    do_HEAD = do_GET  # noqa: N815

    def answer(self, body, code=200, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for key, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def log_message(self, *args):
        pass


class Hub(http.server.ThreadingHTTPServer):
    """A hub in a thread, up to `stop()`; `repositories` maps names to their files, `claims` names to false sizes."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.repositories, self.claims, self.forbids = {}, {}, False
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()
