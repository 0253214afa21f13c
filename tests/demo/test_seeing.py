import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.demo.reading import reader
from keras_vit.demo.seeing import VIEW, hint, looks_of, seeing
from tests.demo.test_markup import plain
from tests.marks import slow


@pytest.fixture
def seen(tmp_path):
    """Function from a recipe, pixels and a text to what its page shows of them."""

    def see(name, pixels, text="", look=None):
        found = keras_vit.load_run(name)
        keras.utils.save_img(tmp_path / "a.png", np.asarray(pixels, "uint8"), scale=False)
        looks = looks_of(found)
        return seeing(found, looks, 5)(reader(found)(tmp_path / "a.png"), look or next(iter(looks), None), text)

    return see


def square(rows=64, columns=64):
    pixels = np.full((rows, columns, 3), 240)
    pixels[rows // 3 : 2 * rows // 3, columns // 6 : columns // 2] = (255, 0, 0)
    return pixels


def test_a_model_without_an_answer_says_so(seen):
    shown = seen("cifar10_mae", square(32, 32))
    assert plain(shown.answer).startswith("No answer: the model was trained without classes and gives 128 numbers")
    assert shown.picture.shape == shown.laid.shape == (VIEW, VIEW, 3) and shown.under == "Input of the model"


def test_a_question_is_answered_and_where_the_answer_was_found(seen):
    """By the model that ships."""
    shown = seen("easy_vqa", square(), "what color is the shape?")
    assert plain(shown.answer).startswith("red red above 99.9%") and shown.laid.shape == (VIEW, VIEW, 3)
    assert shown.heading.startswith("Relevance") and shown.under == "Input of the model"
    assert plain(seen("easy_vqa", square(), " ").answer) == "Write a question, and press the button."
    told = plain(seen("easy_vqa", square(), "what color is the é?").answer)
    assert told.startswith("red") and told.endswith("Unknown to the model: “é”.")
    shown = seen("easy_vqa", square(), "what " * 40)
    assert shown.picture is None and "A text must have at most 12 tokens" in shown.answer


@slow
def test_texts_are_ranked(seen):
    shown = seen("emoji", square(), "a cat\na red square\n\na cat\nqzv")
    said = plain(shown.answer)
    values = [float(part.split()[0]) for part in said.split("similarity ")[1:]]
    assert len(values) == 3 and values == sorted(values, reverse=True) and max(values) < 1
    assert "%" not in said and "no probabilities" in said and "read in pieces: “qzv”" in said
    assert shown.heading.startswith("Similarity") and shown.laid.shape == (VIEW, VIEW, 3)
    one = plain(seen("emoji", square(), "a red square").answer)
    assert f"a red square {one}" in said
    assert "At most 32 texts" in seen("emoji", square(), "\n".join(map(str, range(33)))).answer


def test_a_whole_image_is_restored_beside_the_enlarged_one(seen):
    shown = seen("superres_x2", square(50, 70))
    rows, columns, _ = shown.picture.shape
    assert plain(shown.answer) == "140 x 100 pixels" and shown.laid is None
    assert columns / rows == pytest.approx(282 / 100, abs=0.02)
    assert shown.under == "From left to right: enlarged by cubic convolution, restored"


@slow
def test_areas_counts_and_depths_are_no_probabilities(seen):
    for name, words in (("nuclei", "of the area"), ("blood_cells", ""), ("scenes", "relative inverse depth")):
        shown = seen(name, square(96, 128))
        assert words in shown.answer and 'class="bar"' not in shown.answer
    assert shown.under == "From left to right: image, predicted"


def test_no_pixels_show_nothing():
    found = keras_vit.load_run("mnist")
    assert not any(part is not None and len(part) for part in seeing(found, looks_of(found), 10)(None))


def test_words_that_a_model_knows_are_told():
    said = hint(keras_vit.load_run("easy_vqa").task)
    assert said.startswith("Its 21 words are such as ") and "red" in said
    assert not hint(keras_vit.Answer())
