import dataclasses
import pathlib

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_vit import class_names, from_checkpoint, segment
from keras_vit.models.inputs import metadata_of
from keras_vit.models.map_heads import head_of
from keras_vit.tasks.segment.boxed_objects import BoxedObjects
from keras_vit.tasks.segment.instance_learner import InstanceLearner
from keras_vit.tasks.segment.segment import Segment
from tests.checkpoints.helpers import weights
from tests.marks import EAGERLY, slow, slow_on_jax
from tests.tasks.segment.test_instance_learner import HEAD
from tests.tasks.segment.test_objects import CLASSES, IMAGES, SMALL, maps

pytestmark = pytest.mark.backend
GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "objects"


def task(**more):
    return Segment(**{"kind": "instance", "classes": CLASSES, "head": HEAD} | more)


def output():
    """One image: a cat on the left, a dog above, which is a cat too, and nothing else; masks of 4 x 6."""
    numbers = np.zeros((4, 4 + 2 + 4 * 6), "float32")
    numbers[:, 4:6], numbers[:, 6:] = 0.01, -9
    drawn = numbers[:, 6:].reshape(4, 4, 6)
    numbers[1, 4:6], drawn[1, :, :2] = (0.9, 0.02), 9
    numbers[3, 4:6], drawn[3, :1, 3:] = (0.6, 0.8), 9
    return numbers


@slow_on_jax
def test_any_encoder_learns(tmp_path):
    one = task()
    model = one.model(**SMALL)
    assert isinstance(one.rules, BoxedObjects) and one.best == ("val_mask_ap50", "max")
    assert model.output_shape == (None, 4, 6 + 4 * 6) and one.gives == "instances"
    assert one.targets == ("instance_masks",) and one.of_model(model).mask_size == (4, 6) and one.fits(model)
    assert not task(classes=("cat",)).fits(model) and not task(head="queries").fits(model)
    learner = one.learner(model)
    assert isinstance(learner, InstanceLearner)
    learner.compile(keras.optimizers.Adam(3e-3), **one.compiled(None), run_eagerly=EAGERLY)
    x, y = one.batch({"images": IMAGES, "instance_masks": maps()}, None, (0, 0))
    losses = [learner.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(3)]
    assert losses[2] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.asarray(loaded(IMAGES)), np.asarray(model(IMAGES)), atol=1e-6)
    assert metadata_of(loaded)["evaluation"]["photos"] == "whole"
    class_names(loaded, CLASSES)
    [found] = segment(loaded, np.zeros((10, 13, 3), "uint8"), "instance", threshold=0.0)
    assert found.map.shape == (10, 13) and {each["label"] for each in found.segments} <= set(CLASSES)


def test_answers_pictures_and_results():
    one = dataclasses.replace(task(), mask_size=(4, 6))
    assert one.answer(output()) == {"1 cat": pytest.approx(0.9), "1 dog": pytest.approx(0.8)}
    assert one.heading(output()) == "1 cat, 1 dog"
    ids, found = one.result(output(), (8, 12))
    assert [(each["category"], each["id"]) for each in found] == [
        ("cat", 0),
        ("dog", 1),
    ]  # no pixels are left for a cat
    assert (ids[:, :4] == 0).all() and (ids[:2, 7:] == 1).all() and (ids[4:, 6:] == -1).all()
    nothing = output()
    nothing[:, 4:6] = 0.2
    assert one.answer(nothing) == {"nothing": pytest.approx(0.8)} and one.result(nothing, (4, 6))[1] == []
    picture = one.picture(IMAGES[0], output(), {"instance_masks": maps()[0]})
    assert picture.dtype == "uint8" and picture.shape[1] > 2 * picture.shape[0]
    assert [*dataclasses.replace(one, score=0.85).answer(output())] == ["1 cat"]
    assert one.tally().boxed and one.tally().mask_size == (4, 6)


