"""Drawings, and served pages, for the tests of the demo."""

import contextlib
import http.client
import json
import pathlib
import threading

import numpy as np
from PIL import Image

from keras_vit.demo import serving
from keras_vit.demo.drawing import PAD


def drawn(image, side=PAD, top=0, left=0):
    """Returns a gray image as the pad gives it, drawn in that size and at that place."""
    ink = Image.fromarray(image.astype("uint8")).resize((side, side), Image.Resampling.NEAREST)
    pad = np.zeros((PAD, PAD, 4), "uint8")
    pad[..., 3] = 255
    pad[top : top + side, left : left + side, :3] = np.asarray(ink)[..., None]
    return pad


@contextlib.contextmanager
def served(blocks):
    """Yields the port of a page that this process serves, and its folder; `blocks` makes the page."""
    with serving.private_folder() as folder, serving.listening("127.0.0.1", 0) as listener:
        server = serving.server(blocks(), "127.0.0.1", folder)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1], folder
        finally:
            server.should_exit = True
            thread.join()


def request(port, method="GET", path="/", body=None, **headers):
    """Returns the status and the text that a page on this machine answers; `_` in names of headers is `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    with contextlib.closing(connection), connection.getresponse() as answer:
        return answer.status, answer.read().decode()


def upload(port, size=0, name="a.png", data=None, **headers):
    """Gives a page a file as a browser does, noise of some size or `data`; returns the status and the answer."""
    head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    body = head.encode() + (data or np.random.default_rng().bytes(size)) + b"\r\n--x--\r\n"
    kind = {"Content_Type": "multipart/form-data; boundary=x"}
    status, text = request(port, "POST", "/gradio_api/upload", body, **kind, **headers)
    return status, json.loads(text) if status == 200 else text


def kept(folder):
    """Returns the files in a folder, and in those inside it."""
    return [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
