import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow as tf

from keras_vit.data.augment import references
from keras_vit.data.augment.cuts import Cut

RNG = np.random.default_rng(0)
SEED = tf.constant([1, 2], "int64")


def test_a_reference_is_near_its_image_and_stays_in_range(monkeypatch):
    images = tf.constant(np.kron(RNG.integers(0, 256, (3, 8, 8, 3)), np.ones((1, 8, 8, 1))), "float32")
    made = references.referenced({"images": images}, 12, SEED)
    assert made["references"].shape == made["images"].shape == (3, 40, 40, 3)
    assert 0 <= np.min(made["references"]) <= np.max(made["references"]) <= 255
    assert np.abs(made["references"] - made["images"]).mean() > 5
    monkeypatch.setattr(references, "SHIFT", 0.0)
    monkeypatch.setattr(references, "TURN", 0.0)
    same = references.referenced({"images": images}, 12, SEED)
    assert np.abs(same["references"] - made["images"])[:, 2:-2, 2:-2].mean() < 6  # but for the edges of squares


def test_given_references_are_cut_as_their_images():
    image = RNG.integers(0, 256, (20, 30, 3)).astype("uint8")
    cut = Cut(tf.constant([20, 30]), (4, 6), (8, 12), (8, 12), None, tf.constant(True))
    found = references.cut_reference(tf.constant(image), cut, (8, 12))
    np.testing.assert_array_equal(found, image[4:12, 6:18][:, ::-1])
    png = tf.io.encode_png(image)
    np.testing.assert_array_equal(references.cut_reference(png, cut, (8, 12)), found)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the size of its image"):
        references.cut_reference(png, cut._replace(shape=tf.constant([20, 31])), (8, 12))
    given = references.referenced({"images": tf.zeros((1, 20, 30, 3)), "references": png[None]}, 4, SEED)
    np.testing.assert_array_equal(given["references"][0], image[4:-4, 4:-4])
    gray = references.referenced({"images": tf.zeros((1, 20, 30, 1)), "references": tf.zeros((1, 20, 30, 3))}, 4, SEED)
    assert gray["references"].shape == (1, 12, 22, 1)


def test_some_help_nothing():
    given = {"images": 200 + tf.zeros((400, 2, 2, 1)), "references": tf.range(400.0)[:, None, None, None] / 4}
    given["references"] = tf.tile(given["references"], (1, 4, 4, 1))
    found = references.some_useless(given, SEED)["references"].numpy()
    assert found.shape == (400, 4, 4, 1)
    found = found[:, 0, 0, 0] * 4
    own, itself = found == np.arange(400), found == 800
    other = ~own & ~itself
    assert 60 < other.sum() < 140 and 25 < itself.sum() < 80
    np.testing.assert_array_equal(found[other], (np.arange(400)[other] - 1) % 400)
