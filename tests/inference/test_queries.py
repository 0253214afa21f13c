import numpy as np
import pytest

from keras_vit import example_queries, tokenizer
from keras_vit.inference.queries import Eyes, Queries, patch_of, queries_for
from tests import owls
from tests.checkpoints.helpers import unexpected
from tests.towers import LENGTH, WORDS, two_towers

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, shape).astype("uint8") for shape in ((12, 20, 3), (30, 9, 3), (16, 16, 3))]
BOXES = np.array([[0, 0, 0.9, 0.9], [0, 0, 1, 0.95], [0, 0, 0.3, 0.3], [0, 0, 0.95, 1]], "float32")
RAW = np.array([[3, 0], [0, 1], [-9, 0], [1, 1]], "float32")
SIDES = np.array([20, 10, 20, 10], "float32")  # of a picture 20 high and 10 wide


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.fixture(scope="module", params=[False, True], ids=["owlvit", "owlv2"])
def model(request):
    return owls.shared(request.param)


def embedded(model, image):
    """Returns the embeddings of an image's patches, boxes and objectness, by the model's own layers."""
    eyes = Eyes(model)
    [seen] = eyes.see([image], 1)
    objects = eyes.heads.get_layer("objectness")(seen.features) if len(eyes.heads.outputs) == 3 else None
    raw = np.asarray(eyes.heads.get_layer("logits").embed(seen.features))[0]
    return raw, seen.boxes[0], None if objects is None else np.asarray(objects)[0]


def test_which_patch_stands_for_an_example():
    assert patch_of(RAW, BOXES, None, None, SIDES) == 0  # near the whole picture, and least like the mean (-1.25, 0.5)
    assert patch_of(RAW, BOXES, np.array([0, 2, 9, 1]), None, SIDES) == 2
    assert patch_of(RAW, BOXES, None, np.array([0, 0, 3, 7], "float32"), SIDES) == 2  # left, top, right, bottom
    assert patch_of(RAW, BOXES, None, 3, SIDES) == 3
    far = BOXES + 2
    assert patch_of(RAW, far, None, None, SIDES) == 3  # by the generalized overlap: the largest box


def test_examples_of_a_name_are_averaged(model):
    found = example_queries(model, {"valve": [IMAGES[0], (IMAGES[1], 2)], "bolt": IMAGES[2]}, batch_size=2)
    assert found.classes == ["valve", "bolt"] and found.vectors.shape == (2, owls.UNITS)
    raw, boxes, objects = embedded(model, IMAGES[0])
    first = raw[patch_of(raw, boxes, objects, None, None)]
    second = embedded(model, IMAGES[1])[0][2]
    np.testing.assert_allclose(found.vectors[0], unit(unit(first) + unit(second)), atol=1e-5)


def test_a_box_is_in_pixels_of_the_picture(model):
    raw, boxes, _ = embedded(model, IMAGES[0])
    height, width = (20, 20) if Eyes(model).square else (12, 20)
    for patch in range(4):
        top, left, bottom, right = boxes[patch]
        box = (left * width, top * height, right * width, bottom * height)
        found = example_queries(model, {"valve": (IMAGES[0], box)})
        np.testing.assert_allclose(found.vectors[0], unit(raw[patch]), atol=1e-5)


def test_names_are_embedded_as_they_are_or_in_prompts():
    eyes = Eyes(owls.shared())
    plain = queries_for(eyes, ["cat", "dog"], WORDS, None)
    wanted = unit(np.asarray(eyes.text(tokenizer(WORDS, LENGTH)(["cat", "dog"]))))
    np.testing.assert_allclose(plain.vectors, wanted, atol=1e-5)
    assert plain.classes == ["cat", "dog"]
    alone = [queries_for(eyes, ["cat"], WORDS, prompt).vectors[0] for prompt in ("{}", "a photo of a {} .")]
    both = queries_for(eyes, ["cat"], WORDS, ["{}", "a photo of a {} ."])
    np.testing.assert_allclose(both.vectors[0], unit(np.sum(alone, axis=0)), atol=1e-5)


def test_bad_input(model):
    eyes = Eyes(model)
    queries = Queries(["a"], np.ones((1, 3)))
    calls = [
        (lambda: Eyes(two_towers()), "`model` must find what texts name, .* Received: 'two_towers'"),
        (lambda: example_queries(model, {}), "`examples` must map names to images. Received: {}"),
        (lambda: example_queries(model, {"a": []}), "Each name must have an example. Received: none of 'a'"),
        (lambda: example_queries(model, {" ": IMAGES[0]}), "must be a text. Received: ' '"),
        (lambda: example_queries(model, {"a": (IMAGES[0], (5, 5, 5, 9))}), "with an area, .* Received: "),
        (lambda: example_queries(model, {"a": (IMAGES[0], "all")}), "with an area, .* Received: 'all'"),
        (lambda: example_queries(model, {"a": (IMAGES[0], 4)}), "must be below 4. Received: 4"),
        (lambda: queries_for(eyes, queries, None, None), r"Queries must be finite, \(1, 6\), .*shape=\(1, 3\)"),
    ]
    assert not unexpected(calls)


def test_a_model_that_cuts_images_is_refused():
    model = owls.small()
    model.get_layer("image").get_layer("rescale").metadata = {"evaluation": {"resize": "crop", "crop_pct": 0.9}}
    with pytest.raises(ValueError, match="must see all of an image, .*Received: resize='crop'"):
        Eyes(model)
