import dataclasses
import types

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.config import Data, Recipe
from keras_vit.models.inputs import metadata_of
from keras_vit.tasks.segment.query_learner import QueryLearner
from keras_vit.tasks.segment.segment import Segment
from tests import masks
from tests.marks import EAGERLY, slow_on_jax

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
SMALL = dict(variant=None, width=16, depth=3, num_heads=2, patch_size=4, image_size=(16, 24))
IMAGES = RNG.integers(0, 256, (2, 16, 24, 3)).astype("float32")
CLASSES = ("cat", "dog")


def task(kind="instance", **more):
    return Segment(
        **{"kind": kind, "classes": CLASSES, "head": {"kind": "queries", "queries": 5, "upscales": 1}} | more
    )


def maps():
    values = np.full((2, 16, 24, 1), -1, "int32")
    values[0, 2:9, 3:12], values[0, 10:15, 10:20], values[1, :8] = 1, 1001, 1002
    return values


def output():
    """One image: a cat on the left, a dog above, and the rest of the queries of nothing."""
    numbers = np.zeros((5, 3 + 8 * 12), "float32")
    numbers[:, 2], numbers[:, 3:] = 9, -9
    drawn = numbers[:, 3:].reshape(5, 8, 12)
    numbers[1, :3], drawn[1, :, :4] = (9, 0, 0), 9
    numbers[3, :3], drawn[3, :2, 6:] = (0, 7, 0), 9
    return numbers


@pytest.mark.parametrize("kind", ["instance", "panoptic"])
def test_any_encoder_learns(kind, tmp_path):
    one = task(kind, stuff=None if kind == "instance" else ("dog",))
    model = one.model(**SMALL)
    assert (
        model.output_shape == (None, 5, 3 + 8 * 12) and one.gives == "segments" and one.targets == ("instance_masks",)
    )
    assert one.of_model(model).mask_size == (8, 12) and one.fits(model)
    assert not dataclasses.replace(one, classes=("cat",), stuff=None).fits(model)
    learner = one.learner(model)
    assert isinstance(learner, QueryLearner)
    learner.compile(keras.optimizers.Adam(1e-2), **one.compiled(None), run_eagerly=EAGERLY)
    x, y = one.batch({"images": IMAGES, "instance_masks": maps()}, None, (0, 0))
    losses = [learner.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(3)]
    assert losses[2] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.asarray(loaded(IMAGES)), np.asarray(model(IMAGES)), atol=1e-6)
    assert (
        metadata_of(loaded)["stuff"] == list(one.stuff or ()) and metadata_of(loaded)["evaluation"]["photos"] == "whole"
    )


@slow_on_jax
def test_classes_by_queries_learn():
    one = Segment(classes=("ground", *CLASSES), head={"kind": "queries", "queries": 4, "upscales": 0})
    model = one.model(**SMALL)
    assert model.output_shape == (None, 16, 24, 3) and one.gives == "masks" and one.targets == ("segmentation_masks",)
    learner = one.learner(model)
    assert learner.output_shape == (None, 1, 4, 4 + 4 * 6)
    pytest.importorskip("tensorflow")
    values = np.full((2, 16, 24, 1), 2, "uint8")
    values[:, 5:9], values[:, :2] = 0, 255
    x, y = one.batch({"images": IMAGES, "segmentation_masks": values}, None, (0, 0))
    assert set(np.unique(y)) == {-1, 0, 2000}
    learner.compile(keras.optimizers.Adam(1e-2), **one.compiled(None), run_eagerly=EAGERLY)
    losses = [learner.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(3)]
    assert losses[2] < losses[0]


def test_a_file_of_queries_keeps_its_head_but_for_other_classes(tmp_path):
    first = masks.build(image_size=16)
    first.save(tmp_path / "model.keras")
    (tmp_path / "model.labels.txt").write_text("a\nb\nc\n")
    keras_vit.class_names(first, ["a", "b", "c"])
    first.save(tmp_path / "model.keras")
    want = {variable.path: np.asarray(variable) for variable in first.weights}
    same = Segment(kind="instance", classes=("a", "b", "c")).model(weights=tmp_path / "model.keras", head="require")
    assert all(np.array_equal(np.asarray(v), want[v.path]) for v in same.weights) and len(same.weights) == len(want)
    other = Segment(kind="instance", classes=CLASSES).model(weights=tmp_path / "model.keras")
    new = [v.path for v in other.weights if not np.array_equal(np.asarray(v), want[v.path])]
    assert sorted(new) == ["head/class/bias", "head/class/kernel"] or new == ["head/class/kernel"]
    fewer = {"kind": "queries", "queries": 2}
    fewer = Segment(kind="instance", classes=CLASSES, head=fewer).model(weights=tmp_path / "model.keras")
    np.testing.assert_array_equal(fewer.get_layer("queries").tokens, want["queries/tokens"][:, :2])
    with pytest.raises(ValueError, match="must be a segmenter with this head and these classes"):
        Segment(kind="instance", classes=CLASSES).model(weights=tmp_path / "model.keras", head="require")


