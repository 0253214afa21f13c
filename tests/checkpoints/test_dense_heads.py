import pytest

from keras_vit.checkpoints.dense_heads import detector_in, head_in, names_of
from keras_vit.checkpoints.files.read import open_checkpoint
from tests.checkpoints.helpers import GOLDEN, file_of

pytestmark = pytest.mark.backend


def test_a_head_of_maps_is_described():
    maps = head_in(GOLDEN.parent / "depth" / "depth_anything")
    assert maps and "normed" in maps
    assert head_in(file_of("google_vit")) is None


def test_classes_and_boxes_of_detectors():
    assert detector_in(GOLDEN.parent / "objects" / "rf_detr") == ("deformable", tuple("0123456"), 8)
    head, classes, most = detector_in(GOLDEN.parent / "yolos")
    assert head == "tokens" and len(classes) > 1 and most > 0 and len(set(classes)) == len(classes)
    with pytest.raises(ValueError, match="must be weights of YOLOS or RF-DETR. Received: a model of google"):
        detector_in(file_of("google_vit"))


def test_equal_names_are_told_apart():
    with open_checkpoint(file_of("google_vit")) as checkpoint:
        named = checkpoint._replace(notes={"labels": ["a", "N/A", "N/A"]})
    assert names_of(named, 3) == ("a", "N/A", "N/A 2") and names_of(checkpoint, 3) == ()
