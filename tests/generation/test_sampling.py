import warnings

import keras
import numpy as np
import pytest

from keras_vit import dit, sample, vit
from keras_vit.generation.sampler import drawn
from tests.dits import SIZES, small
from tests.harness import POLICIES

pytestmark = pytest.mark.backend


def test_noise_depends_on_the_seed_and_the_place_alone():
    model = small()
    images = sample(model, ["cat", "dog", None], steps=2, guidance=1.5, seed=4)
    noise = np.random.default_rng(4).standard_normal((3, 8, 12, 1), "float32")
    expected = np.clip(np.rint((drawn(model, noise, np.array([0, 1, 3]), 2, 1.5) + 1) * 127.5), 0, 255)
    np.testing.assert_array_equal(images, expected)
    assert images.dtype == "uint8" and 0 < images.mean() < 255
    np.testing.assert_array_equal(sample(model, 0, steps=2, guidance=1.5, seed=4), images[:1])
    for labels in (np.array([0, 1, 3]), keras.ops.convert_to_tensor([0, 1, 3]), (np.int64(0), 1, 3)):
        np.testing.assert_array_equal(sample(model, labels, steps=2, guidance=1.5, seed=4, batch_size=2), images)
    assert sample(model, np.array(1), steps=1).shape == (1, 8, 12, 1)
    assert (sample(model, 0, steps=2, guidance=1.5, seed=5) != images[0]).any()
    path = sample(model, [0, 1], steps=2, guidance=1.5, seed=4, path=True)
    assert path.shape == (2, 3, 8, 12, 1) and (path[:, -1] == images[:2]).all()


@pytest.mark.parametrize("path", [False, True])
def test_a_guidance_that_saturates_images_is_warned_of(path):
    """Once; a factor that images bear, and the model's own velocity, are not."""
    model = small()
    with pytest.warns(UserWarning, match=r"too large: \d+% of the values .* Received: guidance=1e\+30$") as warned:
        images = sample(model, [0, 1, 2], steps=2, guidance=1e30, batch_size=1, path=path)
    assert len(warned) == 1 and set(np.unique(images[:, -1] if path else images)) <= {0, 255}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(model, [0, 1, 2], steps=2, guidance=1.5, path=path)
        sample(model, [0, 1, 2], steps=2, guidance=1.0, path=path)


def test_names_come_before_numbers_as_words():
    model = small()
    np.testing.assert_array_equal(sample(model, "7", steps=1), sample(model, 2, steps=1))


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (4, {}, "`labels` must be classes, 0 to 2, 'cat', 'dog', '7'; 3 or None for none. Received: 4"),
        ([0, -1], {}, "Received: -1"),
        (["horse"], {}, "Received: 'horse'"),
        ([1.5], {}, "Received: 1.5"),
        (np.float32([1.0]), {}, "Received: 1.0"),
        (np.array([True]), {}, "Received: True"),
        (np.zeros((2, 2), int), {}, r"`labels` must be one for each image. Received: shape=\(2, 2\)"),
        (object(), {}, "`labels` must be classes.* Received: <object"),
        ([True], {}, "Received: True"),
        ([], {}, "`labels` must have a class for each image. Received: none"),
        (0, {"guidance": -0.5}, "`guidance` must be a finite number, 0 or more. Received: guidance=-0.5"),
        (0, {"guidance": np.nan}, "`guidance` must be a finite number, 0 or more. Received: guidance=nan"),
        (0, {"steps": 0}, "`steps` must be a positive integer. Received: steps=0"),
        (0, {"method": "rk4"}, "`method` must be .*'euler'.*Received: .*'rk4'"),
        (0, {"seed": -1}, "`seed` must be an integer, 0 or more"),
    ],
)
def test_what_cannot_be_drawn(labels, options, message):
    with pytest.raises(ValueError, match=message):
        sample(small(), labels, **{"steps": 1, **options})


def test_a_model_that_always_saw_the_class():
    model = small(metadata={"gives": {"head": "velocity"}, "unguided": True})
    assert sample(model, 0, steps=1, guidance=1).shape == (1, 8, 12, 1)
    with pytest.raises(ValueError, match="label_drop=0, has no guidance: it must be 1. Received: guidance=2.0"):
        sample(model, 0, steps=1)


def test_other_models():
    with pytest.raises(ValueError, match="Images are drawn with a DiT, as of `Generate`. Received: 'vit_mu_4'"):
        sample(vit("mu/4", image_size=8), 0)
    with pytest.raises(ValueError, match="comes with its autoencoder .* Received: 'dit_cu.*', which does not say what"):
        sample(dit(**SIZES), 0)
    broken = small()
    broken.get_layer("head").pixels.bias.assign(np.full(16, np.nan))
    with pytest.raises(ValueError, match="The model must return finite numbers. Received: NaN or infinity of"):
        sample(broken, 0, steps=1)


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_half_precision_is_near(policy):
    """The path is integrated in float32."""
    model = small()
    other = small(dtype=policy)
    other.set_weights(model.get_weights())
    differences = np.abs(sample(model, [0, 1], steps=4) - sample(other, [0, 1], steps=4).astype("float32"))
    assert 0 < differences.mean() < 4
