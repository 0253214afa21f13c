import numpy as np
import pytest

from keras_vit.export.examples import drawn, sample
from keras_vit.traits import Traits
from tests.export.small import IMAGES, OF_TEXTS, tiny

IDS = np.array([[3, 4, 1, 0, 0, 0]] * 5)


def test_random_examples_are_what_a_model_takes():
    text, both, image = OF_TEXTS["text"](), OF_TEXTS["answers"](), tiny()
    ids = drawn(Traits(text))
    assert ids.shape == (8, 6) and ids.dtype == "int32" and ids.min() >= 0 and ids.max() < 10
    ended = (ids == 1).argmax(1)  # that the model's pooling looks for
    assert (ids == 1).any(1).all() and len(set(ended)) > 2 and (ids[np.arange(6) > ended[:, None]] == 0).any()
    pair = drawn(Traits(both), 3)
    assert pair["images"].shape == (3, 12, 8, 3) and pair["texts"].shape == (3, 6)
    np.testing.assert_array_equal(pair["images"], drawn(Traits(image), 3))
    assert drawn(Traits(image)).dtype == "float32" and drawn(Traits(image)).max() > 250


def test_the_caller_s_examples_are_checked():
    text, both = OF_TEXTS["text"](), OF_TEXTS["answers"]()
    assert sample(Traits(text), IDS).dtype == sample(Traits(text), {"texts": IDS}).dtype == "int32"
    given = sample(Traits(both), {"images": IMAGES, "texts": IDS})
    np.testing.assert_array_equal(given["images"], IMAGES)
    np.testing.assert_array_equal(given["texts"], IDS)
    for model, images, message in (
        (text, IDS + 9, r"ids of the model's table, integers \(batch, 6\) from 0 to below 10. Received: .* to 13"),
        (text, IDS - 1, "values from -1 to 3"),
        (text, IDS * 1.0, "dtype=float64"),
        (text, IDS[:, :5], r"Received: shape=\(5, 5\)"),
        (text, IDS[:0], r"Received: shape=\(0, 6\)"),
        (text, ["a"], "Received: shape=.*dtype=<U1"),
        (both, IMAGES, "must be a dictionary of 'images', 'texts'. Received: ndarray"),
        (both, {"images": IMAGES}, "must be a dictionary of 'images', 'texts'. Received: 'images'"),
        (
            both,
            {"images": IMAGES, "texts": IDS[:3]},
            "must have as many examples each. Received: {'images': 5, 'texts': 3}",
        ),
        (tiny(), {"texts": IDS}, "must be a dictionary of 'images'. Received: 'texts'"),
    ):
        with pytest.raises(ValueError, match=message):
            sample(Traits(model), images)
