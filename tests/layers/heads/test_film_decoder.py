import keras
import numpy as np
import pytest

from keras_vit.layers import FiLMDecoder
from tests import clipsegs
from tests.checkpoints.helpers import unexpected
from tests.harness import run_layer_test
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
TOKENS = [RNG.normal(size=(2, 5, clipsegs.WIDTH)).astype("float32") for _ in clipsegs.BLOCKS]
CONDITIONS = RNG.normal(size=(3, clipsegs.UNITS)).astype("float32")
SMALL = dict(width=4, num_heads=2, mlp_dim=10)


def decoder(refined=False, **options):
    return FiLMDecoder((2, 2), clipsegs.PATCH, clipsegs.UNITS, refined=refined, **(SMALL | options))


def filled(layer, seed=0):
    """Returns a decoder with the random tensors of a file."""
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(0, 0.4, weight.shape) for weight in layer.get_weights()])
    return layer


@slow_on_jax
@pytest.mark.parametrize("refined", [False, True])
def test_as_every_layer(refined, tmp_path):
    def make(dtype):
        return decoder(refined, dtype=dtype, name="decoder", **(SMALL | {"width": 12}))

    inside = ("film_mul", "film_add", "reduce0", "reduce1", "block0", "block1")
    inside += ("conv", "up0", "up1") if refined else ("up",)
    shapes, side = [(2, 5, 8), (2, 5, 8), (3, 5)], 8 if refined else 16
    more = {"unknown": (None, side, side, None), "last": "up1" if refined else "up"}
    run_layer_test(make, shapes, (2, side, side, 3), inside, tmp_path, **more)


@pytest.mark.parametrize("at", [0, 1])
def test_conditions_may_be_a_weight(at):
    layer, kept = decoder(condition_at=at), decoder(condition_at=at, conditions=3)
    wanted = layer([*TOKENS, CONDITIONS])
    kept(TOKENS)
    kept.set_weights([CONDITIONS.T, *layer.get_weights()])
    np.testing.assert_allclose(np.asarray(kept(TOKENS)), np.asarray(wanted), atol=1e-5)


def test_each_condition_has_a_mask_of_its_own():
    layer = decoder()
    layer([*TOKENS, CONDITIONS])
    filled(layer)
    together = np.asarray(layer([*TOKENS, CONDITIONS]))
    for i in range(3):
        alone = np.asarray(layer([*TOKENS, CONDITIONS[i : i + 1]]))
        np.testing.assert_allclose(together[..., i : i + 1], alone, atol=1e-5)
    assert abs(together[..., 0] - together[..., 1]).max() > 0.01


@pytest.mark.parametrize("at", [0, 1])
def test_pairs_have_the_mask_of_their_own_condition(at):
    layer, paired = decoder(condition_at=at), decoder(condition_at=at, pairs=True)
    layer([*TOKENS, CONDITIONS])
    filled(layer)
    conditions = CONDITIONS[:2]
    assert paired([*TOKENS, conditions]).shape == (2, 16, 16, 1)
    paired.set_weights(layer.get_weights())
    every = np.asarray(layer([*TOKENS, conditions]))
    wanted = np.stack([every[0, ..., 0], every[1, ..., 1]])[..., None]
    np.testing.assert_allclose(np.asarray(paired([*TOKENS, conditions])), wanted, atol=1e-5)
    assert abs(every[0, ..., 0] - every[0, ..., 1]).max() > 0.01
    assert FiLMDecoder.from_config(paired.get_config()).pairs


def test_tokens_of_one_block():
    layer = FiLMDecoder((2, 2), 8, 5, conditions=2, **SMALL)
    model = keras.Sequential([keras.Input((5, 8)), layer])
    assert model.output_shape == (None, 16, 16, 2) and model(TOKENS[0]).shape == (2, 16, 16, 2)
    assert keras.models.clone_model(model).output_shape == (None, 16, 16, 2)


def test_bad_input():
    calls = [
        (lambda: decoder()([*TOKENS, CONDITIONS[:, :3]]), "Conditions must be .conditions, 5.. Received: shape .3, 3."),
        (lambda: decoder(condition_at=2)([*TOKENS, CONDITIONS]), "more than 2 blocks of tokens. Received: 2"),
        (lambda: decoder()([TOKENS[0], TOKENS[1][:, 1:], CONDITIONS]), "of one number from 4 on. Received: shapes"),
        (lambda: decoder()([TOKENS[0][:, 2:], CONDITIONS]), "of one number from 4 on. Received: shapes"),
        (lambda: FiLMDecoder((2, 2), 3, 5, refined=True), "at least 4 with refined=True. Received: patch_size=3"),
        (lambda: FiLMDecoder((2, 0), 8, 5), "Received: grid="),
        (lambda: decoder(pairs=True, conditions=2), "of pairs are an input. Received: pairs=True, conditions=2"),
    ]
    assert not unexpected(calls)
