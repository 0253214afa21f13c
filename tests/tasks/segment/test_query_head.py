import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.tasks.segment.segment import Segment
from tests import masks
from tests.marks import EAGERLY, slow_on_jax
from tests.tasks.segment.test_objects import CLASSES, IMAGES, SMALL, task

pytestmark = pytest.mark.backend


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


def test_options_of_models_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="Queries need .*relative positions"):
        task().model(**SMALL, position="relative")
    with pytest.raises(ValueError, match="before one of the blocks after the first"):
        task(head={"kind": "queries", "depth": 3}).model(**SMALL)
    with pytest.raises(ValueError, match="Masks need all patches. Received: model.patch_dropout=0.5"):
        task().model(**SMALL, patch_dropout=0.5)
