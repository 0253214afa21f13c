"""A server on loopback in place of the network."""

import http.server
import json
import re
import threading

BODY = bytes(range(256)) * 2000
COMMIT = "c0ffee" + "0" * 34
REPOS = {  # what the hub holds
    "me/both": "config.json preprocessor_config.json processor_config.json "
    "model.safetensors pytorch_model.bin tf_model.h5",
    "me/shards": "config.json model-1-of-2.safetensors model-2-of-2.safetensors model.safetensors.index.json",
    "me/old": "config.json pytorch_model.bin README.md",
    "me/empty": "config.json README.md",
    "me/gated": "config.json model.safetensors",
    "me/dit": "README.md model_index.json scheduler/scheduler_config.json transformer/config.json vae/config.json "
    "transformer/diffusion_pytorch_model.safetensors transformer/diffusion_pytorch_model.fp16.safetensors "
    "transformer/diffusion_pytorch_model.bin vae/diffusion_pytorch_model.bin",
    "me/vae": "config.json diffusion_pytorch_model.bin diffusion_pytorch_model.safetensors",
    "me/text": "model_index.json vae/config.json vae/diffusion_pytorch_model.safetensors unet/config.json",
}
PARTS = {"transformer": ["diffusers", "Transformer2DModel"], "vae": ["diffusers", "AutoencoderKL"]}
CONTENT = {
    ("me/dit", "model_index.json"): json.dumps({"_class_name": "DiTPipeline", **PARTS}).encode(),
    ("me/text", "model_index.json"): json.dumps({"_class_name": "TextPipeline", "vae": PARTS["vae"]}).encode(),
}


class Answers(http.server.BaseHTTPRequestHandler):
    """Serves BODY in the way that the first word of the path says, and what `snapshot_download` asks of the hub."""

    def do_GET(self):
        self.server.hits += 1
        hub = re.match(r"/(?:api/models/)?(me/\w+)/(revision|tree|resolve)/(\w+)/?([^?]*)", self.path)
        self.hub(*hub.groups()) if hub else self.file(self.path.split("/")[1])

    do_HEAD = do_GET  # noqa: N815

    def file(self, way):
        if way in ("404", "500", "api"):
            return self.answer(404 if way == "api" else int(way))
        if way == "away":
            return self.answer(302, Location=f"file://{__file__}")
        self.answer(200, BODY[:100_000], Content_Length=way != "unsized" and len(BODY))
        if way == "together":
            self.server.both.wait(timeout=60)
        if way == "stuck" and self.server.hits == 1:
            self.server.done.wait(timeout=60)
        elif way != "once" or self.server.hits > 1:
            self.wfile.write(BODY[100_000:])

    def hub(self, name, word, revision, file):
        if name == "me/down":
            self.answer(500)
        elif name not in REPOS or revision not in ("main", "v1", COMMIT):
            self.answer(404, X_Error_Code="RevisionNotFound" if name in REPOS else "RepoNotFound")
        elif word == "revision":
            files = [{"rfilename": f} for f in REPOS[name].split()]
            self.answer(200, json.dumps({"id": name, "sha": COMMIT, "siblings": files}).encode())
        elif word == "tree":
            sizes = {f: len(CONTENT.get((name, f), BODY)) for f in REPOS[name].split()}
            files = [{"type": "file", "path": f, "size": size, "oid": f} for f, size in sizes.items()]
            self.answer(200, json.dumps(files).encode())
        elif name == "me/gated":
            self.answer(403, X_Error_Code="GatedRepo")
        else:
            body = CONTENT.get((name, file), BODY)
            self.answer(200, body, ETag=f'"{name}/{file}"'.replace("/", "-"), X_Repo_Commit=COMMIT)

    def answer(self, code, body=b"", **headers):
        self.send_response(code)
        for key, value in {"Content_Length": len(body), **headers}.items():
            if value:
                self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body if self.command == "GET" else b"")

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """A server in a thread, up to `stop()`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.hits, self.both, self.done = 0, threading.Barrier(2), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        self.done.set()
        self.shutdown()
        self.server_close()