def test_answers_pictures_and_results():
    one = dataclasses.replace(task(), mask_size=(8, 12))
    assert one.answer(output()) == {"1 cat": pytest.approx(1, abs=0.01), "1 dog": pytest.approx(1, abs=0.01)}
    assert one.heading(output()) == "1 cat, 1 dog" and one.listed(output(), 1) == [*one.answer(output()).items()]
    ids, found = one.result(output(), (16, 24))
    assert ids.shape == (16, 24) and [each["category"] for each in found] == ["cat", "dog"]
    assert (ids[:, :7] == 0).all() and (ids[:3, 14:] == 1).all() and (ids[10:, 10:] == -1).all()
    nothing = output()
    nothing[:, :3] = 0, 0, 9
    assert one.answer(nothing) == {"nothing": 1.0} and one.result(nothing, (4, 6))[1] == []
    picture = one.picture(IMAGES[0], output(), {"instance_masks": maps()[0]})
    assert picture.dtype == "uint8" and picture.shape[1] > 2 * picture.shape[0]
    assert [*one.legend()] == ["cat", "dog"]
    certain = dataclasses.replace(one, score=0.999)
    assert [*certain.answer(output())] == ["1 cat"]


def test_the_data_say_which_classes_are_stuff():
    source = types.SimpleNamespace(class_names=CLASSES, stuff=("dog",))
    assert Segment(kind="panoptic").on(source).stuff == ("dog",)
    assert Segment(kind="panoptic", stuff=()).on(source).stuff == ()
    assert Segment(kind="instance").on(source).classes == CLASSES
    unnamed = types.SimpleNamespace(class_names=(), stuff=())
    assert Segment(kind="instance", classes=("cell",)).on(unnamed).classes == ("cell",)
    with pytest.raises(ValueError, match="must name the classes of the objects: the data do not"):
        Segment(kind="instance").on(unnamed)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(stuff=("dog",)), "stuff is for kind='panoptic'"),
        (dict(kind="panoptic", stuff=("sky",)), "must name classes. Received: 'sky'"),
        (dict(dice=0.5), "Segment.dice is for kind='semantic'. Received: dice=0.5"),
        (dict(head="dpt"), r"has the head 'queries'. Received: head='dpt'"),
        (dict(head={"kind": "queries", "masked": "no"}), "must be True or False"),
        (dict(kind="semantic", score=0.5), "score needs kind='instance' or 'panoptic'. Received: score=0.5"),
        (dict(kind="semantic", head="queries", dice=0.5), "not for head='queries'"),
        (dict(score=1.5), "score must be from 0 to 1"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        task(**options)


def test_options_of_models_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="Queries need .*relative positions"):
        task().model(**SMALL, position="relative")
    with pytest.raises(ValueError, match="before one of the blocks after the first"):
        task(head={"kind": "queries", "depth": 3}).model(**SMALL)
    with pytest.raises(ValueError, match="Masks need all patches. Received: model.patch_dropout=0.5"):
        task().model(**SMALL, patch_dropout=0.5)


def test_files_of_options_name_them_only_where_they_are():
    from keras_vit.config import plain

    recipe = Recipe(name="a", task=Segment(classes=CLASSES), model=SMALL, data=Data(source="digits"))
    assert not {"kind_option", "stuff", "score", "mask_size"} & set(plain.to_dict(recipe)["task"])
    recipe = dataclasses.replace(recipe, task=task("panoptic", stuff=("dog",)))
    values = plain.to_dict(recipe)
    assert values["task"]["kind"] == "Segment" and values["task"]["kind_option"] == "panoptic"
    assert plain.from_dict(values) == recipe
