import json

import pytest

from keras_vit import from_checkpoint, save_checkpoint
from keras_vit.checkpoints.describe import class_names, describe
from keras_vit.checkpoints.files.read import open_checkpoint
from tests.checkpoints.helpers import file_of, filled

pytestmark = pytest.mark.filterwarnings("ignore:The .* format does not record")

LABELS = ["a", "b", "line\nbreak", "ü", "", "f", "g"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Directories with the same model in timm's and in Hugging Face's format."""
    model, parent = filled(metadata={"labels": LABELS}), tmp_path_factory.mktemp("saved")
    return {form: save_checkpoint(model, parent / form, format=form) for form in ("timm", "huggingface")}


@pytest.mark.parametrize("form", ["timm", "huggingface"])
def test_class_names_are_written_and_read(form, folders):
    for options, labels in (({}, LABELS), ({"num_classes": 2}, None)):
        model = from_checkpoint(folders[form], **options)
        assert model.get_layer("rescale").metadata.get("labels") == labels


def test_class_names_of_others(folders):
    for form, change, expected in [
        ("huggingface", {"id2label": {str(i): name for i, name in enumerate(LABELS)}}, LABELS),
        ("huggingface", {"id2label": {str(i): f"LABEL_{i}" for i in range(7)}}, None),
        ("huggingface", {"id2label": {"0": "a"}}, None),
        ("huggingface", {"id2label": [1, 2]}, None),
        ("timm", {"label_names": LABELS}, LABELS),
        ("timm", {"label_names": "abcdefg"}, None),
        ("timm", {"label_names": None, "labels": LABELS}, LABELS),
    ]:
        with open_checkpoint(folders[form]) as checkpoint:
            config = json.loads((folders[form] / "config.json").read_text()) | change
            checkpoint = checkpoint._replace(config=config, notes={})
            assert class_names(checkpoint, 7).get("labels") == expected, change


def test_what_a_file_says_of_its_model():
    with open_checkpoint(file_of("google_vit")) as checkpoint:
        description = describe(checkpoint)
    assert description.form.name == "google" and description.arguments["depth"] == 2
    assert description.grid is None  # its image size is not in the file
    assert description.origins["block.gelu"] == "Google's rule for its files"
    with open_checkpoint(file_of("hf_vit")) as checkpoint:
        assert describe(checkpoint).grid == (3, 3)
