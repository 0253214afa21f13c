import keras
import numpy as np
import pytest

from keras_vit import text_tower, two_towers, vit
from tests.checkpoints.helpers import randomized, unexpected

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
PIXELS, IDS = RNG.integers(0, 256, (3, 8, 8, 3)).astype("uint8"), RNG.integers(0, 20, (5, 6)).astype("int32")


def image(**options):
    return vit("mu/4", image_size=8, **{"num_classes": 12, **options})


def text(**options):
    sizes = dict(vocabulary=20, length=6, width=16, depth=1, num_heads=2, end=2, projection=12)
    return text_tower(**{**sizes, **options})


def answers(model, images=PIXELS, texts=IDS):
    return keras.ops.convert_to_numpy(model({"images": images, "texts": texts}, training=False))


@pytest.mark.parametrize("bias", [None, -2.0])
def test_logits_are_scaled_cosines_of_the_towers(bias):
    towers = randomized(image()), randomized(text())
    model = two_towers(*towers, scale=1.5, bias=bias)
    assert [model.get_layer(name).name for name in ("image", "text", "similarity")] == ["image", "text", "similarity"]
    assert [tower.name for tower in towers] == ["vit_mu_4", "text"]  # those that were passed keep their names
    images, texts = (keras.ops.convert_to_numpy(tower(x)) for tower, x in zip(towers, (PIXELS, IDS)))
    cosines = (images / np.linalg.norm(images, axis=1)[:, None]) @ (texts / np.linalg.norm(texts, axis=1)[:, None]).T
    np.testing.assert_allclose(answers(model), np.exp(1.5) * cosines + (bias or 0), atol=1e-5)
    assert model.output_shape == (None, None) and {x.name for x in model.inputs} == {"images", "texts"}


def test_trains_compiled_saves_and_loads(tmp_path):
    towers = randomized(image(metadata={"labels": ["a"] * 12})), randomized(text(metadata={"tokens": "clip"}))
    model = two_towers(*towers, bias=-1.0)
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=True)
    before = answers(model)
    texts, wanted = IDS[:3], np.eye(3, dtype="float32")
    assert np.isfinite(model.train_on_batch({"images": PIXELS, "texts": texts}, wanted))
    assert not np.allclose(answers(model), before)
    model.save(tmp_path / "towers.keras")
    loaded = keras.models.load_model(tmp_path / "towers.keras")
    np.testing.assert_array_equal(answers(loaded), answers(model))
    assert [weight.path for weight in loaded.weights] == [weight.path for weight in model.weights]
    assert loaded.get_layer("text").get_layer("words").metadata == {"tokens": "clip"}
    assert loaded.get_layer("image").get_layer("rescale").metadata["labels"] == ["a"] * 12
    assert loaded.get_layer("similarity").logit_bias is not None


def test_a_head_of_zeros_is_drawn_and_another_kept():
    """From zeros, the first gradients would be a million times the later ones."""
    towers = image(), text()
    assert not np.any(keras.ops.convert_to_numpy(towers[0].get_layer("head").kernel))
    found = answers(two_towers(*towers, scale=0.0))
    assert np.abs(found).max() <= 1.001 and np.std(found) > 1e-3
    kernel = keras.ops.convert_to_numpy(towers[0].get_layer("head").kernel)
    two_towers(*towers)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(towers[0].get_layer("head").kernel), kernel)


def test_mixed_precision_gives_logits_in_float32():
    model = two_towers(image(dtype="mixed_bfloat16"), text(dtype="mixed_bfloat16"))
    assert model.dtype_policy.name == "mixed_bfloat16"
    logits = randomized(model)({"images": PIXELS, "texts": IDS})
    assert keras.backend.standardize_dtype(logits.dtype) == "float32" and tuple(logits.shape) == (3, 5)


def test_bad_towers():
    both = two_towers(image(), text())
    wrong = [
        ((text(), image()), r"`image` must be .* a tensor of 4 axes, .*Received: 'text' with shapes"),
        ((image(), image()), "`text` must be a functional Keras model from texts, a tensor of 2 axes"),
        ((image(pooling="none"), text()), "to vectors .batch, width.. Received: 'vit_mu_4'"),
        ((both, text()), "`image` must be a functional Keras model"),
        (("clip", text()), "Received: 'clip'"),
        ((image(num_classes=9), text()), "vectors of one width. Received: 9 of images and 12 of texts"),
    ]
    assert not unexpected([(lambda towers=towers: two_towers(*towers), says) for towers, says in wrong])
