import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.demo.drawing import from_drawing
from tests.demo.pages import drawn


def test_a_drawing_is_read_wherever_it_is(digits, mnist):
    images, classes = digits
    images = [np.asarray(Image.fromarray(image.astype("uint8")).resize((32, 32))) for image in images]  # smooth strokes
    right = {}
    for source in ("tfds:mnist", "somewhere else"):
        given = [from_drawing(drawn(image, 104, 150, 20), (28, 28, 1), source) for image in images]
        right[source] = (np.asarray(mnist(np.stack(given))).argmax(-1) == classes).mean()
    assert right["tfds:mnist"] > 0.9 and right["somewhere else"] < 0.6


def test_a_drawing_lies_as_in_mnist(digits):
    for image in digits[0]:
        given = from_drawing(drawn(image, 200, 10, 70), (28, 28, 1), "tfds:mnist")[..., 0]
        rows, columns = (np.flatnonzero(given.max(axis)) for axis in (1, 0))
        assert max(np.ptp(rows), np.ptp(columns)) + 1 in (19, 20)  # the outermost may be all but black
        middle = np.average(np.arange(28) + 0.5, weights=given.sum(1))
        assert abs(middle - 14.5) <= 0.5 or rows[0] == 0 or rows[-1] == 27


def test_a_drawing_lies_as_in_digits(digits):
    for image in digits[0]:
        given = from_drawing(drawn(255.0 * (image > 127), 104, 150, 20), (8, 8, 1), "digits")
        again = from_drawing(drawn(given[..., 0]), (8, 8, 1), "digits")
        assert given.shape == (8, 8, 1) and given[[0, -1]].max(axis=(1, 2)).min() > 0
        assert np.corrcoef(given.ravel(), again.ravel())[0, 1] > 0.85


def test_an_unknown_source_gets_the_whole_pad():
    square = np.zeros((4, 4))
    square[0, 3] = 255
    given = from_drawing(drawn(square), (16, 12, 1), "folder:x")
    assert given.shape == (16, 12, 1) and given.dtype == "float32"
    assert given[:3, 10:].min() == 255 and given[6:].max() == 0 and given[:, :7].max() == 0


def test_nothing_is_drawn():
    pad = drawn(np.zeros((8, 8)))
    assert from_drawing(pad, (28, 28, 1), "tfds:mnist") is None
    pad[100:200, 100:200, :3] = 255
    pad[..., 3] = 0  # white, but transparent
    assert from_drawing(pad, (28, 28, 1), "tfds:mnist") is None
