import base64
import io
import re
from xml.dom import minidom

import numpy as np
import pytest
from PIL import Image

from keras_vit import plots
from keras_vit.reporting import inline as embed
from tests.marks import slow

LABELS, POINTS = [0, 2, 0], np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.5]])
NAMES = ["<b>&", "never", "$x_$ #000000"]


def test_points_have_their_text_and_names_are_escaped():
    hints = {"class_0": ["first <i>", "third"], "class_2": ["second"]}
    written = embed.svg(plots.plot_embedding(POINTS, LABELS, NAMES), "map", hints)
    drawing = minidom.parseString(written)
    points = [use for use in drawing.getElementsByTagName("use") if use.getElementsByTagName("title")]
    titles = {use.firstChild.firstChild.data: float(use.getAttribute("x")) for use in points}
    assert titles["first <i>"] < titles["second"] < titles["third"]
    words = [text.firstChild.data for text in drawing.getElementsByTagName("text")]
    assert words == ["<b>&", "$x_$ #000000"]  # as they are: no formula, and no color


@pytest.mark.filterwarnings("error")
def test_names_in_any_script_are_text():
    assert "猫" in embed.svg(plots.plot_confusion([0, 1], [0, 1], ["猫", "b"]), "confusion")


def test_a_figure_takes_the_colors_of_the_page():
    written = embed.svg(plots.plot_history({"loss": [2.0, 1.0]}), "history")
    styles = re.findall(r'style="([^"]*)"', written)
    assert any("stroke: currentColor" in style for style in styles)
    assert not any("#000000" in style or "fill: #ffffff" in style for style in styles)
    matrix = embed.svg(plots.plot_confusion([0, 0, 0, 1], [0, 0, 1, 1]), "confusion")
    (cell,) = [line for line in matrix.split("<text")[1:] if line.split(">")[1].startswith("1<") and "7px" in line][:1]
    assert "fill: #010101" in cell  # dark on a light cell in both schemes


def test_figures_share_no_id():
    figures = [embed.svg(plots.plot_history({"loss": [2.0, 1.0]}), name) for name in ("first", "second")]
    first, second = (set(re.findall(r'id="([^"]*)"', written)) for written in figures)
    assert first and not first & second
    for written in figures:
        used = set(re.findall(r'(?:href="|url\()#([^")]*)', written))
        assert used <= set(re.findall(r'id="([^"]*)"', written))
    assert figures[0] == embed.svg(plots.plot_history({"loss": [2.0, 1.0]}), "first")


@slow
def test_a_figure_of_a_thousand_classes_is_small():
    many = np.arange(1000)
    names = [f"class {i}" for i in many]
    figure = plots.plot_confusion(many, many, names)
    assert len(embed.svg(figure, "confusion")) < 500_000
    points = np.random.default_rng(0).normal(size=(1000, 2))
    hints = {f"class_{i}": [f"image {i}"] for i in many}
    assert len(embed.svg(plots.plot_embedding(points, many, names), "map", hints)) < 1_000_000


def test_an_image_is_a_data_url():
    address = embed.jpeg(np.full((4, 8, 3), 255, "uint8"))
    image = Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/jpeg;base64,"))))
    assert image.size == (8, 4) and np.asarray(image).min() > 250
