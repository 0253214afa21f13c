import io
import json
import urllib.error
import urllib.request

import keras
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import demo
from keras_vit.demo import serving
from keras_vit.demo.drawing import from_drawing
from keras_vit.demo.page import page as make_page
from keras_vit.training import rundir
from tests import picturefiles
from tests.browser import chromium, faint, watched
from tests.demo.pages import drawn, request, served, upload
from tests.marks import slow

WAIT = 120_000  # milliseconds


def test_without_gradio(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for function in (make_page, demo.launch):
        with pytest.raises(ImportError, match=r"pip install .keras-vision-transformers.demo"):
            function("mnist")


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("gradio", reason="gradio is not installed")
    with served(lambda: make_page("mnist")) as (port, _):
        yield f"http://127.0.0.1:{port}"


def brightest(page):
    """Returns the brightest pixel in the middle of the pad, 0..255."""
    page.locator(".pixi-target").scroll_into_view_if_needed()
    pad = page.locator(".pixi-target").bounding_box()
    middle = {
        "x": pad["x"] + pad["width"] / 2 - 60,
        "y": pad["y"] + pad["height"] / 2 - 60,
        "width": 120,
        "height": 120,
    }
    with Image.open(io.BytesIO(page.screenshot(clip=middle))) as image:
        return np.asarray(image.convert("L")).max()


@slow
def test_in_a_browser(address, digits, tmp_path):
    image = from_drawing(drawn(digits[0][3]), (28, 28, 1), "tfds:mnist")
    keras.utils.save_img(tmp_path / "three.png", image, scale=False)
    (tmp_path / "text.png").write_text("no image at all")
    with chromium() as browser:
        page, wrong = watched(browser)
        page.set_default_timeout(WAIT)
        page.goto(address)
        answer, files = page.locator("h2.answer"), page.locator("input[type=file]").last

        def expect(*texts):
            page.wait_for_function("texts => texts.every(text => document.body.innerText.includes(text))", arg=texts)

        page.locator(".pixi-target canvas").wait_for()
        expect("mnist", "28 x 28 pixels, gray, 10 classes, test accuracy 99.70%", "scaled to 20 of 28 pixels")
        files.set_input_files(tmp_path / "three.png")
        expect("Attention rollout: what attention reads most, whatever the prediction", "Shown: three.png")
        assert answer.inner_text() == "3" and page.locator("img[src*='/gradio_api/file=']").count() == 2
        page.get_by_label("Relevance").click()
        expect("Relevance: bright patches support the prediction")
        assert answer.inner_text() == "3"

        files.set_input_files(tmp_path / "text.png")
        page.get_by_role("alert").wait_for()
        assert page.get_by_role("alert").inner_text().startswith("'text.png' is not a PNG, JPEG, BMP, GIF")
        assert not answer.count() and "Shown: three.png" not in page.inner_text("body")

        page.locator(".pixi-target").scroll_into_view_if_needed()
        pad = page.locator(".pixi-target").bounding_box()
        x, y = pad["x"] + pad["width"] / 2, pad["y"] + pad["height"] / 2
        page.mouse.move(x, y - 80)
        page.mouse.down()
        page.mouse.move(x, y + 80, steps=4)
        page.mouse.up()
        answer.wait_for()
        assert brightest(page) > 224
        assert answer.inner_text() == "1" and not page.get_by_role("alert").count()
        files.set_input_files(tmp_path / "three.png")
        expect("Shown: three.png")
        page.wait_for_timeout(2000)  # what the cleared pad tells comes later
        assert answer.inner_text() == "3" and "Shown: three.png" in page.inner_text("body")
        assert brightest(page) < 32, "the pad is cleared"
        page.get_by_label("Clear").click()
        answer.wait_for(state="detached")
        assert not wrong

        files.set_input_files(tmp_path / "three.png")
        expect("Shown: three.png")
        (tmp_path / "large.png").write_bytes(bytes(33 * 2**20))
        files.set_input_files(tmp_path / "large.png")  # which Gradio refuses itself
        answer.wait_for(state="detached")
        expect("exceed the maximum allowed size of 32")
        assert "Shown: three.png" not in page.inner_text("body")


@slow
@pytest.mark.parametrize("name", ["mnist", "easy_vqa", "mnist_dit"])
def test_its_texts_can_be_read_light_and_dark(name, digits, tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed")
    keras.utils.save_img(tmp_path / "three.png", digits[0][3][..., None], scale=False)
    with served(lambda: make_page(name)) as (port, _), chromium() as browser:
        for width, scheme in ((1400, "light"), (390, "dark")):
            (page, wrong), left = watched(browser, width, scheme=scheme), WAIT // 500
            page.set_default_timeout(WAIT)
            page.goto(f"http://127.0.0.1:{port}")
            if name == "mnist_dit":
                page.get_by_role("button", name="Draw").wait_for()
            else:
                page.locator("input[type=file]").last.set_input_files(tmp_path / "three.png")
                page.locator("section[aria-label=Prediction]").first.wait_for()
            while faint(page) and (left := left - 1):
                page.wait_for_timeout(500)  # what waits for an answer is faint
            assert not faint(page) and not wrong
            assert page.evaluate("document.documentElement.scrollWidth") == width
            page.close()


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


def test_a_drawing_that_is_no_drawing_is_not_opened(address):
    port = int(address.rpartition(":")[2])
    _, (path,) = upload(port, data=picturefiles.EPS)
    file = {"path": path, "meta": {"_type": "gradio.FileData"}}
    drawing = {"background": None, "layers": [], "composite": file}
    body = json.dumps({"data": [drawing, "", "rollout"], "fn_index": 2, "session_hash": "b"})
    assert request(port, "POST", "/gradio_api/queue/join", body, Content_Type="application/json")[0] == 200
    with urllib.request.urlopen(f"{address}/gradio_api/queue/data?session_hash=b") as lines:
        told = next(line for line in lines if b"process_completed" in line)
    assert b"The drawing is not a PNG" in told and b'"success":true' in told and path.encode() not in told


def test_the_page_of_a_run_claims_no_accuracy(tmp_path):
    gradio = pytest.importorskip("gradio", reason="gradio is not installed")
    recipe = keras_vit.load_recipe("digits")  # which reached something; this run, which was never trained, did not
    rundir.claim(tmp_path, recipe, {}, list("0123456789"))
    keras_vit.from_recipe(recipe).save(tmp_path / rundir.MODEL)
    with serving.private_folder():
        blocks = make_page(tmp_path)
    texts = [part.value for part in blocks.blocks.values() if isinstance(part, gradio.Markdown)]
    assert texts[0] == "# digits\n8 x 8 pixels, gray, 10 classes" and "scaled to 8 of 8 pixels" in texts[1]
    assert {function.concurrency_id for function in blocks.fns.values()} == {"model"}
    assert {function.concurrency_limit for function in blocks.fns.values()} == {1}


def test_a_file_outside_of_a_run_has_its_page(tmp_path):
    gradio = pytest.importorskip("gradio", reason="gradio is not installed")
    keras_vit.from_recipe("digits").save(tmp_path / "mine.keras")
    with serving.private_folder():
        blocks = make_page(tmp_path / "mine.keras")
    texts = [part.value for part in blocks.blocks.values() if isinstance(part, gradio.Markdown)]
    assert texts[0] == "# mine\n8 x 8 pixels, gray, 10 classes" and "The whole pad is scaled to 8 x 8" in texts[1]
