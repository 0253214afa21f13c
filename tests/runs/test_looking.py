import json
import re

import keras
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import explain, plots
from keras_vit.runs import looking


def test_a_classifier(run, tmp_path, monkeypatch):
    drawn, real = [], plots.plot_attention
    monkeypatch.setattr(plots, "plot_attention", lambda *given: drawn.append(given[2:]) or real(*given))
    pictures = looking.explain(run, folder=tmp_path)
    [(titles, method)] = drawn
    assert method == "relevance" and all(re.fullmatch(r"\d(, predicted \d)? \(\d+%\)", title) for title in titles)
    assert [p.name for p in pictures] == ["attention.png", "curves.png"]
    assert all(p.stat().st_size > 5000 for p in pictures)


def test_a_run_on_arrays_has_no_pictures_of_its_own(run):
    data = json.loads((run / "data.json").read_text())
    (run / "data.json").write_text(json.dumps({**data, "arrays": True}))
    with pytest.raises(ValueError, match="Pass image files"):
        looking.explain(run)


def test_each_letter_that_was_written_has_a_picture(tmp_path, monkeypatch):
    """Letters include the space, and what comes after the end is not drawn."""
    from matplotlib import get_data_path

    font = ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", 20)
    for text in ("Ab 12", "word"):
        image = Image.new("RGB", (round(font.getlength(text)) + 8, 28), "white")
        ImageDraw.Draw(image).text((4, 2), text, "black", font)
        image.save(tmp_path / f"{text}.png")
    drawn, real = [], plots.plot_words
    monkeypatch.setattr(plots, "plot_words", lambda *given: drawn.append(given) or real(*given))
    found = looking.explain("lines", [tmp_path / "Ab 12.png", tmp_path / "word.png"], tmp_path / "drawn")
    assert [path.name for path in found] == ["attention.png"]
    [(_, maps, words, titles)] = drawn
    assert words == [[*"Ab 12"], [*"word"]] and maps.shape == (2, 17, 1, 40)
    assert titles[0].startswith("Ab 12 (")
    centers = (maps[0, :5, 0] * np.arange(40)).sum(1) / maps[0, :5, 0].sum(1)
    assert (np.diff(centers) > 0).all()  # from left to right


def test_a_text_is_found_in_an_image(tmp_path):
    """By the model that ships: the map is that of `attention_of_text`, and the title has the similarity."""
    found = keras_vit.load_run("emoji")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3)).astype("uint8")
    texts = ["a cat", "a red heart"]
    maps = looking.similarity_of(found.model, pixels, found.ids_of(texts, 2)["texts"])
    expected = explain.attention_of_text(found.model, pixels, texts)
    np.testing.assert_allclose(maps, [expected[0, 0], expected[1, 1]], atol=1e-5)
    for i, image in enumerate(pixels):
        keras.utils.save_img(tmp_path / f"{i}.png", image, scale=False)
    files = [tmp_path / "0.png", tmp_path / "1.png"]
    for given in ("a cat", texts):
        assert looking.explain(found, files, tmp_path / "drawn", texts=given) == [tmp_path / "drawn" / "attention.png"]
