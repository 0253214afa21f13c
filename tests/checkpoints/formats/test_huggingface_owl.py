import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.formats.huggingface_owl import FORMAT, architecture
from keras_vit.checkpoints.formats.transformers_config import read_processor
from tests import owls
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend


class Checkpoint:
    config = {"model_type": "owlv2", "vision_config": {"layer_norm_eps": 1e-4}}


def test_sizes_are_of_the_tensors():
    for two in (False, True):
        shapes = {name: array.shape for name, array in owls.arrays_of(two).items()}
        assert FORMAT.detect(shapes)
        found, *_ = architecture(shapes, Checkpoint)
        assert found == {"width": owls.WIDTH, "units": owls.UNITS, "objectness": two, "epsilon": 1e-4}


@pytest.mark.parametrize("kind, size, resize", [("OWL-ViT", 3, "direct"), ("OWLv2", 2, "pad")])
def test_without_a_processor_images_are_prepared_as_published(kind, size, resize):
    _, rule, _ = read_processor({}, kind)
    assert rule["resize"] == resize and rule["interpolation"] == {3: "bicubic", 2: "bilinear"}[size]


def test_processors_that_do_not_pad_are_refused(tmp_path):
    owls.folder_of(tmp_path, True, do_pad=False)
    assert not unexpected([(lambda: from_checkpoint(tmp_path), "`preprocess` cannot do what .*: images would differ")])
