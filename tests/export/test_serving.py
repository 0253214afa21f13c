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


URL = "/v1/models/vit"


@pytest.mark.parametrize("count", [1, 3])
def test_the_server_of_the_page_answers_in_the_format_of_tensorflow_serving(client, count):
    """Every form of a request that its documentation has."""
    client, names = client
    images = np.random.default_rng(0).integers(0, 256, (count, 28, 28, 1)).astype("uint8")
    expected = names["keras_vit"].from_recipe("mnist", pretrained=True).predict(images, verbose=0)
    files, pixels = [encoded(image) for image in images], [{"images": image.tolist()} for image in images]
    for form in (
        {"signature_name": "serve_bytes", "instances": files},
        {"signature_name": "serve_bytes", "instances": [file["encoded"] for file in files]},
        {"signature_name": "serve_bytes", "inputs": {"encoded": [file["encoded"] for file in files]}},
        {"signature_name": "serve_bytes", "inputs": [file["encoded"] for file in files]},
        {"signature_name": "serve", "instances": pixels},
        {"instances": pixels},
        {"instances": images.tolist()},
        {"inputs": images.tolist()},
        {"inputs": {"images": images.tolist()}},
    ):
        for url in (f"{URL}:predict", f"{URL}/versions/1:predict"):
            found = client.post(url, json=form).json()
            np.testing.assert_allclose(found["outputs" if "inputs" in form else "predictions"], expected, atol=1e-3)
    assert client.get(f"{URL}/metadata").json()["labels"] == list("0123456789")
    (status,) = client.get(URL).json()["model_version_status"]
    assert status["state"] == "AVAILABLE" and status["status"]["error_code"] == "OK"


@pytest.mark.parametrize(
    "request_, message",
    [
        ({"instances": []}, "1 to 32 images. Received: 0"),
        ({"instances": [{}] * 33}, "The inputs are images. Received: "),
        ({"instances": np.zeros((33, 28, 28, 1)).tolist()}, "1 to 32 images. Received: 33"),
        (
            {
                "instances": [{"encoded": {"b64": base64.b64encode(b"no picture").decode()}}],
                "signature_name": "serve_bytes",
            },
            "InvalidArgumentError",
        ),
        ({"instances": [{"encoded": {"b64": "?"}}], "signature_name": "serve_bytes"}, "Error"),
        ({"instances": [{"images": [[1, 2]]}], "signature_name": "serve"}, "Error"),
        ({"instances": [{"images": [1]}], "signature_name": "other"}, "KeyError"),
        ({"instances": [{}]}, "The inputs are images. Received: "),
        ({"instances": [1.0]}, "'images' must have the shape (None, 28, 28, 1). Received: (1,)"),  # ended the process
        ({"instances": [True]}, "Error"),
        ({"instances": np.zeros((2, 27, 28, 1)).tolist()}, "Received: (2, 27, 28, 1)"),
        ({"instances": np.zeros((1, 28, 28, 1, 1)).tolist()}, "Received: (1, 28, 28, 1, 1)"),
        ({"instances": [[]]}, "Received: (1, 0)"),
        ({"instances": [{"pixels": [1]}]}, "The inputs are images. Received: pixels"),
        ({"instances": [{"b64": base64.b64encode(b"a").decode()}]}, "Error"),  # a file where pixels are taken
        ({"inputs": {"encoded": {"b64": "YQ=="}}, "signature_name": "serve_bytes"}, "Error"),  # one file, and no list
        ({}, "A request has either instances or inputs."),
        ({"instances": [1], "inputs": [1]}, "A request has either instances or inputs."),
    ],
)
def test_bad_requests_are_answered_with_a_reason(client, request_, message):
    answer = client[0].post("/v1/models/vit:predict", json=request_)
    assert answer.status_code == 400 and message in answer.json()["detail"]


def test_what_is_not_finite_is_told(client):
    body = json.dumps({"instances": np.full((1, 28, 28, 1), np.nan).tolist()})  # which Python writes and reads
    answer = client[0].post(f"{URL}:predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 500 and "outputs must be finite" in answer.json()["detail"]


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
    for body, message in [*bodies, ({}, "KeyError"), ([], "TypeError"), ({"instances": [10**400]}, "OverflowError")]:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(body)
        said = json.load(caught.value)["error"]
        assert caught.value.code == 400 and re.search(message, said), said
    server.shutdown()
