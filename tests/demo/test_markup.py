import base64
import io
import re

import numpy as np
from PIL import Image

from keras_vit.demo import markup


def plain(text):
    return " ".join(re.sub("<[^>]+>", " ", text).split())


def test_an_answer_has_a_heading_bars_rows_and_notes():
    said = markup.answer("cat", {"cat": 0.75, "dog": 0.25}, [("a bird", "0.1")], ["No more."])
    assert plain(said) == "cat cat 75.0% dog 25.0% a bird 0.1 No more."
    assert "width:75.0%" in said and markup.answer() == ""


def test_no_share_is_called_none_that_is_some():
    said = plain(markup.answer("cat", {"cat": 0.9996, "dog": 0.0004, "owl": 0.0}))
    assert said == "cat cat above 99.9% dog below 0.1% owl 0.0%"


def test_names_are_text():
    """Those of classes, of files and in questions come from others."""
    evil = "<img src=x onerror=alert(1)>"
    for made in (
        markup.answer(evil, {evil: 1.0}, [(evil, evil)], [evil]),
        markup.legend({evil: (0, 0, 0)}),
        markup.refusal(evil),
        markup.file_line(evil),
    ):
        assert "<img" not in made and "&lt;img" in made


def test_a_legend_is_bounded():
    colors = {f"class {i}": (i, 0, 0) for i in range(40)}
    assert markup.legend({}) == "" and "rgb(7, 0, 0)" in markup.legend(colors)
    assert plain(markup.legend(colors)).endswith("class 29 and 10 more")


def test_a_clip_plays():
    clip = np.zeros((5, 8, 8, 3), "float32") + np.arange(5).reshape(-1, 1, 1, 1) * 50
    tag = markup.animation(clip, np.random.default_rng(0).uniform(size=(5, 2, 2)))
    data = base64.b64decode(re.search('base64,([^"]+)', tag)[1])
    with Image.open(io.BytesIO(data)) as image:
        assert image.n_frames == 5 and image.format == "GIF"
