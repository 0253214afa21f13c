import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.tasks.pretrain.masked import MaskedAutoencoder, MaskedLoss
from tests.checkpoints.helpers import unexpected
from tests.marks import first_everywhere, once, slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES, NOISE = RNG.integers(0, 256, (3, 8, 12, 3)).astype("uint8"), RNG.random((3, 24)).astype("float32")
X = {"images": IMAGES, "noise": NOISE}
SMALL = dict(image_size=(8, 12), patch_size=2, num_classes=0)
MASKED = NOISE.argsort(1).argsort(1) >= 6  # a quarter of 24 stay


def encoder(**more):
    return vit("mu", **{**SMALL, **more})


def learner(model=None, **more):
    return MaskedAutoencoder(model or encoder(), **{"width": 16, "depth": 1, "num_heads": 2, **more})


def numpy(x):
    return keras.ops.convert_to_numpy(x)


def patches(images):
    """Patches of 2 x 2 pixels, one by one."""
    cut = [images[:, r : r + 2, c : c + 2].reshape(len(images), -1) for r in range(0, 8, 2) for c in range(0, 12, 2)]
    return np.stack(cut, axis=1)


@slow_on_jax
@pytest.mark.parametrize(
    "more",
    first_everywhere(
        dict(tokens={"registers": 2}),
        {},
        dict(pooling="gap"),
        dict(tokens={"distilled": True}),
        dict(tokens={"pre_norm": True}),
        dict(block={"swiglu": True}),
    ),
    ids=str,
)
def test_only_visible_patches_are_seen(more):
    made = learner(encoder(**more))
    before = numpy(made(X))
    assert before.shape == (3, 24, 13) and made.output_shape == (None, 24, 13)
    np.testing.assert_array_equal(before[..., -1], MASKED)
    hidden = np.repeat(np.repeat(MASKED.reshape(3, 4, 6), 2, 1), 2, 2)[..., None]
    other = np.where(hidden, 255 - IMAGES, IMAGES)
    np.testing.assert_allclose(numpy(made({**X, "images": other})), before, atol=1e-6)
    assert np.abs(numpy(made({**X, "images": np.where(hidden, IMAGES, 255 - IMAGES)})) - before).max() > 1e-3
    surplus = np.concatenate([NOISE, np.zeros((3, 5), "float32")], 1)
    np.testing.assert_array_equal(numpy(made({**X, "noise": surplus})), before)


