"""Masked autoencoders of clips; those of images are in `test_masked`."""

import keras
import numpy as np
import pytest

from keras_vit import video_vit
from keras_vit.tasks.pretrain.layouts import ClipLayout, ImageLayout, layout_of
from keras_vit.tasks.pretrain.masked import MaskedAutoencoder, MaskedLoss
from tests.checkpoints.helpers import unexpected
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
CLIPS, NOISE = RNG.integers(0, 256, (3, 4, 4, 6, 3)).astype("float32"), RNG.random((3, 6)).astype("float32")
X = {"images": CLIPS, "noise": NOISE}
PLACES = NOISE.argsort(1).argsort(1) >= 3  # of 2 x 3 places, int(0.6 * 6) are masked
MASKED = np.concatenate([PLACES, PLACES], axis=1)  # at both times


def encoder(**more):
    sizes = dict(variant="mu", frames=4, tubelet=2, image_size=(4, 6), patch_size=2, num_classes=0)
    return video_vit(**{**sizes, "position": "sincos1d", "pooling": "gap", **more})


def learner(model=None, **more):
    given = {"mask_ratio": 0.6, "width": 18, "depth": 1, "num_heads": 3, **more}
    return MaskedAutoencoder(model or encoder(), **given)


def numpy(x):
    return keras.ops.convert_to_numpy(x)


def tubelets(clips):
    """Tubelets of 2 x 2 x 2 pixels, one by one: time, row, column; inside time, row, column, channel."""
    corners = [(t, r, c) for t in range(0, 4, 2) for r in range(0, 4, 2) for c in range(0, 6, 2)]
    return np.stack([clips[:, t : t + 2, r : r + 2, c : c + 2].reshape(len(clips), -1) for t, r, c in corners], axis=1)


@slow_on_jax
def test_a_mask_is_of_tubes_and_hides_what_is_in_them():
    made = learner()
    before = numpy(made(X))
    assert before.shape == (3, 12, 25) and made.output_shape == (None, 12, 25)
    np.testing.assert_array_equal(before[..., -1], MASKED)
    hidden = made.layout.joined(np.repeat(MASKED[..., None], 24, axis=2), CLIPS.shape)
    np.testing.assert_array_equal(tubelets(hidden).all(-1), MASKED)
    other = numpy(made({**X, "images": np.where(hidden, 255 - CLIPS, CLIPS)}))
    np.testing.assert_allclose(other, before, atol=1e-6)
    assert np.abs(numpy(made({**X, "images": np.where(hidden, CLIPS, 255 - CLIPS)})) - before).max() > 1e-3
    surplus = np.concatenate([NOISE, np.zeros((3, 5), "float32")], 1)
    np.testing.assert_array_equal(numpy(made({**X, "noise": surplus})), before)
    equal = numpy(made({**X, "noise": np.full((3, 6), 0.5, "float32")}))[..., -1]
    np.testing.assert_array_equal(equal[:, :6], equal[:, 6:])  # no tube is split
    assert (equal.sum(1) == 6).all()


@slow_on_jax
def test_targets_and_loss_by_hand():
    model = encoder(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])
    shares = tubelets(CLIPS / 255)
    np.testing.assert_allclose(numpy(learner(model, normalize=False).targets(CLIPS)), shares, atol=1e-5)
    cells = shares.reshape(3, 12, 8, 3)  # each channel by itself
    wanted = (cells - cells.mean(2, keepdims=True)) / (cells.std(2, ddof=1, keepdims=True) + 1e-6)
    made = learner(model)
    np.testing.assert_allclose(numpy(made.targets(CLIPS)), wanted.reshape(3, 12, 24), atol=1e-4)
    flat = numpy(made.targets(np.full_like(CLIPS, 7.0)))
    assert np.abs(flat).max() < 1  # a deviation of 0
    packed = numpy(made(X))
    errors = (packed[..., :-1] - wanted.reshape(3, 12, 24))[MASKED]
    assert float(MaskedLoss()(made.targets(CLIPS), packed)) == pytest.approx(np.mean(errors**2), rel=1e-4)


