import json
import os
import re

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import count_macs, export_tflite, load_run
from keras_vit.report import report
from keras_vit.report.gather import gather
from tests.browser import chromium, watched


@pytest.fixture(scope="module")
def written(run):
    model, *_ = load_run(run)
    export_tflite(model, run / "model.tflite")
    return report(run)


def test_one_file_tells_all(run, written):
    assert written == run / "report.html" and 4e6 < written.stat().st_size < 10e6
    text = written.read_text()
    page = text[: text.index("<script>")] + text[text.index("</script>") :]  # without the plotting library
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    model, recipe, _ = load_run(run)
    assert f"{model.count_params():,}" in page and f"{count_macs(model) / 1e6:,.3f}" in page
    told = json.loads((run / "model.tflite.json").read_text())["report"]
    assert "model.tflite" in page and f"{told['bytes'] / 1e6:.2f}" in page
    facts = gather(run)
    examples = len(facts.best[0]) + len(facts.worst[0])
    assert "block_0" in page and page.count('alt="An image of the class') == examples
    assert f"<td>{recipe.optim.learning_rate}</td>" in page


def test_another_ending_and_a_failure_leave_what_was_there(run, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"ends in \.html\. Received: .*report\.pdf"):
        report(run, tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="most=0"):
        report(run, tmp_path / "new.html", most=0)
    (tmp_path / "old.html").write_text("old")
    for path in (tmp_path / "old.html" / "new.html", run.parent / "folder.html"):
        (run.parent / "folder.html").mkdir(exist_ok=True)
        with pytest.raises(OSError, match="not possible to write a file there. Received: "):
            report(run, path)
    monkeypatch.setattr("keras_vit.report.write.page", lambda facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report(run, tmp_path / "old.html")
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]
    assert (tmp_path / "old.html").read_text() == "old"


@pytest.mark.parametrize("right, said", [(True, "There is no mistake"), (False, "No answer is right")])
def test_all_right_all_wrong_and_one_image(right, said, run, tmp_path):
    model, *_ = load_run(run)
    images = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 1))
    answers = np.asarray(model(images)).argmax(-1)
    text = report(run, tmp_path / "one.html", arrays=(images, answers if right else (answers + 1) % 10)).read_text()
    assert said in text and "measured on 1 images" in text and 'id="map"' not in text


def test_a_file_outside_of_a_run_is_shown_without_a_recipe(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load_run(run).model.save("mine.keras")
    with pytest.raises(ValueError, match="'mine.keras' has no data: it is outside a run directory. Pass .*`arrays`"):
        report("mine.keras")
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1))
    path = report("mine.keras", arrays=(images, np.arange(12) % 10))
    text = path.read_text()
    assert str(path) == os.path.join("mine", "report.html") and "<h1>mine</h1>" in text
    assert "recipe" not in text[text.rindex("</script>") :] and "Trained" not in text


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (390, "dark")])
def test_the_page_works_in_a_browser(written, width, scheme):
    with chromium() as browser:
        page, wrong = watched(browser, width, scheme=scheme)
        page.goto(written.as_uri())
        page.wait_for_selector("#map .scatterlayer .point")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        over = "chart => chart.querySelector('.main-svg').clientWidth - chart.clientWidth"
        over = page.evaluate(f"[...document.querySelectorAll('.chart')].map({over})")
        assert set(over) == {0}  # each is as wide as what holds it, before any resize
        colour = page.evaluate("getComputedStyle(document.body).color")
        assert page.evaluate("getComputedStyle(document.querySelector('.xtick text')).fill") == colour

        picture = "document.querySelector('#attention .layer-above image').href.baseVal"
        first = page.evaluate(picture)
        page.locator("#attention").scroll_into_view_if_needed()
        box = page.locator("#attention .slider-rail-rect").bounding_box()
        page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2)
        page.wait_for_function(f"first => {picture} != first", arg=first)
        assert page.evaluate(picture).startswith("data:image/jpeg")
        assert page.locator("#attention .slider-label").first.text_content() != "images"

        if width == 1280:
            page.locator("#map").scroll_into_view_if_needed()
            page.locator("#map .scatterlayer .point").first.hover(force=True)
            page.wait_for_selector("#map .hoverlayer .hovertext")
            assert "called" in page.locator("#map .hoverlayer").text_content()
        page.get_by_text("optim", exact=True).click()
        assert page.get_by_text("learning_rate").first.is_visible()
        assert not wrong
