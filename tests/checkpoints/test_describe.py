import json

import pytest

from keras_vit import from_checkpoint, save_checkpoint
from tests.checkpoints.helpers import filled

pytestmark = pytest.mark.filterwarnings("ignore:The .* format keeps no record of")

LABELS = ["a", "b", "line\nbreak", "ü", "", "f", "g"]


def labels_of(path, **options):
    return from_checkpoint(path, **options).get_layer("rescale").metadata.get("labels")


@pytest.mark.parametrize("form", ["timm", "huggingface"])
def test_class_names_are_written_and_read(form, tmp_path):
    save_checkpoint(filled(metadata={"labels": LABELS}), tmp_path / "folder", format=form)
    assert labels_of(tmp_path / "folder") == LABELS
    assert labels_of(tmp_path / "folder", num_classes=2) is None


@pytest.mark.parametrize(
    "form, change, expected",
    [
        ("huggingface", {"id2label": {str(i): name for i, name in enumerate(LABELS)}}, LABELS),
        ("huggingface", {"id2label": {str(i): f"LABEL_{i}" for i in range(7)}}, None),
        ("huggingface", {"id2label": {"0": "a"}}, None),
        ("huggingface", {"id2label": [1, 2]}, None),
        ("timm", {"label_names": LABELS}, LABELS),
        ("timm", {"label_names": "abcdefg"}, None),
    ],
)
def test_class_names_of_others(form, change, expected, tmp_path):
    save_checkpoint(filled(), tmp_path / "folder", format=form)
    path = tmp_path / "folder" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert labels_of(tmp_path / "folder") == expected