@slow_on_jax
def test_a_step_trains_the_encoder_and_the_decoder():
    made = learner(encoder(stochastic_depth=0.1, dropout=0.1, position="learned"))
    made.compile(keras.optimizers.Adam(0.02), MaskedLoss(), jit_compile=True)
    before = [numpy(v) for v in made.trainable_variables]
    losses = [float(made.train_on_batch(X, CLIPS)) for _ in range(6)]
    assert losses[-1] < 0.9 * losses[0]
    still = [v.path for v, old in zip(made.trainable_variables, before) if np.array_equal(numpy(v), old)]
    paths = {v.path for v in made.trainable_variables}
    assert not still and not {"decoder/position", "decoder/embed/bias"} & paths


@slow_on_jax
def test_saving(tmp_path):
    made = learner(encoder(block={"key_bias": False}), mlp_dim=24, normalize=False)
    made.save(tmp_path / "learner.keras")
    loaded = keras.models.load_model(tmp_path / "learner.keras")  # safe mode, no custom_objects
    assert {**loaded.get_config(), "model": None} == {**made.get_config(), "model": None}
    assert [v.path for v in loaded.weights] == [v.path for v in made.weights]
    np.testing.assert_array_equal(numpy(loaded(X)), numpy(made(X)))


@pytest.mark.parametrize("normalize", [True, False])
def test_reconstruct_undoes_the_targets(normalize, monkeypatch):
    made = learner(encoder(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6]), normalize=normalize)
    ideal = np.concatenate([numpy(made.targets(CLIPS)), MASKED[..., None]], -1)
    monkeypatch.setattr(made, "predict", lambda *args, **kwargs: ideal)
    masked, again = made.reconstruct(CLIPS, NOISE)
    np.testing.assert_allclose(again, CLIPS, atol=0.1)
    color = tubelets(masked)[MASKED].reshape(-1, 3)
    np.testing.assert_allclose(color, np.broadcast_to(255 * np.array([0.1, 0.2, 0.3]), color.shape), atol=1e-4)
    np.testing.assert_array_equal(tubelets(masked)[~MASKED], tubelets(CLIPS)[~MASKED])


def test_the_papers_shares():
    assert learner(mask_ratio=None).mask_ratio == 0.9 and learner(mask_ratio=None).visible == 2 * (6 - 5)
    sizes = {"image_size": (224, 224), "patch_size": (16, 16), "channels": 3}
    assert layout_of(sizes).visible == 49 and type(layout_of(sizes)) is ImageLayout
    clips = layout_of({**sizes, "frames": 16, "tubelet": 2})
    assert type(clips) is ClipLayout and clips.patches == 1568 and clips.visible == 8 * (196 - 176)
    assert clips.values == 1536 and clips.alike == 512


def test_bad_input():
    made = learner()
    with pytest.raises(ValueError, match="a number for each of 6 patches. Received: shape=.3, 3."):
        made({**X, "noise": NOISE[:, :3]})
    assert not unexpected(
        [
            (lambda: learner(encoder(num_classes=3)), "no head: num_classes=0. Received: num_classes=3"),
            (
                lambda: learner(encoder(time_depth=1, position="learned", pooling="token")),
                "no temporal encoder, .* Received: time_depth=1",
            ),
            (lambda: learner(encoder(final_norm="after")), "final_norm='after'"),
            (lambda: learner(mask_ratio=0.1), "at least one of 6 patches visible .* Received: mask_ratio=0.1"),
            (lambda: learner(mask_ratio=1.5), "mask_ratio"),
            (lambda: learner(encoder(patch_size=1, tubelet=1)), "patches of one number"),
            (lambda: learner(width=15), "must be even"),
            (lambda: made.reconstruct(CLIPS, NOISE[:2]), r"must have the shape \(3, 6\)"),
            (lambda: made.reconstruct(CLIPS[:, 0]), "must have the shape .batch, 4, 4, 6, 3."),
        ]
    )
