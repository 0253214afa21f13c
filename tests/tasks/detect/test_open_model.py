import dataclasses
import json

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.config import Augment, Data, Detect, Optim, Recipe
from keras_vit.runs.trained import Trained
from tests import owls
from tests.checkpoints.helpers import unexpected
from tests.marks import EAGERLY, slow, slow_on_jax
from tests.towers import WORDS

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (2, owls.SIDE, owls.SIDE, 3)).astype("float32")
BOXES = np.array([[[0.1, 0.2, 0.6, 0.5, 1], [0, 0, 0, 0, -1]], [[0, 0, 1, 1, 0], [0.5, 0.5, 0.7, 0.9, 0]]], "float32")
CLASSES = ("cat", "vehicle")
HEAD = {"kind": "open", "words": {"vehicle": "red car"}}
COMPILED = (slow, pytest.mark.compiled)
TASK = Detect(classes=CLASSES, head=HEAD, most=3)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """The file of an OWLv2 with a table of words."""
    path = tmp_path_factory.mktemp("owl") / "owl.keras"
    owls.small(True, words=WORDS).save(path)
    return str(path)


def model_of(start, task=TASK, **more):
    return task.model(weights=start, image_size=owls.SIDE, **more)


@slow_on_jax
@pytest.mark.parametrize("prompts", [None, ["a photo of a {}.", "{}"]])
def test_the_first_model_is_the_detector_of_the_words(start, prompts):
    task = dataclasses.replace(TASK, head={**HEAD, "prompts": prompts})
    model = model_of(start, task, name="mine")
    wanted = keras_vit.zero_shot_detector(owls.shared(True), ["cat", "red car"], WORDS, prompts=prompts, most=3)
    np.testing.assert_array_equal(np.asarray(model(IMAGES)), np.asarray(wanted(IMAGES)))
    assert model.name == "mine" and keras_vit.class_names(model) == CLASSES and task.fits(model)
    assert task.of_model(model) == task  # its own score


def test_published_files_are_a_start_at_any_size(tmp_path, monkeypatch):
    """Their tokenizer is read from where they are."""
    owls.folder_of(tmp_path, True)
    asked = []
    monkeypatch.setattr(
        "keras_vit.explain.towers.tokenizer",
        lambda source, length: asked.append(source) or (lambda texts: keras_vit.tokenizer(WORDS, length)(texts)),
    )
    model = TASK.model(weights=str(tmp_path), image_size=(24, 16), channels=3, dropout=0.2)
    assert asked == [str(tmp_path)] and model.get_layer("block_0").dropout == 0.2
    wanted = keras_vit.from_pretrained(tmp_path, image_size=(24, 16))
    ids = keras_vit.tokenizer(WORDS, 8)(["cat", "red car"])
    images = np.zeros((1, 24, 16, 3), "float32")
    found = np.asarray(TASK.learner(model)(images))
    answer = {name: np.asarray(value) for name, value in wanted({"images": images, "texts": ids}).items()}
    np.testing.assert_allclose(found, np.concatenate([answer["boxes"], answer["logits"]], -1), atol=1e-5)
    other = dataclasses.replace(TASK, head={**HEAD, "tokens": "elsewhere"})
    other.model(weights=str(tmp_path), image_size=16)
    assert asked[1:] == ["elsewhere"]


@slow_on_jax
@pytest.mark.parametrize("how", [{"run_eagerly": EAGERLY}, pytest.param({"jit_compile": True}, marks=COMPILED)])
def test_a_step_moves_all_weights_and_so_the_words(start, how):
    model = model_of(start)
    learner, before = TASK.learner(model), [np.array(w) for w in model.get_weights()]
    assert [v.path for v in learner.trainable_variables] == [v.path for v in model.trainable_variables]
    learner.compile(keras.optimizers.SGD(1e-2), **TASK.compiled(None), **how)
    losses = [learner.train_on_batch(IMAGES, BOXES, return_dict=True)["loss"] for _ in range(4)]
    assert losses[3] < losses[0]
    moved = {v.path: not np.array_equal(v, old) for v, old in zip(model.weights, before)}
    assert moved.pop("logits/queries") and moved.pop("norm/gamma") and sum(moved.values()) > len(moved) - 3


