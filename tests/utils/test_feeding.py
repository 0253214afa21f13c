import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import explain, plots
from keras_vit.runs import trained
from keras_vit.utils import feeding

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3)).astype("uint8")


@pytest.fixture
def model():
    found = keras_vit.vit("mu/4", image_size=8, num_classes=3, depth=1)
    found.get_layer("head").kernel.assign(np.random.default_rng(1).normal(size=found.get_layer("head").kernel.shape))
    return found


@pytest.fixture
def three_devices(monkeypatch):
    """Three devices that refuse what they do not divide, as `keras.distribution.DataParallel` on JAX."""
    monkeypatch.setattr(feeding, "replicas", lambda: 3)
    sizes = []
    for name in ("predict", "predict_on_batch"):
        real = getattr(keras.Model, name)

        def divided(self, inputs, batch_size=None, real=real, **more):
            count = len(keras.tree.flatten(inputs)[0])
            sizes.append(count)
            assert count % 3 == 0 and (batch_size is None or batch_size % 3 == 0)
            return real(self, inputs, **({} if batch_size is None else {"batch_size": batch_size}), **more)

        monkeypatch.setattr(keras.Model, name, divided)
    return sizes


def test_every_number_of_images_is_divided(model, three_devices, tmp_path):
    """All functions that feed a model give it a number that the devices divide, and answer for what was asked."""
    outputs = keras.ops.convert_to_numpy(model(IMAGES))
    vectors = explain.embed(model, IMAGES)
    assert vectors.shape[0] == 5
    np.testing.assert_allclose(explain.embed(model, IMAGES, batch_size=2), vectors, atol=1e-5)
    for count in (1, 3, 5):
        np.testing.assert_allclose(feeding.run(model, IMAGES[:count]), outputs[:count], atol=1e-5)
        np.testing.assert_allclose(feeding.predict(model, IMAGES[:count], 2), outputs[:count], atol=1e-5)
        np.testing.assert_allclose(trained.forward(model)(IMAGES[:count]), outputs[:count], atol=1e-5)
    for i, image in enumerate(IMAGES):
        keras.utils.save_img(tmp_path / f"{i}.png", image, scale=False)
    index = keras_vit.load_index(keras_vit.embed_folder(tmp_path, model, tmp_path / "all.npz", batch_size=2))
    np.testing.assert_allclose(index.vectors, vectors, atol=1e-5)
    model.get_layer("rescale").metadata["labels"] = ["a", "b", "c"]
    titles = [axis.get_title("left") for axis in plots.plot_attention(model, IMAGES).axes if axis.images][::2]
    assert titles == ["abc"[i] for i in outputs.argmax(-1)]
    assert plots.plot_worst(model, IMAGES, (outputs.argmax(-1) + 1) % 3).axes
    assert three_devices and len(set(three_devices)) == 2  # 3 and 6


def test_inputs_that_are_dictionaries(three_devices):
    a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    added = keras.Model({"a": a, "b": b}, keras.layers.Add()([a, b]))
    given = {"a": np.ones((4, 2), "float32"), "b": np.arange(8, dtype="float32").reshape(4, 2)}
    np.testing.assert_array_equal(feeding.predict(added, given), given["a"] + given["b"])


def test_one_device_is_given_what_is_asked():
    assert feeding.replicas() == 1
    assert feeding._padded(IMAGES)[1] is IMAGES