@slow_on_jax
def test_targets_and_loss_by_hand():
    model = encoder(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])
    plain, normalized = learner(model, normalize=False), learner(model)
    wanted = patches((IMAGES / 255 - [0.1, 0.2, 0.3]) / [0.4, 0.5, 0.6])
    np.testing.assert_allclose(numpy(plain.targets(IMAGES)), wanted, atol=1e-5)
    wanted = (wanted - wanted.mean(-1, keepdims=True)) / np.sqrt(wanted.var(-1, ddof=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(numpy(normalized.targets(IMAGES)), wanted, atol=1e-4)
    packed = numpy(normalized(X))
    errors = ((packed[..., :-1] - wanted) ** 2).mean(-1)
    expected = [errors[i][MASKED[i]].mean() for i in range(3)]
    np.testing.assert_allclose(numpy(MaskedLoss(reduction=None)(wanted, packed)), expected, rtol=1e-4)
    normalized.compile("sgd", MaskedLoss(), jit_compile=True)
    weights = np.float32([1, 0, 3])
    assert normalized.evaluate(X, IMAGES, verbose=0) == pytest.approx(np.mean(expected), rel=1e-3)
    weighted = normalized.evaluate(X, IMAGES, sample_weight=weights, verbose=0)
    assert weighted == pytest.approx(np.mean(expected * weights), rel=1e-3)


def test_a_step_trains_the_encoder_and_the_decoder():
    model = encoder(stochastic_depth=0.1, dropout=0.1)
    paths = [v.path for v in model.weights]
    made = learner(model)
    assert [v.path for v in model.weights] == paths and len({v.path for v in made.weights}) == len(made.weights)
    made.compile(keras.optimizers.Adam(0.02), MaskedLoss(), jit_compile=True)
    before = [numpy(v) for v in made.trainable_variables]
    losses = [float(made.train_on_batch(X, IMAGES)) for _ in range(6)]
    assert losses[-1] < 0.9 * losses[0]
    still = [v.path for v, old in zip(made.trainable_variables, before) if np.array_equal(numpy(v), old)]
    assert not still and "decoder/position" not in {v.path for v in made.trainable_variables}


@slow_on_jax
def test_saving(tmp_path):
    made = learner(encoder(tokens={"registers": 1}), mask_ratio=0.5, mlp_dim=24, normalize=False)
    made.save(tmp_path / "learner.keras")
    loaded = keras.models.load_model(tmp_path / "learner.keras")  # safe mode, no custom_objects
    assert {**loaded.get_config(), "model": None} == {**made.get_config(), "model": None}
    assert [v.path for v in loaded.weights] == [v.path for v in made.weights]
    np.testing.assert_array_equal(numpy(loaded(X)), numpy(made(X)))


@once
def test_mixed_precision_predicts_in_float32():
    made = learner(encoder(dtype="mixed_bfloat16"))
    assert made(X).dtype in ("float32", np.float32) and made.decoder.compute_dtype == "bfloat16"
    assert made.targets(IMAGES).dtype in ("float32", np.float32)
    made = learner(encoder(dtype="mixed_float16"))
    made.compile("sgd", MaskedLoss())
    assert isinstance(made.optimizer, keras.optimizers.LossScaleOptimizer)


@pytest.mark.parametrize("normalize", [True, False])
def test_reconstruct_undoes_the_targets(normalize, monkeypatch):
    made = learner(encoder(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6]), normalize=normalize)
    mask = MASKED[..., None].astype("float32")
    ideal = np.concatenate([numpy(made.targets(IMAGES)), mask], -1)
    monkeypatch.setattr(made, "predict", lambda *args, **kwargs: ideal)
    masked, again = made.reconstruct(IMAGES, NOISE)
    np.testing.assert_allclose(again, IMAGES, atol=0.1)
    color = patches(masked)[MASKED].reshape(-1, 3)
    np.testing.assert_allclose(color, np.broadcast_to(255 * np.array([0.1, 0.2, 0.3]), color.shape), atol=1e-4)
    np.testing.assert_array_equal(patches(masked)[~MASKED], patches(IMAGES)[~MASKED])


def test_reconstruct_keeps_visible_patches():
    made = learner()
    _, again = made.reconstruct(IMAGES, NOISE)
    np.testing.assert_array_equal(patches(again)[~MASKED], patches(IMAGES)[~MASKED])
    assert again.min() >= 0 and again.max() <= 255
    np.testing.assert_array_equal(made.reconstruct(IMAGES)[0], made.reconstruct(IMAGES)[0])


def test_bad_input():
    made = learner()
    with pytest.raises(ValueError, match="a number for each of 24 patches. Received: shape=.3, 3."):
        made({**X, "noise": NOISE[:, :3]})
    assert not unexpected(
        [
            (lambda: learner(encoder(num_classes=3)), "no head: num_classes=0. Received: num_classes=3"),
            (lambda: learner(vit("mu/4", **{**SMALL, "patch_size": None}, stem=((8, 2),))), "must have no stem"),
            (lambda: learner(encoder(pooling="gap", final_norm="after")), "final_norm='after'"),
            (lambda: learner(encoder(pooling="map")), "pooling='map'"),
            (lambda: learner(encoder(rotary="dinov3")), "no rotary positions"),
            (lambda: learner(encoder(position="relative")), "no relative positions"),
            (lambda: learner(encoder(representation_size=True)), "no layer between pooling and head"),
            (lambda: learner(keras.Sequential([keras.layers.Dense(1)])), "must be a model from `keras_vit.vit`"),
            (lambda: learner(mask_ratio=0.99), "at least one of 24 patches visible .* Received: mask_ratio=0.99"),
            (lambda: learner(mask_ratio=0.0), "one masked"),
            (lambda: learner(width=18), "multiple of 4"),
            (lambda: learner(encoder(patch_size=1, channels=1)), "patches of one number"),
            (lambda: made.reconstruct(IMAGES, NOISE[:2]), r"must have the shape \(3, 24\)"),
            (lambda: made.reconstruct(IMAGES[:, :4]), "must have the shape that the model takes"),
        ]
    )


@once
@pytest.mark.parametrize("given", [np.zeros((2, 8, 8, 3), "uint8"), {"images": np.zeros((2, 8, 8, 3), "uint8")}])
def test_without_noise_it_says_what_is_missing(given):
    learner = MaskedAutoencoder(vit("mu/4", image_size=8, depth=1, num_classes=0), width=8, depth=1, num_heads=2)
    learner.compile("adam", MaskedLoss(), jit_compile=False)
    with pytest.raises(ValueError, match=r"dictionary of `images` and `noise`.*\(batch, 4\)"):
        learner.fit(given, np.zeros((2, 8, 8, 3), "uint8"), verbose=0)
