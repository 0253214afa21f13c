import keras
import numpy as np
import pytest
from scipy.special import expit, softmax

import keras_vit
from keras_vit.explain.class_vectors import PROMPTS
from tests.marks import slow, slow_on_jax
from tests.towers import LENGTH, WORDS, two_towers

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 12, 8, 3)).astype("uint8")
CLASSES = ["cat", "dog", "red car"]
KINDS = [pytest.param(None, True, id="clip"), pytest.param(-2.0, False, id="siglip")]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def logits_of(model, prompts):
    """Returns the logits of images and classes by the towers themselves."""
    tokens, image, text = keras_vit.tokenizer(WORDS, LENGTH), model.get_layer("image"), model.get_layer("text")
    embed = lambda tower, given: unit(keras.ops.convert_to_numpy(tower(given)))  # noqa: E731
    means = [embed(text, tokens([prompt.format(name) for prompt in prompts])).mean(0) for name in CLASSES]
    similarity = model.get_layer("similarity")
    logits = np.exp(float(similarity.logit_scale)) * embed(image, IMAGES) @ unit(np.array(means)).T
    return logits if similarity.logit_bias is None else logits + float(similarity.logit_bias)


@pytest.mark.parametrize(("bias", "head"), KINDS)
@pytest.mark.parametrize("prompts", [pytest.param(PROMPTS, marks=slow_on_jax), ("a photo of a {}.", "a {}", "{}")])
def test_probabilities_are_the_towers_own(bias, head, prompts):
    model = two_towers(bias, head)
    found = keras_vit.zero_shot(model, IMAGES, CLASSES, WORDS, prompts=prompts)
    wanted = softmax(logits_of(model, prompts), -1) if bias is None else expit(logits_of(model, prompts))
    np.testing.assert_allclose(found.probabilities, wanted, atol=1e-5)
    assert found.classes == CLASSES and found.kind == ("softmax" if bias is None else "sigmoid")


@pytest.mark.parametrize(("bias", "head"), KINDS)
def test_the_classifier_has_the_same_logits(bias, head, tmp_path):
    model = two_towers(bias, head)
    built = keras_vit.zero_shot_classifier(model, CLASSES, WORDS)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(built(IMAGES)), logits_of(model, PROMPTS), atol=1e-4)
    assert keras_vit.class_names(built) == tuple(CLASSES) and built.layers[-1].name == "head"
    assert "labels" not in model.get_layer("image").get_layer("rescale").metadata
    built.save(tmp_path / "zero.keras")
    again = keras.models.load_model(tmp_path / "zero.keras")
    np.testing.assert_allclose(keras.ops.convert_to_numpy(again(IMAGES)), keras.ops.convert_to_numpy(built(IMAGES)))
    for refused in (lambda: keras_vit.from_checkpoint(tmp_path / "zero.keras"),
                    lambda: keras_vit.save_checkpoint(built, tmp_path / "zero.npz", format="google")):  # fmt: skip
        with pytest.raises(ValueError, match="a classifier by the names of classes, whose embeddings have length 1"):
            refused()


@slow
@pytest.mark.parametrize(("bias", "head"), KINDS)
def test_the_classifier_predicts_and_exports(bias, head, tmp_path):
    pytest.importorskip("tensorflow")
    built = keras_vit.zero_shot_classifier(two_towers(bias, head), CLASSES, WORDS)
    report = keras_vit.export_tflite(built, tmp_path / "zero.tflite", images=IMAGES.astype("float32"))
    assert report.max_abs_diff < 1e-3 and (tmp_path / "zero.tflite").exists()
    built.save(tmp_path / "zero.keras")
    keras.utils.save_img(tmp_path / "a.png", IMAGES[0], scale=False)
    [answers] = keras_vit.predict(tmp_path / "zero.keras", [tmp_path / "a.png"])
    found = keras_vit.zero_shot(two_towers(bias, head), tmp_path / "a.png", CLASSES, WORDS)
    wanted = dict(zip(CLASSES, found.probabilities[0]))
    assert answers and all(abs(wanted[name] - value) < 1e-4 for name, value in answers)


def test_an_image_that_cannot_be_read_is_skipped(tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no image")
    keras.utils.save_img(tmp_path / "a.png", IMAGES[0], scale=False)
    files = [tmp_path / "bad.png", tmp_path / "a.png"]
    with pytest.warns(UserWarning, match="Left out 1 of 2 images"):
        found = keras_vit.zero_shot(two_towers(), files, CLASSES, WORDS, bad_images="skip").probabilities
    assert np.isnan(found[0]).all() and abs(found[1].sum() - 1) < 1e-5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"classes": []}, "`classes` must be two names or more. Received: classes=\\[\\]"),
        ({"classes": ["cat"]}, "`classes` must be two names or more. Received: classes=\\['cat'\\]"),
        ({"classes": ["cat", "dog", "cat"]}, "Each class must be given once. Received: 'cat' twice"),
        ({"classes": "cat"}, "`classes` must be a list or tuple. Received: classes='cat'"),
        ({"classes": ["cat", " "]}, "Each class and each prompt must be a text. Received: ' '"),
        ({"classes": ["cat", "a\nb"]}, "A class name must be one line of UTF-8"),
        ({"prompts": "a photo"}, "Each prompt must have {} instead of the name. Received: \\['a photo'\\]"),
        ({"prompts": ()}, "Each prompt must have {} instead of the name. Received: \\[\\]"),
        ({"prompts": ["{} {} {} {} {} {} {} {} {}"]}, "at most 8 tokens: shorten it, .* in 'cat cat"),
        ({"model": keras_vit.vit("mu/4", image_size=8, num_classes=0)}, "an image tower and a text tower"),
    ],
)
def test_bad_input(more, said):
    given = {"model": two_towers(), "images": IMAGES, "classes": CLASSES, "tokens": WORDS, **more}
    with pytest.raises(ValueError, match=said):
        keras_vit.zero_shot(**given)
    given.pop("images")
    with pytest.raises(ValueError, match=said):
        keras_vit.zero_shot_classifier(**given)


def test_one_class_of_independent_probabilities():
    assert keras_vit.zero_shot(two_towers(bias=0.0), IMAGES, ["cat"], WORDS).probabilities.shape == (5, 1)
