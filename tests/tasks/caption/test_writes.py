import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Caption, Translate

WORDS = ("<pad>", "<end>", "<unknown>", "a", "red")


@pytest.mark.parametrize(("task", "given"), [(Caption, "images"), (Translate, "sources")])
def test_a_batch_names_what_is_read(task, given):
    """What stands before each word, and the words, with -1 after the end."""
    task = task(words=WORDS, length=4)
    x, words = task.batch({"images": np.int32([[3, 1, 0, 0]]), "texts": task.ids_of()(["a red"])}, None, None)
    assert set(x) == {given, "texts"}
    assert x["texts"].numpy().tolist() == [[1, 3, 4, 1]] and words.numpy().tolist() == [[3, 4, 1, -1]]


@pytest.mark.parametrize("task", [Caption, Translate])
def test_what_is_told_of_a_text(task):
    task, row = task(words=WORDS, length=4), np.float32([3, 4, 1, 0.5])
    assert task.answer(row) == {"a red": 0.5}
    assert task.caption(row, {"texts": np.int32([3, 4, 1, 0])}) == "a red (50%)"
    assert task.caption(row, {"texts": np.int32([3, 1, 0, 0])}) == "a, written “a red” (50%)".replace("a,", "“a”,")


def test_the_decoder_is_that_of_the_words():
    decoder, marks = Translate(words=WORDS, length=4, text={"depth": 1}).decoder(24)
    assert marks == {"start": 1, "end": 1, "pad": 0} and decoder.input["context"].shape[-1] == 24
    with pytest.raises(ValueError, match="A text must have an end"):
        Translate(words=("<pad>", "a"), length=4).decoder(24)
