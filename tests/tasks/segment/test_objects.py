import dataclasses
import types

import keras
import numpy as np
import pytest

from keras_vit.models.inputs import metadata_of
from keras_vit.tasks.segment.query_learner import QueryLearner
from keras_vit.tasks.segment.segment import Segment
from tests.marks import EAGERLY, few

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


@few(1)
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


def test_answers_pictures_and_results():
    one = dataclasses.replace(task(), mask_size=(8, 12))
    assert one.answer(output()) == {"1 cat": pytest.approx(1, abs=0.01), "1 dog": pytest.approx(1, abs=0.01)}
    assert one.heading(output()) == "1 cat, 1 dog" and one.listed(output(), 1) == [*one.answer(output()).items()]
    ids, found = one.result(output(), (16, 24))
    assert ids.shape == (16, 24) and [each["category"] for each in found] == ["cat", "dog"]
    assert (ids[:, :7] == 0).all() and (ids[:3, 14:] == 1).all() and (ids[10:, 10:] == -1).all()
    nothing = output()
    nothing[:, :3] = 0, 0, 9
    assert one.answer(nothing) == {"nothing": pytest.approx(1, abs=1e-3)} and one.result(nothing, (4, 6))[1] == []
    picture = one.picture(IMAGES[0], output(), {"instance_masks": maps()[0]})
    assert picture.dtype == "uint8" and picture.shape[1] > 2 * picture.shape[0]
    assert [*one.legend()] == ["cat", "dog"]
    certain = dataclasses.replace(one, score=0.999)
    assert [*certain.answer(output())] == ["1 cat"]


def source(values=1001, classes=CLASSES, stuff=()):
    maps = np.full((1, 4, 4, 1), values, "int32")
    return types.SimpleNamespace(class_names=classes, stuff=stuff, targets={"instance_masks": maps})


def test_the_data_say_which_classes_are_stuff():
    assert Segment(kind="panoptic").on(source(stuff=("dog",))).stuff == ("dog",)
    assert Segment(kind="panoptic", stuff=()).on(source(stuff=("dog",))).stuff == ()
    assert Segment(kind="panoptic").on(source(0)).stuff == ()
    assert Segment(kind="instance").on(source()).classes == CLASSES
    assert Segment(kind="instance", classes=("cell",)).on(source(1, ())).classes == ("cell",)
    with pytest.raises(ValueError, match="must name the classes of the objects: the data do not"):
        Segment(kind="instance").on(source(1, ()))
    with pytest.raises(ValueError, match="Regions such as sky are for .*panoptic.*Received: dog"):
        Segment(kind="instance").on(source(stuff=("dog",)))
    with pytest.raises(ValueError, match="Regions such as sky are for .*Received: a map with a value that 1000 div"):
        Segment(kind="instance").on(source(1000))


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(stuff=("dog",)), "stuff is for kind='panoptic'"),
        (dict(kind="panoptic", stuff=("sky",)), "must name classes. Received: 'sky'"),
        (dict(dice=0.5), "Segment.dice is for kind='semantic'. Received: dice=0.5"),
        (dict(head="dpt"), r"has the head 'queries' or 'deformable'. Received: head='dpt'"),
        (dict(head={"kind": "queries", "masked": "no"}), "must be True or False"),
        (dict(kind="semantic", score=0.5), "score needs kind='instance' or 'panoptic'. Received: score=0.5"),
        (dict(kind="semantic", head="queries", dice=0.5), "not for head='queries'"),
        (dict(score=1.5), "score must be from 0 to 1"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        task(**options)
