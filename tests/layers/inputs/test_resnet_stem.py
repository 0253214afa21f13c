import keras
import numpy as np
import pytest

from keras_vit import ResNetStem
from keras_vit.utils.keras_private import shapes_only
from tests.harness import run_layer_test
from tests.marks import few, slow_on_jax

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).normal(size=(2, 33, 24, 3)).astype("float32")


@few(1)
@slow_on_jax
@pytest.mark.parametrize("stages, shape", [((), (2, 9, 6, 32)), ((2, 1), (2, 5, 3, 256))])
def test_layer(stages, shape, tmp_path):
    make = lambda dtype: ResNetStem(stages, width=32, standardize="timm", dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, shape, ["root", "root_norm"], tmp_path=tmp_path)


@pytest.mark.parametrize(
    "stages, parameters", [((), 9_536), ((2, 2, 2, 2), 13_946_176), ((3, 4, 9), 11_894_848), ((3, 4, 6, 3), 23_508_032)]
)
def test_parameter_counts_are_the_published_ones(stages, parameters):
    def count():
        stem = ResNetStem(stages)
        stem.build((1, 224, 224, 3))
        return stem.count_params()

    assert shapes_only(count) == parameters


@slow_on_jax
def test_a_new_bottleneck_is_its_shortcut():
    stem = ResNetStem((1, 1), width=32)
    stem(IMAGES)
    x = np.random.default_rng(1).normal(size=(1, 4, 4, 128)).astype("float32")
    unit = stem.units[1]  # the last norm's scale starts at zero
    np.testing.assert_allclose(np.asarray(unit(x)), np.maximum(np.asarray(unit.shortcut_norm(unit.shortcut(x))), 0))


def test_pads_as_tensorflow_does():
    """Two of five rows of padding go above and three below, so that pixel 16 is seen by outputs 6 to 9, not 7 to 9."""
    stem = ResNetStem((), width=32)
    image = np.zeros((1, 32, 32, 3), "float32")
    image[0, 16, 16] = 1
    stem(image)
    seen = np.abs(np.asarray(stem.root(image))).sum((0, 3)) > 0
    assert [int(np.flatnonzero(seen.any(axis)).min()) for axis in (0, 1)] == [6, 6]
    assert [int(np.flatnonzero(seen.any(axis)).max()) for axis in (0, 1)] == [9, 9]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(stages=(2, 0)), r"stages\[1\]=0"),
        (dict(width=48), "width=48"),
        (dict(epsilon=0), "epsilon=0"),
        (dict(standardize="bit"), "standardize='bit'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ResNetStem(**arguments)


def test_is_built_from_its_config():
    stem = ResNetStem((3, 4, 9), epsilon=1e-5, standardize="timm", name="stem")
    assert keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(stem)).stages == (3, 4, 9)