def test_a_new_head_has_as_many_queries_as_there_are_patches():
    head = {name: value for name, value in HEAD.items() if name != "queries"}
    model = task(head=head).model(**SMALL)
    assert head_of(model)["queries"] == 24 and head_of(model)["masks"] == 4


@slow
def test_published_weights_keep_their_head_but_for_other_classes(tmp_path):
    source = weights(from_checkpoint(GOLDEN / "rf_detr_masks"))
    same = Segment(kind="instance", classes=tuple("0123456"), head="deformable")
    own = weights(same.model(variant=None, weights=GOLDEN / "rf_detr_masks", head="require"))
    assert own.keys() == source.keys() and all(np.array_equal(own[path], source[path]) for path in own)
    model = task(head="deformable").model(variant=None, weights=GOLDEN / "rf_detr_masks")
    own = weights(model)
    new = {path for path in own if not np.array_equal(own[path], source[path])}
    assert new and all("/class/" in path for path in new) and head_of(model)["queries"] == 8
    model.save(tmp_path / "model.keras")
    again = task(head="deformable").model(weights=tmp_path / "model.keras")  # a run's
    assert all(np.array_equal(array, own[path]) for path, array in weights(again).items() if "/class/" not in path)
    fewer = task(head={"kind": "deformable", "queries": 5}).model(variant=None, weights=GOLDEN / "rf_detr_masks")
    groups = fewer.get_layer("head").groups
    want = source["head/query"].reshape(groups, 8, -1)[:, :5]
    np.testing.assert_array_equal(weights(fewer)["head/query"].reshape(want.shape), want)


@slow
def test_a_detector_without_masks_keeps_its_boxes():
    source = weights(from_checkpoint(GOLDEN / "rf_detr"))
    one = Segment(kind="instance", classes=tuple("0123456"), head="deformable")
    own = weights(one.model(variant=None, weights=GOLDEN / "rf_detr"))
    assert all(np.array_equal(own[path], array) for path, array in source.items())
    assert {path.split("/")[0] for path in own.keys() - source.keys()} == {"masks"}
    with pytest.raises(ValueError, match="must be a segmenter with this head and these classes"):
        one.model(variant=None, weights=GOLDEN / "rf_detr", head="require")


@slow
def test_roboflows_own_file_with_masks(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    arrays = safetensors.numpy.load_file(GOLDEN / "rf_detr_masks" / "model.safetensors")
    source = weights(from_checkpoint(GOLDEN / "rf_detr_masks"))
    head = head_of(from_checkpoint(GOLDEN / "rf_detr_masks"))
    args = dict(num_windows=1, out_feature_indexes=[i + 1 for i in head["blocks"]], resolution=48, two_stage=True)
    args |= dict(sa_nheads=head["num_heads"], ca_nheads=head["cross_heads"], mask_downsample_ratio=3)
    content = {"model": {name: torch.tensor(array) for name, array in arrays.items()}, "args": args}
    torch.save(content, tmp_path / "weights.pth")
    model = task(head="deformable").model(variant=None, weights=tmp_path / "weights.pth", num_heads=3)
    own = weights(model)
    assert all(np.array_equal(own[path], source[path]) for path in own if "/class/" not in path)
    assert any(path.startswith("masks/") for path in own)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(kind="panoptic"), r"kind='panoptic'\) has the head 'queries'. Received: head=.*deformable"),
        (dict(kind="semantic"), "'deformable' is for kind='instance'. Received: kind='semantic'"),
        (dict(head={"kind": "deformable", "upscales": 1}), "has the options queries, width, depth, groups"),
        (dict(head={"kind": "deformable", "groups": 0}), "groups.*Received"),
        (dict(stuff=("dog",)), "stuff is for kind='panoptic'"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        task(**options)


def test_more_queries_than_patches_are_refused():
    with pytest.raises(ValueError, match="at most the number of patches, 24. Received: queries=25"):
        task(head={**HEAD, "queries": 25}).model(**SMALL)
