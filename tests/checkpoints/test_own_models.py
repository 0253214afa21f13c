import numpy as np
import pytest

import keras_vit
from tests import captions
from tests.checkpoints.helpers import unexpected
from tests.marks import slow
from tests.towers import LENGTH, two_towers


@pytest.mark.parametrize("bias", [None, -2.0])
def test_towers_of_a_keras_file(tmp_path, bias):
    model = two_towers(bias)
    model.save(tmp_path / "towers.keras")
    given = {"images": np.full((3, 12, 8, 3), 70.0, "float32"), "texts": np.ones((2, LENGTH), "int32")}
    both = keras_vit.from_pretrained(tmp_path / "towers.keras", part="both")
    np.testing.assert_allclose(np.asarray(both(given)), np.asarray(model(given)), atol=1e-5)
    text = keras_vit.from_pretrained(tmp_path / "towers.keras", part="text")
    np.testing.assert_array_equal(np.asarray(text(given["texts"])), np.asarray(model.get_layer("text")(given["texts"])))


def test_what_has_no_towers(tmp_path):
    keras_vit.vit("mu/4", image_size=8).save(tmp_path / "image.keras")
    (tmp_path / "cut.keras").write_bytes((tmp_path / "image.keras").read_bytes()[:500])
    for path, more, message in (
        ("image.keras", {}, "must have an image tower, and a text tower or decoder. Received: 'vit_mu_4'"),
        ("cut.keras", {}, "is damaged, or not a Keras model"),
        ("image.keras", {"image_size": 16}, "are as they were saved; .* Received: part='both', image_size=16"),
    ):
        with pytest.raises(ValueError, match=message):
            keras_vit.from_pretrained(tmp_path / path, part="both", **more)
    with pytest.raises(FileNotFoundError, match="There is no file or folder '.*none.keras'"):
        keras_vit.from_pretrained(tmp_path / "none.keras", part="text")


def test_weights_and_words_of_equal_towers(tmp_path):
    words = ["<pad>", "<end>", *"abcdefghi", "<unknown>"]
    model, other = two_towers(words=words, seed=1), two_towers(seed=2)
    model.save(tmp_path / "towers.keras")
    keras_vit.load_weights(other, tmp_path / "towers.keras")
    for ours, theirs in zip(other.weights, model.weights):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    assert other.get_layer("text").get_layer("words").metadata["words"] == words
    with pytest.raises(ValueError, match=r"must have the sizes of the one to fill: 38 weights. Received: 37"):
        keras_vit.load_weights(two_towers(bias=-1.0), tmp_path / "towers.keras")
    with pytest.raises(ValueError, match="are loaded from a run or a .keras file.* Received: 'x.safetensors'"):
        keras_vit.load_weights(other, "x.safetensors")


@slow
def test_a_model_that_writes(tmp_path):
    model, path = captions.small(metadata={"words": ["<pad>", "<end>"]}), tmp_path / "writer.keras"
    model.save(path)
    given = {"images": np.full((2, 8, 8, 3), 70.0, "float32"), "texts": np.array([[2, 4], [2, 5]], "int32")}
    answer = np.asarray(model(given))
    for part in (None, "both"):
        np.testing.assert_allclose(np.asarray(keras_vit.from_pretrained(path, part=part)(given)), answer, atol=1e-5)
    text = keras_vit.from_pretrained(path, part="text")
    assert text.output_shape == (None, None, 30) and text.get_layer("words").metadata["words"] == ["<pad>", "<end>"]
    assert keras_vit.from_pretrained(path, part="image", image_size=16).output_shape == (None, 16, 32)
    other = captions.small()
    other.get_layer("image").set_weights([weight * 0 for weight in other.get_layer("image").get_weights()])
    keras_vit.load_weights(other, path)
    np.testing.assert_allclose(np.asarray(other(given)), answer, atol=1e-5)
    assert other.get_layer("text").get_layer("words").metadata["words"] == ["<pad>", "<end>"]
    with pytest.raises(
        ValueError, match="as they were saved; .*, part='image', .* can be adapted. Received: part=None, image_size"
    ):
        keras_vit.from_pretrained(path, image_size=16)
    with pytest.raises(ValueError, match="must have the sizes of the one to fill"):
        keras_vit.load_weights(two_towers(), path)
    assert not unexpected(
        [
            (lambda: keras_vit.from_pretrained(path, sha256="0" * 64), "SHA-256"),
            (lambda: keras_vit.load_weights(other, path, sha256="0" * 64), "SHA-256"),
            (
                lambda: keras_vit.from_checkpoint(path, format="timm", grid=7),
                r"part=None, format='timm', grid=\(7, 7\)",
            ),
            (lambda: keras_vit.load_weights(other, path, head="new"), "as they were saved. Received: head='new'"),
        ]
    )


def test_a_model_of_the_same_sizes_that_computes_something_else(tmp_path):
    captions.small(dropout=0.1).save(tmp_path / "writer.keras")
    for options, said in (
        (dict(gelu="exact", dropout=0.2), "block_0 with gelu='exact'. Received: block_0 with gelu='tanh'"),
        (dict(num_heads=2), "block_0 with num_heads=2. Received: block_0 with num_heads=4"),
    ):
        with pytest.raises(ValueError, match=f"must compute what the one to fill does: {said}"):
            keras_vit.load_weights(captions.small(**options), tmp_path / "writer.keras")


@pytest.mark.parametrize("options", [{"mask_context": True}, {"masked_id": 0}])
def test_a_model_with_other_masks_is_not_filled(options, tmp_path):
    """Its weights have the same shapes, and its layers the same options."""

    def translator(**options):
        sizes = dict(vocabulary=20, length=6, width=32, depth=1, num_heads=2, causal=False, pooling="none")
        source = keras_vit.text_tower(**sizes, masked_id=0)
        return keras_vit.captioner(source, captions.decoder(**options), start=2, end=3, pad=0)

    translator().save(tmp_path / "plain.keras")
    with pytest.raises(ValueError, match="compute what the one to fill does, such as with the same masks"):
        keras_vit.load_weights(translator(**options), tmp_path / "plain.keras")
    assert keras_vit.load_weights(translator(), tmp_path / "plain.keras")