@slow_on_jax
def test_a_trained_detector_is_a_start_for_its_classes_in_any_order(start, tmp_path):
    first = model_of(start)
    first.set_weights([RNG.normal(0, 0.5, weight.shape) for weight in first.get_weights()])
    first.get_layer("block_0").trainable = False
    first.save(tmp_path / "first.keras")
    plain = Detect(classes=CLASSES[::-1], head="open", most=4)
    second = model_of(str(tmp_path / "first.keras"), plain)
    found, wanted = np.asarray(second(IMAGES))[:, :3], np.asarray(first(IMAGES))
    np.testing.assert_allclose(found, wanted[..., [0, 1, 2, 3, 5, 4]], atol=1e-6)
    assert len(second.trainable_variables) == len(second.weights) and keras_vit.class_names(second) == CLASSES[::-1]
    classifier = keras_vit.from_pretrained(tmp_path / "first.keras", part="image", num_classes=5, pooling="gap")
    assert classifier.output_shape == (None, 5)
    np.testing.assert_array_equal(
        np.asarray(classifier.get_layer("block_0").mlp.fc1.kernel),
        np.asarray(first.get_layer("block_0").mlp.fc1.kernel),
    )

    def start_of(classes=CLASSES, head="open", **more):
        task = Detect(classes=classes, head=head, most=3)
        return lambda: task.model(**{"weights": str(tmp_path / "first.keras"), "image_size": 16, **more})

    keras_vit.vit("mu/8", image_size=16, num_classes=2).save(tmp_path / "vit.keras")
    calls = [
        (start_of(("cat", "dog")), "has no words for other classes.*Received: 'dog', and weights of cat, vehicle"),
        (start_of(head=HEAD), "head.words, head.prompts and head.tokens are for a model with a text tower"),
        (start_of(image_size=24), r"as it was saved, of images \(16, 16\). Received: image_size=24"),
        (start_of(dtype="mixed_bfloat16"), "Received: image_size=.*, dtype='mixed_bfloat16'"),
        (start_of(weights=str(tmp_path / "vit.keras")), "model.weights must be an OWL-ViT or OWLv2, such as"),
    ]
    assert not unexpected(calls)


def test_what_does_not_start_from_such_weights_is_refused(start):
    def recipe(task=TASK, data=None, **model):
        parts = {"weights": start, "image_size": 16, **model}
        return lambda: keras_vit.config.check_recipe(Recipe("words", parts, task, data or Data(resize="pad")))

    recipe()()
    calls = [
        (recipe(weights=None), "starts from trained weights: model.weights must be an OWL-ViT.*Received: None"),
        (lambda: model_of("augreg-i21k"), "must be an OWL-ViT.*Received: 'augreg-i21k'"),
        (recipe(variant="B/16"), "model.weights determine the model. Received: variant='B/16'"),
        (recipe(head="new", channels=1), "Received: channels=1, head='new'"),
        (recipe(dataclasses.replace(TASK, head={**HEAD, "words": {"dog": "a dog"}})), "Received: 'dog', not among"),
        (recipe(data=Data(resize=20)), "Boxes are scored whole.*Received: data.resize=20"),
        (lambda: model_of(start, dataclasses.replace(TASK, most=5)), "at most the patches, 4. Received: most=5"),
    ]
    assert not unexpected(calls)


@pytest.fixture
def folder(tmp_path):
    """Photographs of several shapes in YOLO's layout, each with a bright object."""
    keras.utils.set_random_seed(0)
    for i, (rows, columns) in enumerate([(20, 30), (32, 16), (16, 16), (24, 40)]):
        image = np.full((rows, columns, 3), 40, "uint8")
        image[4:12, 2:14] = 250
        for kind in ("images", "labels"):
            (tmp_path / "set" / kind / "all").mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(tmp_path / "set" / "images" / "all" / f"{i}.png", image, scale=False)
        row = [i % 2, 8 / columns, 8 / rows, 12 / columns, 8 / rows]
        (tmp_path / "set" / "labels" / "all" / f"{i}.txt").write_text(" ".join(map(str, row)))
    (tmp_path / "set" / "data.yaml").write_text(f"train: images/all\nval: images/all\nnames: {[*CLASSES]}\n")
    return tmp_path / "set"


