import pytest

from keras_vit.checkpoints.formats.huggingface_clipseg import FORMAT, architecture, size_of
from keras_vit.checkpoints.formats.transformers_config import read_processor
from tests import clipsegs

pytestmark = pytest.mark.backend


class Checkpoint:
    config = {"model_type": "clipseg", "vision_config": {"layer_norm_eps": 1e-4}}


@pytest.mark.parametrize("refined", [False, True])
def test_sizes_are_of_the_tensors(refined):
    shapes = {name: array.shape for name, array in clipsegs.arrays_of(refined).items()}
    assert FORMAT.detect(shapes)
    found, *_ = architecture(shapes, Checkpoint)
    assert found == {
        "blocks": 2, "channels": clipsegs.WIDTH, "units": clipsegs.UNITS, "width": clipsegs.REDUCED, "num_heads": 4,
        "mlp_dim": 10, "condition_at": 0, "refined": refined, "epsilon": 1e-4,
    }  # fmt: skip


def test_images_have_the_processor_s_size():
    assert size_of({}) == 352 == size_of({"size": None}) and size_of({"size": 40}) == 40
    assert size_of({"image_processor": {"size": {"height": 40, "width": 48}}}) == (40, 48)


def test_without_a_processor_images_are_prepared_as_published():
    statistics, rule, _ = read_processor({}, "CLIPSeg")
    assert rule["resize"] == "direct" and rule["interpolation"] == "bilinear"
    assert statistics["mean"] == [0.485, 0.456, 0.406]
