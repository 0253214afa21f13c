import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints import images
from keras_vit.checkpoints.describe import recognize
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.checkpoints.request import Options, Request
from tests.checkpoints.helpers import file_of

pytestmark = pytest.mark.backend


def described(case, head=None, **overrides):
    with open_checkpoint(file_of(case)) as checkpoint:
        request = Request(file_of(case), None, head, Options(), overrides, {"mine": 1})
        return images.described(checkpoint, *recognize(checkpoint), request)


def test_arguments_are_the_file_s_with_the_caller_s():
    description, arguments = described("google_vit", channels=1, dropout=0.5)
    assert description.arguments["channels"] == 3 and (arguments["channels"], arguments["dropout"]) == (1, 0.5)
    assert arguments["metadata"]["format"] == "google" and arguments["metadata"]["mine"] == 1
    assert description.options.head == "require"


def test_another_number_of_classes_is_a_new_head():
    assert described("google_vit", num_classes=3)[0].options.head == "new"
    assert described("google_vit", num_classes=0)[0].options.head == "require"
    with pytest.raises(ValueError, match="no argument 'widht'|widht"):
        described("google_vit", widht=3)


def test_where_a_caller_s_argument_is_from():
    model = from_checkpoint(file_of("google_vit"), norm={"epsilon": 1e-3})
    assert model.get_layer("rescale").metadata["from"]["norm.epsilon"] == "given"
