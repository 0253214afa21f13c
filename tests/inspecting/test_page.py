import re

from keras_vit.inspecting import page
from keras_vit.inspecting.inspect import inspect_index
from tests.inspecting.conftest import an_index, picture, save
from tests.inspecting.test_inspect import clusters


def test_pictures_stand_side_by_side(divided):
    html = page.render(inspect_index(divided))
    figures = re.findall("<figure>.*?</figure>", html, re.DOTALL)
    assert [len(re.findall("<img", figure)) for figure in figures] == [0, 2, 2, 2, 2]
    assert "train/cat/bad.png" in figures[0] and "is not a PNG" in figures[0]
    assert "http" not in re.sub('data:[^"]*', "", html) and "Remarks" in html


def test_names_are_escaped_and_long_lists_are_cut(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(page, "SHOWN", 2)
    for i in range(5):
        save(picture(0), tmp_path / "a" / f"<b>{i}&.png")
    html = page.render(inspect_index(tmp_path))
    assert "&lt;b&gt;1&amp;.png" in html and "<b>1" not in html and "The first 2 of 4" in html
    assert html.count("<figure>") == 2


def test_pictures_that_are_gone_are_named_alone(tmp_path):
    vectors, kinds = clusters()
    names = [f"{'ab'[kind]}/{i}.png" for i, kind in enumerate(kinds)]
    names[4] = "b/4.png"
    html = page.render(inspect_index(an_index(tmp_path / "gone", names, vectors)))
    assert "b/4.png" in html and "rather <b>a</b>" in html and "<img" not in html


def test_nothing_found_is_said(tmp_path, cache):
    for i in range(3):
        save(picture(i), tmp_path / f"{i}.png")
    assert "Nothing was found." in page.render(inspect_index(tmp_path))
