"""The server of `docs/serving.md`."""

import base64
import contextlib
import importlib.util
import io
import json
import pathlib
import re
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from tests.marks import slow

pytest.importorskip("tensorflow")
pytest.importorskip("fastapi")
pytestmark = slow

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "serving.md"


def encoded(image):
    data = io.BytesIO()
    keras.utils.array_to_img(image, scale=False).save(data, "PNG")
    return {"encoded": {"b64": base64.b64encode(data.getvalue()).decode()}}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    from fastapi.testclient import TestClient

    names = {"__name__": "serve"}
    with contextlib.chdir(tmp_path_factory.mktemp("served")):
        blocks = re.findall(r"```py(?:thon)?\n(.*?)```", PAGE.read_text(), re.DOTALL)
        for block in blocks if importlib.util.find_spec("openvino") else blocks[:2]:
            exec(compile(block.replace("8502", "0"), "serving.md", "exec"), names)
    yield TestClient(names["app"]), names
    if "server" in names:
        names["server"].server_close()


def test_the_server_of_the_page_answers_in_the_format_of_tensorflow_serving(client):
    client, names = client
    url, images = "/v1/models/vit:predict", np.random.default_rng(0).integers(0, 256, (3, 28, 28, 1)).astype("uint8")
    expected = names["keras_vit"].from_recipe("mnist", pretrained=True).predict(images, verbose=0)
    for count in (1, 3):
        files = client.post(url, json={"instances": [encoded(image) for image in images[:count]]})
        np.testing.assert_allclose(files.json()["predictions"], expected[:count], atol=1e-3)
        pixels = [{"images": image.tolist()} for image in images[:count]]
        plain = client.post(url, json={"signature_name": "serve", "instances": pixels})
        np.testing.assert_allclose(plain.json()["predictions"], expected[:count], atol=1e-3)
    assert client.get("/v1/models/vit/metadata").json()["labels"] == list("0123456789")


@pytest.mark.parametrize(
    "request_, message",
    [
        ({"instances": []}, "1 to 32 instances. Received: 0"),
        ({"instances": [{"encoded": {"b64": base64.b64encode(b"no picture").decode()}}]}, "InvalidArgumentError"),
        ({"instances": [{"encoded": {"b64": "?"}}]}, "Error"),
        ({"instances": [{"images": [[1, 2]]}], "signature_name": "serve"}, "Error"),
        ({"instances": [{"images": [1]}], "signature_name": "other"}, "KeyError"),
        ({"instances": [{}]}, "ValueError"),
    ],
)
def test_bad_requests_are_answered_with_a_reason(client, request_, message):
    answer = client[0].post("/v1/models/vit:predict", json=request_)
    assert answer.status_code == 400 and message in answer.json()["detail"]


def test_the_server_of_openvino_answers_many_at_once_and_names_bad_requests(client):
    pytest.importorskip("openvino")
    server, names = client[1]["server"], client[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    images = np.random.default_rng(0).integers(0, 256, (8, 28, 28, 1))
    expected = names["keras_vit"].from_recipe("mnist", pretrained=True).predict(images, verbose=0)

    def ask(body):
        url = f"http://127.0.0.1:{server.server_port}/v1/models/vit:predict"
        with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
            return json.load(answer)["predictions"]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, [{"instances": [image.tolist()]} for image in images]))
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-4)
    shape = r"Pixels must be finite numbers, images of \(28, 28, 1\). Received: shape=\("
    refused = [([[1, 2]], shape), ([], shape), (np.full((1, 28, 28, 1), np.nan).tolist(), shape), ("?", "ValueError")]
    bodies = [({"instances": given}, message) for given, message in refused]
    for body, message in [*bodies, ({}, "KeyError"), ([], "TypeError")]:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(body)
        said = json.load(caught.value)["error"]
        assert caught.value.code == 400 and re.search(message, said), said
    server.shutdown()
