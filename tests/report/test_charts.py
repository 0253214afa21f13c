import base64
import io

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("plotly")

from keras_vit.explain import calibration
from keras_vit.report import charts

LABELS, NAMES = np.array([0, 0, 1, 2]), ["a", "<b>", "c"]
PROBABILITIES = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])


def test_curves_are_those_of_the_history():
    history = {"loss": [2.0, 1.0], "val_loss": [3.0, 2.0], "images_per_second": [10.0, 11.0], "minutes_left": [1, 0]}
    found = charts.curves(history)
    assert list(found) == ["loss", "images a second"]
    assert [list(trace.y) for trace in found["loss"].data] == [[2, 1], [3, 2]]
    assert list(found["loss"].data[0].x) == [1, 2]


def test_confusion_and_classes():
    (trace,) = charts.confusion(LABELS, PROBABILITIES.argmax(-1), NAMES).data
    assert [list(row) for row in trace.z] == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]] and trace.x is None
    assert [list(row) for row in trace.text] == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    figure = charts.per_class(LABELS, PROBABILITIES, NAMES)
    recall, precision = figure.data
    assert figure.layout.yaxis.ticktext == ("a (2)", "&lt;b&gt; (1)", "c (1)")
    assert recall.x == (0.5, 1, 1) and precision.x == (1, 0.5, 1)


def test_equal_long_and_many_names():
    figure = charts.confusion([0, 1, 2], [0, 1, 2], ["crane", "crane", "x" * 60])
    assert figure.layout.xaxis.ticktext == ("crane", "crane", "x" * 23 + "…")
    many = np.arange(200)
    figure = charts.confusion(many, many, [f"class {i}" for i in many])
    assert len(figure.layout.yaxis.ticktext) == 40 and figure.data[0].text is None
    assert len(charts.per_class(many, np.eye(200), many).data[0].x) == 40


def test_calibration_has_a_bar_for_each_bin_with_images():
    _, bars = charts.calibration(calibration(LABELS, PROBABILITIES, bins=10)).data
    assert list(bars.x) == [0.55, 0.65, 0.75] and list(bars.y) == [0, 1, 1]


def test_embedding_tells_each_point():
    traces = charts.embedding(np.arange(8.0).reshape(4, 2), LABELS, PROBABILITIES, NAMES).data
    assert [trace.name for trace in traces] == ["a", "&lt;b&gt;", "c"]
    assert traces[0].text[1] == "image 1: a, called &lt;b&gt; (60%)" and traces[2].x == (6.0,)


def test_distance_has_a_point_for_each_head():
    (trace,) = charts.distance(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).data
    assert trace.x == (0, 0, 1, 1, 2, 2) and trace.y == (1, 2, 3, 4, 5, 6)
    assert trace.text[3] == "block 1, head 1"


def test_the_slider_shows_one_picture_at_a_time():
    steps = {"first": np.zeros((4, 8, 3), "uint8"), "second": np.full((4, 8, 3), 255, "uint8")}
    figure = charts.gallery(steps)
    (slider,) = figure.layout.sliders
    assert [step.label for step in slider.steps] == ["first", "second"]
    address = slider.steps[1].args[0]["images[0].source"]
    held = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    assert held.size == (8, 4) and np.asarray(held).min() > 250
    assert figure.layout.images[0].source == slider.steps[0].args[0]["images[0].source"]
