import json
import os
import re

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import count_macs, evaluate, export_tflite, load_run, report, video_vit, vit
from keras_vit.reporting import write
from keras_vit.reporting.gather import Example
from tests.browser import chromium, faint, watched
from tests.marks import slow


@pytest.fixture(scope="module")
def written(run):
    model = load_run(run).model
    export_tflite(model, run / "model.tflite")
    return report(run)


def test_one_file_has_everything(run, written):
    assert written == run / "report.html" and written.stat().st_size < 2e6
    page = written.read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    model, recipe = load_run(run).model, load_run(run).recipe
    assert f"{model.count_params():,}" in page and f"{count_macs(model) / 1e6:,.3f}" in page
    export = json.loads((run / "model.tflite.json").read_text())["report"]
    assert "model.tflite" in page and f"{export['bytes'] / 1e6:.2f}" in page
    images = int(re.search(r"measured on (\d+) images", page)[1])
    accuracy = evaluate(run)[str(run / "model.keras")]["accuracy"]
    assert f"<dt>accuracy</dt><dd>{accuracy:.2%}</dd>" in page and "<dt>calibration error</dt>" in page
    assert page.count('alt="The same image; bright patches') == min(images, 16)  # none is among best and worst
    low, high = map(float, re.search(r"([\d.]+)% to ([\d.]+)%", page).groups())
    z, share = 1.959964, accuracy  # Wilson 1927
    center, half = share + z**2 / (2 * images), z * (share * (1 - share) / images + z**2 / (4 * images**2)) ** 0.5
    wanted = [100 * (center + side) / (1 + z**2 / images) for side in (-half, half)]
    np.testing.assert_allclose([low, high], wanted, atol=0.006)
    assert "block_0" in page and f"<td>{recipe.optim.learning_rate}</td>" in page
    assert page.count("<svg") == 7 and page.count("<title>image ") == min(images, 1000)


def test_a_failure_leaves_the_old_report(run, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"must end in \.html\. Received: to=.*report\.pdf"):
        report(run, tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="most=0"):
        report(run, tmp_path / "new.html", most=0)
    (tmp_path / "old.html").write_text("old")
    for path in (tmp_path / "old.html" / "new.html", run.parent / "folder.html"):
        (run.parent / "folder.html").mkdir(exist_ok=True)
        with pytest.raises(OSError, match="must be a file that can be written. Received: "):
            report(run, path)
    monkeypatch.setattr("keras_vit.reporting.write.gather", lambda *given: None)
    monkeypatch.setattr("keras_vit.reporting.write.render", lambda facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report(run, tmp_path / "old.html")
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]
    assert (tmp_path / "old.html").read_text() == "old"


@slow
def test_all_right_all_wrong_and_one_image(run, tmp_path):
    model = load_run(run).model
    images = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 1))
    right = np.asarray(model(images)).argmax(-1)
    for labels, mistake in ((right, False), ((right + 1) % 10, True)):
        text = report(run, tmp_path / "one.html", arrays=(images, labels)).read_text()
        assert (f"{labels[0]}, predicted {right[0]} (" in text) == mistake
        assert "measured on 1 image from arrays." in text and 'id="map"' not in text


