import numpy as np
import pytest

from keras_vit.models.map_heads import head_of
from keras_vit.tasks import Detect
from keras_vit.tasks.detect.box_heads import BUILD
from keras_vit.tasks.detect.detect import HEADS

pytestmark = pytest.mark.backend

SMALL = dict(variant="mu/8", image_size=(32, 48))


def test_each_head_is_built():
    assert set(BUILD) == set(HEADS) - {"open"}  # which has no encoder of its own


def test_a_new_deformable_head_has_the_sizes_of_its_width():
    head = {"kind": "deformable", "width": 64, "depth": 1, "groups": 2}
    model = Detect(classes=("cat", "dog"), head=head, most=6).model(**SMALL)
    own = head_of(model)
    sizes = ("num_heads", "cross_heads", "mlp_dim", "queries", "groups", "depth", "units")
    assert [own[name] for name in sizes] == [2, 4, 512, 6, 2, 1, 2]
    blocks = sum(layer.name.startswith("block_") for layer in model.layers)
    assert own["blocks"][-1] == blocks - 1 and list(own["blocks"]) == sorted(set(own["blocks"]))
    assert model.output_shape == (None, 6, 6) and own["kept"] is None


def test_a_box_may_have_several_classes():
    task = Detect(classes=("cat", "dog"), head="deformable", most=2, score=0.3)
    output = np.array([[0, 0, 0.5, 0.5, 0.9, 0.8], [0.5, 0.5, 1, 1, 0.2, 0.4]])
    rows = task.result(output, (10, 20))
    assert [(row["category"], row["score"]) for row in rows] == [("cat", 0.9), ("dog", 0.8)]  # two of four pairs
    rows = Detect(classes=("cat", "dog"), head="tokens", most=2, score=0.3).result(output, (10, 20))
    assert [(row["category"], row["score"]) for row in rows] == [("cat", 0.9), ("dog", 0.4)]