def squares(recipe, folder):
    """Returns photographs and true boxes as a recipe trains on them, and as it measures them."""
    from keras_vit.data import pipeline, sources

    source, _ = sources.both(recipe.data, recipe.task.targets, recipe.task.extras, recipe.task.columns, None)
    size = (owls.SIDE, owls.SIDE, 3)
    [(images, boxes)] = pipeline.training_batches(source, recipe, size).take(1).as_numpy_iterator()
    return (images, boxes), next(iter(pipeline.evaluation_arrays(source, recipe, size)))


@pytest.mark.parametrize("flip", [False, True])
def test_photographs_are_padded_and_boxes_go_with_them(folder, flip):
    pytest.importorskip("tensorflow")
    data = Data(f"folder:{folder}", "train", "val", "val", batch_size=4, resize="pad")
    recipe = Recipe("words", {}, TASK, data, Augment(flip=flip), Optim(epochs=1))
    drawn, turned = [squares(dataclasses.replace(recipe, seed=seed), folder) for seed in range(4)], 0
    measured = drawn[0][1]
    trained = [pair for (images, boxes), _ in drawn for pair in zip(images, boxes)]
    for pixels, rows in [*trained, *zip(measured["images"], measured["bounding_boxes"])]:
        top, left, bottom, right = rows[rows[:, 4] >= 0][0, :4] * owls.SIDE
        lit = pixels[..., 0] > 145
        found = np.array([*np.nonzero(lit.any(1))[0][[0, -1]], *np.nonzero(lit.any(0))[0][[0, -1]]])
        np.testing.assert_allclose(found, [top, bottom - 1, left, right - 1], atol=1)
        turned += left > 3
        assert pixels[0, 0, 0] > 30  # the photograph is at the top left, flipped or not
    assert bool(turned) == flip
    model = keras_vit.vit("mu/8", image_size=owls.SIDE, metadata={"evaluation": {"resize": "pad"}})
    prepared = keras_vit.preprocess(model, sorted((folder / "images" / "all").iterdir()))
    apart = np.abs(prepared[:, None] - measured["images"]).max((2, 3, 4))
    assert (apart.min(0) < 1e-4).all() and (apart.min(1) < 1e-4).all()  # in the order of the reader


def test_a_run_gives_boxes_in_pixels_of_photographs_that_it_sees_padded(start, folder, tmp_path):
    pytest.importorskip("tensorflow")
    task = dataclasses.replace(TASK, score=0.0)
    model = dict(weights=start, image_size=owls.SIDE)
    recipe = Recipe("words", model, task, Data(f"folder:{folder}", "train", "val", "val", resize="pad"))
    built = keras_vit.from_recipe(recipe)
    files = sorted((folder / "images" / "all").iterdir())
    keras_vit.predict(Trained(built, recipe, CLASSES, "mine", tmp_path), files, json=tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text())
    outputs = np.asarray(built(keras_vit.preprocess(built, files)))
    for path, side, output in zip(files, (30, 32, 16, 40), outputs):
        boxes = np.array([row["bbox"] for row in rows if row["image_id"] == path.name])
        edges = output[:, [1, 0, 3, 2]] * side  # a square around it
        np.testing.assert_allclose(boxes, np.hstack([edges[:, :2], edges[:, 2:] - edges[:, :2]]), atol=0.02)


@slow
@pytest.mark.parametrize(
    "kind, file", [("tflite", "m.tflite"), ("onnx", "m.onnx"), ("openvino", "m.xml"), ("saved_model", "m")]
)
def test_a_trained_detector_is_exported(kind, file, start, tmp_path):
    pytest.importorskip("tensorflow")
    model = model_of(start)
    learner = TASK.learner(model)
    learner.compile(keras.optimizers.SGD(1e-2), **TASK.compiled(None), run_eagerly=EAGERLY)
    learner.train_on_batch(IMAGES, BOXES)
    report = getattr(keras_vit, f"export_{kind}")(model, tmp_path / file, images=IMAGES)
    assert report.max_abs_diff < 1e-3