@slow
def test_a_file_outside_a_run_has_no_recipe_and_names_are_escaped(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = load_run(run).model
    names = ["<b>", "$x_$", *(f"a class with quite a long name {i}" for i in range(8))]
    model.get_layer("rescale").metadata = {"labels": names}
    model.save("mine.keras")
    with pytest.raises(ValueError, match="'mine.keras' has no data: .*`arrays`"):
        report("mine.keras")
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 1))
    path = report("mine.keras", arrays=(images, np.arange(20) % 10))
    text = path.read_text()
    assert str(path) == os.path.join("mine", "report.html") and "<h1>mine</h1>" in text
    assert "recipe" not in text and "Trained" not in text
    assert "&lt;b&gt;" in text and "<b></b>" not in text and "$x_$" in text
    assert "a class with quite a lo…" in text and "1: $x_$, predicted" in text


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (390, "dark")])
def test_the_page_works_in_a_browser(browser, written, width, scheme):
    page, wrong = watched(browser, width, scheme=scheme)
    page.goto(written.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    hidden = "[...document.querySelectorAll('.chart, .scroll')].filter(part => part.scrollWidth > part.clientWidth)"
    assert not page.evaluate(f"{hidden}.map(part => part.textContent.trim().slice(0, 40))")
    color = page.evaluate("getComputedStyle(document.body).color")
    assert page.evaluate("getComputedStyle(document.querySelector('#training text')).fill") == color
    line = "[...document.querySelectorAll('#training path')].find(path => path.style.stroke == 'currentcolor')"
    assert page.evaluate(f"getComputedStyle({line}).stroke") == color

    shown, name = page.locator("#attention img:visible"), page.locator("#attention output")
    slider = page.locator("#attention input")
    assert shown.get_attribute("alt") == "images"
    slider.press("ArrowRight")
    assert shown.count() == 1 and shown.get_attribute("alt") == "block 0" == name.inner_text()
    slider.press("End")
    assert shown.get_attribute("alt") == "relevance" == name.inner_text()
    assert page.evaluate("document.querySelector('#attention img:not([hidden])').naturalWidth") > 100

    assert not faint(page)
    page.get_by_text("optim", exact=True).click()
    assert page.get_by_text("learning_rate").first.is_visible()
    assert not wrong
    page.close()


def test_a_finger_enlarges_figures_and_names_points(browser, written):
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(written.as_uri())
    for place in ("#predictions .chart", "#examples img", "#attention img", "#attention .chart"):
        opens = page.locator(place).first
        before = opens.evaluate("one => (one.querySelector('svg') ?? one).getBoundingClientRect().width")
        opens.tap()
        width = opens.evaluate("one => (one.querySelector('svg') ?? one).getBoundingClientRect().width")
        assert width > 1.4 * before and page.evaluate("document.documentElement.scrollWidth") == 390, place
        opens.tap()
        assert opens.evaluate("one => (one.querySelector('svg') ?? one).getBoundingClientRect().width") == before
    page.locator("#map use:has(title)").first.dispatch_event("click")
    assert page.locator(".named").inner_text().startswith("image ")
    assert "large" not in page.locator("#map .chart").get_attribute("class")
    context.close()


def test_rows_of_a_gallery_are_full():
    images, gap = np.zeros((5, 8, 8, 3), "float32"), write.TILE // 50
    assert write._side_by_side(images, [None] * 5).shape == (write.TILE, 4 * write.TILE + 3 * gap, 3)
    assert write._side_by_side(images[:3], [None] * 3).shape[1] == 3 * write.TILE + 2 * gap
    clips = np.zeros((5, 6, 8, 8, 3), "float32")
    assert write._side_by_side(clips, [None] * 5).shape[0] == 2 * (write.TILE // 2) + (write.TILE // 2) // 50


def test_a_factorised_model_of_clips_has_maps_over_all_blocks():
    clips = np.random.default_rng(0).integers(0, 256, (2, 4, 8, 8, 3)).astype("float32")
    model = video_vit("mu/4", frames=4, time_depth=1, image_size=8, num_classes=2, depth=1)
    assert [*write._gallery(model, clips, True)] == ["images", "rollout", "relevance"]
    assert write._drawn(model, write._gallery(model, clips, True)).startswith("rollout through all blocks")
    joint = video_vit("mu/4", frames=4, image_size=8, num_classes=2, depth=1)
    assert [*write._gallery(joint, clips, True)] == ["images", "block 0", "rollout", "relevance"]


@pytest.mark.parametrize(
    "pooling, said",
    [
        ("token", "attention of the class token, in each block (mean over heads); rollout"),
        ("gap", "attention of all patches, on average, in each block"),
        ("map", "attention of all patches, as the attention pooling weights them, in each block"),
    ],
)
def test_what_the_maps_are_follows_from_the_pooling(pooling, said):
    images = np.zeros((1, 8, 8, 3), "float32")
    for classes, end in ((0, "(Abnar and Zuidema 2020)"), (2, "; relevance for the prediction")):
        model = vit("mu/4", image_size=8, num_classes=classes, pooling=pooling)
        drawn = write._drawn(model, write._gallery(model, images, True))
        assert drawn.startswith(said) and drawn.endswith(end)
    assert "relevance" not in write._gallery(model, images, False)  # a tower's vectors are no classes


def test_pictures_of_several_parts_get_two_tiles_and_their_pixels():
    def example(rows, columns, support=None):
        return Example(np.zeros((rows, columns, 3)), np.zeros((rows, columns, 3), "uint8"), "one", support, ())

    alone, pair, clip = write._examples([example(64, 64), example(64, 130), example(32, 32 * 4)])
    assert [one["wide"] for one in (alone, pair, clip)] == [False, True, True]
    assert [write._side(np.zeros(shape)) for shape in ((64, 64, 3), (64, 130, 3), (10, 900, 3))] == [224, 455, 900]
    assert write._examples([example(8, 8, np.ones((2, 2)))])[0]["over"].startswith("data:image/jpeg")


def test_a_caption_has_its_figure(run, written):
    page = written.read_text()
    for section in re.findall(r"<figure[^>]*>.*?</figure>", page, re.DOTALL):
        assert "<svg" in section or "<img" in section
    assert page.count("bright patches support") and "Overlay: the relevance" in page
    assert page.count("<dl") == 1 and page.count('class="chart opens"') == page.count(
        '<figure><div class="chart opens" tabindex="0">'
    )
