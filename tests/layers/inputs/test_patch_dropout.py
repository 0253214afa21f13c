import keras
import numpy as np
import pytest

from keras_vit import PatchDropout, TransformerBlock, vit
from tests.harness import run_layer_test
from tests.marks import few, first_everywhere, how, slow_on_jax

pytestmark = pytest.mark.backend

TOKENS = np.arange(2 * 11 * 3, dtype="float32").reshape(2, 11, 3)  # one prefix token, ten patches


def test_layer(tmp_path):
    run_layer_test(
        lambda dtype: PatchDropout(0.3, num_prefix=1, dtype=dtype), (4, 11, 3), (4, 11, 3), tmp_path=tmp_path
    )


def test_a_random_part_stays_in_order_and_the_prefix_too():
    layer = PatchDropout(0.3, num_prefix=1, seed=1)
    first, second = (np.asarray(layer(TOKENS, training=True)) for _ in range(2))
    assert first.shape == (2, 8, 3)
    for found in (first, second):
        for kept, given in zip(found, TOKENS, strict=True):
            np.testing.assert_array_equal(kept[0], given[0])
            places = [np.flatnonzero((given == token).all(-1))[0] for token in kept]
            assert places == sorted(set(places))
    assert not np.array_equal(first, second) and not np.array_equal(first[0] + 33, first[1])
    counts = np.zeros(11)
    for _ in range(300):
        counts += np.isin(TOKENS[0, :, 0], np.asarray(layer(TOKENS, training=True))[0, :, 0])
    assert counts[0] == 300 and (abs(counts[1:] / 300 - 0.7) < 0.12).all()  # four standard errors are 0.106


def test_the_share_is_of_the_patches_that_come():
    layer = PatchDropout(0.5, num_prefix=1)
    assert [layer(np.zeros((2, n, 3)), training=True).shape[1] for n in (17, 9, 17)] == [9, 5, 9]


def test_inference_keeps_all_and_training_one_at_least():
    np.testing.assert_array_equal(np.asarray(PatchDropout(0.5, num_prefix=0)(TOKENS, training=False)), TOKENS)
    assert PatchDropout(0.99, num_prefix=1)(TOKENS, training=True).shape == (2, 2, 3)
    assert PatchDropout(0.05, num_prefix=0)(TOKENS, training=True).shape == (2, 10, 3)


@few(2)
@slow_on_jax
@pytest.mark.parametrize(
    "more",
    first_everywhere(
        {}, {"pooling": "gap"}, {"pooling": "map"}, {"tokens": {"distilled": True}}, {"tokens": {"registers": 2}}
    ),
)
def test_a_model_trains_on_fewer_tokens_and_infers_as_without(more, monkeypatch):
    arguments = {"image_size": 16, "num_classes": 3, **more}
    model, plain = vit("mu/4", patch_dropout=0.5, **arguments), vit("mu/4", **arguments)
    plain.set_weights([weight for weight in model.get_weights() if weight.dtype.kind == "f"])
    x = np.random.default_rng(0).uniform(0, 255, (4, 16, 16, 3)).astype("float32")
    np.testing.assert_array_equal(model(x), plain(x))
    seen, call = [], TransformerBlock.call
    monkeypatch.setattr(TransformerBlock, "call", lambda self, x, **more: seen.append(x.shape) or call(self, x, **more))
    model(x, training=True)
    assert seen[0][1] == plain.get_layer("block_0").input.shape[1] - 8
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **how(not more))
    before = model.get_weights()
    model.fit(x, np.arange(4) % 3, epochs=2, verbose=0)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert any(not np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))


@pytest.mark.parametrize(
    "more", [{"rotary": "dinov3", "position": None}, {"position": "relative"}, {"pooling": "none"}, {"pooling": "last"}]
)
def test_what_needs_every_patch_is_refused(more):
    with pytest.raises(ValueError, match="Patch dropout needs positions .* Received: patch_dropout=0.5"):
        vit("mu/4", image_size=16, patch_dropout=0.5, **more)


@pytest.mark.parametrize("rate", [-0.1, 1.0, "0.1"])
def test_bad_rate_is_named(rate):
    with pytest.raises(ValueError, match="Received: rate="):
        PatchDropout(rate)


def test_a_bad_prefix_is_named():
    with pytest.raises(ValueError, match="`num_prefix` must be an integer, 0 or more. Received: num_prefix=-1"):
        PatchDropout(0.5, num_prefix=-1)
