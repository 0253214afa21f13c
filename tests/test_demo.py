import contextlib
import json
import os
import signal
import struct
import threading
import time
import urllib.error
import urllib.request
import zlib

import keras
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import demo, rundir
from tests.browser import chromium, watched

WAIT = 120_000  # milliseconds


@pytest.fixture(scope="module")
def digits():
    """A hundred real digits, `(100, 8, 8)`, 0..255, and their classes."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return np.clip(found.images[:100] * 255 / 16, 0, 255), found.target[:100]


@pytest.fixture(scope="module")
def mnist():
    return keras_vit.from_recipe("mnist", pretrained=True)


def drawn(image, side=demo.PAD, top=0, left=0):
    """Returns a grey image as the pad gives it, drawn so large and at that place."""
    ink = Image.fromarray(image.astype("uint8")).resize((side, side), Image.Resampling.NEAREST)
    pad = np.zeros((demo.PAD, demo.PAD, 4), "uint8")
    pad[..., 3] = 255
    pad[top : top + side, left : left + side, :3] = np.asarray(ink)[..., None]
    return pad


def test_a_drawing_is_read_wherever_it_is(digits, mnist):
    images, classes = digits
    right = {}
    for source in ("tfds:mnist", "somewhere else"):
        given = [demo.from_drawing(drawn(image, 104, 150, 20), (28, 28, 1), source) for image in images]
        right[source] = (mnist.predict(np.stack(given), verbose=0).argmax(-1) == classes).mean()
    assert right["tfds:mnist"] > 0.9 and right["somewhere else"] < 0.6


def test_a_drawing_lies_as_in_mnist(digits):
    for image in digits[0]:
        given = demo.from_drawing(drawn(image, 200, 10, 70), (28, 28, 1), "tfds:mnist")[..., 0]
        rows, columns = (np.flatnonzero(given.max(axis)) for axis in (1, 0))
        assert max(np.ptp(rows), np.ptp(columns)) + 1 in (19, 20)  # the outermost may be all but black
        middle = np.average(np.arange(28) + 0.5, weights=given.sum(1))
        assert abs(middle - 14.5) <= 0.5 or rows[0] == 0 or rows[-1] == 27


def test_a_drawing_lies_as_in_digits(digits):
    for image in digits[0]:
        given = demo.from_drawing(drawn(255.0 * (image > 127), 104, 150, 20), (8, 8, 1), "digits")
        again = demo.from_drawing(drawn(given[..., 0]), (8, 8, 1), "digits")
        assert given.shape == (8, 8, 1) and given[[0, -1]].max(axis=(1, 2)).min() > 0
        assert np.corrcoef(given.ravel(), again.ravel())[0, 1] > 0.85


def test_an_unknown_source_gets_the_whole_pad():
    square = np.zeros((4, 4))
    square[0, 3] = 255
    given = demo.from_drawing(drawn(square), (16, 12, 1), "folder:x")
    assert given.shape == (16, 12, 1) and given.dtype == "float32"
    assert given[:3, 10:].min() == 255 and given[6:].max() == 0 and given[:, :7].max() == 0


def test_nothing_is_drawn():
    pad = drawn(np.zeros((8, 8)))
    assert demo.from_drawing(pad, (28, 28, 1), "tfds:mnist") is None
    pad[100:200, 100:200, :3] = 255
    pad[..., 3] = 0  # white, but transparent
    assert demo.from_drawing(pad, (28, 28, 1), "tfds:mnist") is None


def bomb(side):
    """Returns a black PNG with two colours, of few bytes."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))  # noqa: E731
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    body = zlib.compress(bytes((side // 8 + 1) * side), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def png(tmp_path):
    keras.utils.save_img(tmp_path / "whole.png", np.random.default_rng(0).uniform(0, 255, (40, 30, 3)), scale=False)
    return (tmp_path / "whole.png").read_bytes()


BAD = {
    "text.png": (lambda _: b"no image at all", "'text.png' is no image of a kind that is read: PNG, JPEG"),
    "empty.png": (lambda _: b"", "'empty.png' is no image of a kind that is read"),
    "drawing.svg": (lambda _: b'<svg xmlns="http://www.w3.org/2000/svg"/>', "'drawing.svg' is no image of a kind"),
    "cut.png": (lambda folder: png(folder)[:1500], "'cut.png' cannot be read as an image"),
    "head.png": (lambda folder: png(folder)[:40], "'head.png' is no image of a kind that is read"),
    "bomb.png": (lambda _: bomb(20_000), "'bomb.png' is too large: it has more than 64 million pixels"),
    "smaller.png": (lambda _: bomb(9_000), "'smaller.png' is too large"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("error")
def test_what_is_no_image_is_refused_in_one_sentence(name, tmp_path):
    make, sentence = BAD[name]
    (tmp_path / name).write_bytes(make(tmp_path))
    with pytest.raises(ValueError) as refused:
        demo.read_image(tmp_path / name, (28, 28, 1), keras_vit.Data())
    assert str(refused.value).startswith(sentence) and "\n" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_too_large_an_image_is_not_decoded(tmp_path, monkeypatch):
    from keras_vit.data import pipeline

    read = []
    monkeypatch.setattr(pipeline, "read_files", lambda *given: read.append(given))
    (tmp_path / "bomb.png").write_bytes(bomb(20_000))
    with pytest.raises(ValueError, match="too large"):
        demo.read_image(tmp_path / "bomb.png", (28, 28, 1), keras_vit.Data())
    assert not read and (tmp_path / "bomb.png").stat().st_size < 100_000


def test_an_image_file_is_read_as_evaluation_does(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28, 1))
    keras.utils.save_img(tmp_path / "a.png", pixels, scale=False)
    np.testing.assert_array_equal(demo.read_image(tmp_path / "a.png", (28, 28, 1), keras_vit.Data()), pixels)


def test_the_port_is_named_before_any_work():
    with demo.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match=rf"^Port {port} of 127.0.0.1 is taken. Choose another port\.$"):
            demo.listening("127.0.0.1", port)
    for host, port, sentence in (
        ("127.0.0.1", 80_000, "from 0 to 65535. Received: port=80000"),
        ("", 0, "`host` is an address or a name"),
        ("no host", 0, "not possible to listen on port 0 of 'no host': "),
    ):
        with pytest.raises((ValueError, OSError), match=sentence):
            demo.listening(host, port)


def test_without_gradio(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for function in (demo.page, demo.launch):
        with pytest.raises(ImportError, match=r"pip install 'keras-vit\[demo\]'"):
            function("mnist")


@contextlib.contextmanager
def served(target):
    """Yields the address of a page that this process serves, and the page."""
    with demo.private_folder(), demo.listening("127.0.0.1", 0) as listener:
        blocks = demo.page(target)
        server = demo.server(blocks)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", blocks
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("gradio", reason="gradio is not installed")
    with served("mnist") as (address, _):
        yield address


def test_in_a_browser(address, digits, tmp_path):
    image = demo.from_drawing(drawn(digits[0][3]), (28, 28, 1), "tfds:mnist")
    keras.utils.save_img(tmp_path / "three.png", image, scale=False)
    (tmp_path / "text.png").write_text("no image at all")
    with chromium() as browser:
        page, wrong = watched(browser)
        page.set_default_timeout(WAIT)
        page.goto(address)
        answer, files = page.get_by_test_id("label-output-value"), page.locator("input[type=file]").last

        def expect(*texts):
            page.wait_for_function("texts => texts.every(text => document.body.innerText.includes(text))", arg=texts)

        page.locator(".pixi-target canvas").wait_for()
        expect("mnist", "28 x 28 pixels, grey, 10 classes, test accuracy 99.51%", "scaled to 20 of 28 pixels")
        files.set_input_files(tmp_path / "three.png")
        expect("Attention rollout: bright patches flow most into the answer")
        assert answer.inner_text() == "3" and page.locator("img[src*='/gradio_api/file=']").count() == 2
        page.get_by_label("Relevance").click()
        expect("Relevance: bright patches speak for the answer")
        assert answer.inner_text() == "3"

        files.set_input_files(tmp_path / "text.png")
        page.get_by_role("alert").wait_for()
        assert page.get_by_role("alert").inner_text().startswith("'text.png' is no image of a kind that is read")
        assert not answer.count()

        page.locator(".pixi-target").scroll_into_view_if_needed()
        pad = page.locator(".pixi-target").bounding_box()
        x, y = pad["x"] + pad["width"] / 2, pad["y"] + pad["height"] / 2
        page.mouse.move(x, y - 80)
        page.mouse.down()
        page.mouse.move(x, y + 80, steps=4)
        page.mouse.up()
        answer.wait_for()
        assert answer.inner_text() == "1" and not page.get_by_role("alert").count()
        page.get_by_label("Clear").click()
        answer.wait_for(state="detached")
    assert not wrong


def test_only_what_was_given_to_the_page_is_opened(address, tmp_path):
    def ask(path, **body):
        headers = {"Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None  # POST, else GET
        return urllib.request.urlopen(urllib.request.Request(f"{address}/gradio_api/{path}", data, headers))

    keras.utils.save_img(tmp_path / "mine.png", np.zeros((8, 8, 3)))
    file = {"path": str(tmp_path / "mine.png"), "meta": {"_type": "gradio.FileData"}}
    ask("queue/join", data=[file, "rollout"], fn_index=0, session_hash="a")
    with urllib.request.urlopen(f"{address}/gradio_api/queue/data?session_hash=a") as lines:
        told = next(line for line in lines if b"process_completed" in line)
    assert b"was not uploaded by a user" in told and b'"success":false' in told
    for path, body in {
        f"file={tmp_path / 'mine.png'}": {},
        "docs": {},
        "run/predict": {"data": [None], "fn_index": 1},
    }.items():
        with pytest.raises(urllib.error.HTTPError, match="40[34]"):
            ask(path, **body)


def test_the_page_of_a_run_claims_no_accuracy(tmp_path):
    gradio = pytest.importorskip("gradio", reason="gradio is not installed")
    recipe = keras_vit.load_recipe("digits")  # which reached something; this run, which was never trained, did not
    rundir.claim(tmp_path, recipe, {}, list("0123456789"))
    keras_vit.from_recipe(recipe).save(tmp_path / rundir.MODEL)
    with demo.private_folder():
        blocks = demo.page(tmp_path)
    texts = [part.value for part in blocks.blocks.values() if isinstance(part, gradio.Markdown)]
    assert texts[0] == "# digits\n8 x 8 pixels, grey, 10 classes" and "scaled to 8 of 8 pixels" in texts[1]
    assert {function.concurrency_id for function in blocks.fns.values()} == {"model"}
    assert {function.concurrency_limit for function in blocks.fns.values()} == {1}


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_ctrl_c_ends_it(capsys):
    pytest.importorskip("gradio", reason="gradio is not installed")
    with demo.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    told = []

    def use():
        try:
            while "http" not in "".join(told):
                time.sleep(0.1)
                told.append(capsys.readouterr().out)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}") as answer:
                told.append(answer.status)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=use)
    thread.start()
    demo.launch("mnist", port=port)
    thread.join()
    assert "".join(told[:-1]) == f"http://127.0.0.1:{port} (Ctrl-C ends it)\n" and told[-1] == 200
    assert capsys.readouterr() == ("", "")
