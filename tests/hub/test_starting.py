import numpy as np
import pytest

import keras_vit
from keras_vit.config import Caption
from keras_vit.data.memory import Source
from keras_vit.data.readers.texts import together
from keras_vit.models.captioner import words_of
from keras_vit.tasks.caption import starting
from keras_vit.tasks.texts import sizes_for, stated_by
from tests.captions import numbers, small

WORDS = ["<unknown>", "<pad>", "<start>", "<end>", *map(chr, range(97, 123))]


@pytest.fixture
def writer(hub):
    """A captioner of 30 words, and its repository."""
    model = small()
    words = words_of(model.get_layer("text"))
    words.metadata = words.metadata | {"words": WORDS}
    keras_vit.push_to_hub(model, "me/writer")
    return model, "hf://me/writer"


def test_a_published_run_of_ones_own_keeps_its_words_and_its_size(writer):
    """As a file or a folder does: without the words, the address was taken for that of a tokenizer."""
    model, address = writer
    assert stated_by(address)["words"] == WORDS and sizes_for(address, 8) == {}
    texts = together([("a b",), ("c",)])
    source = Source(np.zeros((2, 8, 8, 3), "uint8"), {"texts": texts})
    task = Caption(start=address, length=6).on(source)
    assert task.words == tuple(WORDS) and not task.tokens
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3)).astype("uint8")
    inputs = {"images": images, "texts": np.ones((2, 4), "int32")}
    again = starting.loaded(task, 8)
    np.testing.assert_allclose(numbers(again(inputs)), numbers(model(inputs)), atol=1e-6)
