import keras
import numpy as np
import pytest
from PIL import Image
from scipy.special import expit

import keras_vit
from keras_vit.models.segment_outputs import resized
from tests import clipsegs, owls
from tests.checkpoints.helpers import unexpected
from tests.marks import slow, slow_on_jax
from tests.towers import LENGTH, WORDS

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
PHOTOS = [RNG.integers(0, 256, shape).astype("uint8") for shape in ((30, 20, 3), (12, 40, 3), (24, 24, 3))]
TEXTS = ["red car", "a cat"]


def by_hand(model, photo, texts=TEXTS):
    """Returns the logits of a photo with texts, `(side, side, texts)`."""
    ids = keras_vit.tokenizer(WORDS, LENGTH)(texts)
    small = np.asarray(Image.fromarray(photo).resize([clipsegs.SIDE] * 2, Image.Resampling.BILINEAR), "float32")
    return np.asarray(model({"images": small[None], "texts": ids}, training=False))[0]


@pytest.mark.parametrize("refined", [False, pytest.param(True, marks=slow)])
def test_probabilities_have_the_size_of_each_photo(refined):
    model = clipsegs.shared(refined)
    results = keras_vit.segment_prompts(model, PHOTOS, TEXTS, WORDS, batch_size=2)
    assert len(results) == 3
    for found, photo in zip(results, PHOTOS):
        assert found.shape == (*photo.shape[:2], 2) and found.dtype == "float32"
        np.testing.assert_allclose(found, resized(expit(by_hand(model, photo)), photo.shape[:2]), atol=1e-5)
    whole = expit(by_hand(model, PHOTOS[2]))
    if not refined:
        np.testing.assert_allclose(results[2], whole, atol=1e-5)  # its size is the model's
    assert results[0].min() > 0 and results[0].max() < 1


def test_texts_and_examples_in_one_list(tmp_path):
    model, image = clipsegs.shared(), clipsegs.shared().get_layer("image")
    keras.utils.save_img(tmp_path / "b.png", PHOTOS[1], scale=False)
    vectors = keras_vit.prompt_vectors(model, [PHOTOS[0], "a cat", tmp_path / "b.png"], WORDS)
    assert vectors.shape == (3, clipsegs.UNITS) and vectors.dtype == "float32"
    embedded = np.asarray(image(keras_vit.preprocess(keras.Model(image.input, image.outputs[0]), PHOTOS[:2]))[0])
    np.testing.assert_allclose(vectors[::2], embedded, atol=1e-5)
    ids = keras_vit.tokenizer(WORDS, LENGTH)(["a cat"])
    np.testing.assert_allclose(vectors[1:2], np.asarray(model.get_layer("text")(ids)), atol=1e-5)
    mixed = np.stack([vectors[1], 0.3 * vectors[0] + 0.7 * vectors[1]])
    [found] = keras_vit.segment_prompts(model, PHOTOS[2], mixed)
    [alone] = keras_vit.segment_prompts(model, PHOTOS[2], ["a cat"], WORDS)
    np.testing.assert_allclose(found[..., :1], alone, atol=1e-5)
    assert abs(found[..., 0] - found[..., 1]).max() > 1e-3


@slow_on_jax
def test_the_segmenter_has_the_same_masks(tmp_path):
    model = clipsegs.shared()
    built = keras_vit.zero_shot_segmenter(model, TEXTS, WORDS)
    assert keras_vit.class_names(built) == tuple(TEXTS) and built.output_shape == (None, 24, 24, 2)
    pixels = keras_vit.preprocess(built, PHOTOS)
    found = np.asarray(built(pixels))
    for logits, photo in zip(found, PHOTOS):
        np.testing.assert_allclose(logits, by_hand(model, photo), atol=1e-4)
    built.save(tmp_path / "segmenter.keras")
    again = keras.models.load_model(tmp_path / "segmenter.keras")
    np.testing.assert_allclose(np.asarray(again(pixels)), found, atol=1e-6)
    before = [np.asarray(weight) for weight in model.get_weights()]
    built.set_weights([weight * 0 for weight in built.get_weights()])
    assert all(np.array_equal(*pair) for pair in zip(before, model.get_weights()))  # they are copies


@slow_on_jax
def test_a_segmenter_of_examples_needs_names():
    model = clipsegs.shared()
    built = keras_vit.zero_shot_segmenter(model, [PHOTOS[0], "a cat"], WORDS, names=["valve", "cat"])
    assert keras_vit.class_names(built) == ("valve", "cat")
    calls = [
        (lambda: keras_vit.zero_shot_segmenter(model, [PHOTOS[0]]), "without, all prompts must be texts. Received"),
        (lambda: keras_vit.zero_shot_segmenter(model, TEXTS, WORDS, names=["one"]), "for each of 2 prompts.*Received"),
        (lambda: keras_vit.zero_shot_segmenter(model, TEXTS, WORDS, names=["a", "a"]), "given once. Received"),
    ]
    assert not unexpected(calls)


@slow
@pytest.mark.parametrize("refined", [False, True])
@pytest.mark.parametrize("name, file", [("tflite", "m.tflite"), ("onnx", "m.onnx"), ("openvino", "m.xml"),
                                        ("saved_model", "m")])  # fmt: skip
def test_the_segmenter_is_exported(refined, name, file, tmp_path):
    pytest.importorskip("tensorflow")
    built = keras_vit.zero_shot_segmenter(clipsegs.shared(refined), TEXTS, WORDS)
    pixels = keras_vit.preprocess(built, PHOTOS)
    report = getattr(keras_vit, f"export_{name}")(built, tmp_path / file, images=pixels)
    assert report.max_abs_diff < 1e-3


def test_bad_input():
    model, call = clipsegs.shared(), keras_vit.segment_prompts
    endless = np.full((1, clipsegs.UNITS), np.nan, "float32")
    calls = [
        (lambda: call(owls.shared(), PHOTOS, TEXTS, WORDS), "must segment what texts say, .*Received: 'open_detector'"),
        (lambda: call(model, PHOTOS, []), "`prompts` must contain a text or an example. Received: an empty list"),
        (lambda: call(model, PHOTOS, "a cat", WORDS), "`prompts` must be a list or tuple. Received: prompts='a cat'"),
        (lambda: call(model, PHOTOS, [3]), "A prompt must be a text, or an image: .*Received: 3"),
        (lambda: call(model, PHOTOS, ["a cat", " "], WORDS), "Each text must have a word. Received"),
        (lambda: call(model, PHOTOS, TEXTS), "no table of words: pass `tokens`"),
        (
            lambda: call(model, PHOTOS, np.ones((2, 3), "float32")),
            "finite floats, .prompts, 5.*shape=.2, 3.",
        ),
        (lambda: call(model, PHOTOS, endless), "Embeddings of prompts must be finite floats"),
        (lambda: call(model, [], TEXTS, WORDS), "`images` must contain an image. Received: an empty list"),
        (lambda: call(model, PHOTOS, TEXTS, WORDS, batch_size=0), "Received: batch_size=0"),
    ]
    assert not unexpected(calls)
