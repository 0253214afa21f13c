import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit.frozen.embedder import Embedder
from tests.marks import slow

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 12, 8, 3)).astype("uint8")


def test_batches_do_not_change_vectors(model):
    wanted = np.asarray(model(IMAGES))
    for batch_size in (1, 2, 8):
        np.testing.assert_allclose(Embedder(model, batch_size=batch_size)(IMAGES), wanted, atol=1e-5)


@slow
def test_a_model_without_pooling_is_pooled_if_it_is_named():
    assert Embedder("nuclei").shape == (96,)
    assert Embedder("nuclei", tokens=True).shape == (16, 16, 96)
    bare = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, pooling="none")
    with pytest.raises(ValueError, match="must compute one vector for each image.*; pass tokens=True"):
        Embedder(bare)


def test_fingerprints_differ_where_vectors_do(model):
    known = Embedder(model).fingerprint()
    assert known == Embedder(model, batch_size=3).fingerprint()
    larger = keras_vit.vit("mu/4", image_size=(16, 8), num_classes=0, depth=2, pooling="gap")
    assert known != Embedder(larger).fingerprint() != Embedder(model, tokens=True).fingerprint() != known
    changed = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=2, pooling="gap")
    changed.set_weights(model.get_weights())
    assert known == Embedder(changed).fingerprint()
    changed.weights[0].assign(changed.weights[0] + 1e-3)
    assert known != Embedder(changed).fingerprint()


def test_an_image_alone_and_none(model):
    assert Embedder(model)(IMAGES[0]).shape[0] == 1
    with pytest.raises(ValueError, match="`images` must contain an image. Received: an empty list"):
        Embedder(model)([])
    with pytest.raises(FileNotFoundError, match="There is no file 'nowhere.png'"):
        Embedder(model)(["nowhere.png"])


def test_what_is_no_weight_counts_too():
    weights = None
    seen = set()
    for options in (
        {},
        {"pooling": "gap"},
        {"mean": 0.4},
        {"num_heads": 4},
        {"block": {"gelu": "exact"}},
        {"norm": {"epsilon": 1e-3}},
    ):
        built = keras_vit.vit("mu/4", image_size=8, num_classes=0, tokens={"class_token": True}, **options)
        weights = weights or built.get_weights()
        built.set_weights(weights)
        seen.add(Embedder(built).fingerprint())
    assert len(seen) == 6


def test_dropout_and_precision_do_not_count():
    plain = keras_vit.vit("mu/4", image_size=8, num_classes=0)
    trained = keras_vit.vit("mu/4", image_size=8, num_classes=0, dropout=0.1, stochastic_depth=0.2)
    trained.set_weights(plain.get_weights())
    assert Embedder(plain).fingerprint() == Embedder(trained).fingerprint()


def test_a_model_of_bfloat16_and_one_that_ends_in_pre_logits():
    assert len(Embedder(keras_vit.vit("mu/4", image_size=8, dtype="bfloat16")).fingerprint()) == 32
    built = keras_vit.vit("mu/4", image_size=8, num_classes=0, representation_size=5)
    assert Embedder(built).shape == (5,)


def test_a_model_of_clips_embeds_files_of_clips(tmp_path):
    model = keras_vit.video_vit("mu/4", frames=4, tubelet=2, image_size=8, num_classes=0)
    random = np.random.default_rng(0)
    for i in range(3):  # fewer than a batch
        frames = [Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype="uint8")) for _ in range(4)]
        frames[0].save(tmp_path / f"{i}.gif", save_all=True, append_images=frames[1:], duration=100)
    path = keras_vit.embed_folder(tmp_path, model, tmp_path / "vectors.npz")
    clips = keras_vit.preprocess(model, [tmp_path / f"{i}.gif" for i in range(3)])
    np.testing.assert_allclose(keras_vit.load_index(path).vectors, keras_vit.explain.embed(model, clips), atol=1e-5)
