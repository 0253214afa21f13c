import types

import pytest

from keras_vit.config import Classify, Translate
from keras_vit.runs.translated import check_images, translations


def trained(task):
    return types.SimpleNamespace(task=task, viewer=lambda: None)


def test_a_model_of_texts_has_no_images():
    """What it writes is in tests/tasks/translate."""
    check_images(trained(Classify()), "A report")
    with pytest.raises(ValueError, match="A report needs a model of images. Received: Translate, of texts alone"):
        check_images(trained(Translate()), "A report")


@pytest.mark.parametrize(("texts", "received"), [([], "none"), (["a", " "], "' '"), ([3], "3")])
def test_texts_without_a_word(texts, received):
    with pytest.raises(ValueError, match=f"Each text must have a word. Received: {received}"):
        next(translations(trained(Translate()), texts, 3, {}))
