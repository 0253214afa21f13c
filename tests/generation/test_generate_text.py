import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import generate_text
from tests.captions import SIZES, decoder, images_of, io_in, marks_of, original, settings_in, small, until
from tests.checkpoints.helpers import unexpected
from tests.marks import few, slow
from tests.text.test_tokenizer import GOLDEN

pytestmark = pytest.mark.filterwarnings("ignore:.*texts were cut at length:UserWarning")

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 8, 8, 3)).astype("uint8")
TABLE = ["<unknown>", "<pad>", "<start>", "<end>", *"abcdefghijklmnopqrstuvwxyz"]  # the ids of `small`


@slow
def test_every_image_gets_its_text_whatever_the_batch():
    """As issue 58 of BLIP asks: many images at once, also a last batch that is not full."""
    model = small()
    together = generate_text(model, IMAGES, batch_size=2, length=9)
    assert together.ids.shape == (5, 9) and together.ids.dtype == "int32" and together.texts is None
    assert together.scores.shape == (5,) and together.scores.dtype == "float32"
    for i in range(5):
        alone = generate_text(model, IMAGES[i], length=9)
        np.testing.assert_array_equal(alone.ids, together.ids[i : i + 1])
        np.testing.assert_allclose(alone.scores, together.scores[i : i + 1], atol=1e-5)


@slow
@pytest.mark.parametrize("beams", [3, pytest.param(1, marks=slow)])
def test_prompts_of_any_lengths(beams):
    model, prompts = small(), ["a", "b c d", "a", "c"]
    tokens = keras_vit.tokenizer(TABLE, 12)
    found = generate_text(model, IMAGES[:4], tokens, prompt=prompts, beams=beams, length=10)
    for image, prompt, ids, text in zip(IMAGES, prompts, found.ids, found.texts):
        alone = generate_text(model, image, TABLE, prompt=prompt, beams=beams, length=10)
        np.testing.assert_array_equal(alone.ids[0], ids)
        assert alone.texts == [text] and text.startswith(prompt)
    given = [[2, 5, 6, 7]]
    np.testing.assert_array_equal(
        generate_text(model, IMAGES[1], prompt=np.array(given), beams=beams, length=10).ids[0], found.ids[1]
    )


@slow
@pytest.mark.parametrize("case", ["trocr", "blip_captioning", "vision_encoder_decoder"])
def test_texts_of_published_tokenizers(case):
    pytest.importorskip("tokenizers")
    model, io, stated = original(case), io_in(case), settings_in(case)
    found = generate_text(model, images_of(model, io), GOLDEN / case, length=stated["max_length"])
    tokens, end = keras_vit.tokenizer(GOLDEN / case, 24), marks_of(model)["end"]
    for ids, text in zip(until(io["greedy"], end), found.texts):
        assert text == tokens.texts([[id for id in ids[1:] if id != end]])[0].strip()
    if case == "blip_captioning":  # the prompt is that of the file, [DEC] and words
        prompt = tokens.texts(io["prompt"][:1])[0]
        prompted = generate_text(model, images_of(model, io), tokens, prompt=prompt, length=stated["max_length"])
        assert until(prompted.ids, end) == until(io["prompted"], end)


def test_a_language_model_goes_on_with_a_text():
    model = decoder("language", metadata={"start": 2, "end": 3, "pad": 1, "words": TABLE})
    found = generate_text(model, prompt=["a b", "c"], length=8)
    assert found.ids.shape == (2, 8) and [text[0] for text in found.texts] == ["a", "c"]
    with pytest.raises(ValueError, match="`images` must be None for a language model. Received: images=ndarray"):
        generate_text(model, IMAGES)


def test_changed_weights_count_at_once():
    model = small()
    before = generate_text(model, IMAGES, length=9).ids
    head = model.get_layer("text").get_layer("words")
    head.word_embedding.assign(RNG.normal(size=head.word_embedding.shape))
    assert not np.array_equal(generate_text(model, IMAGES, length=9).ids, before)


def test_texts_that_are_cut_are_counted():
    """As transformers' issue 17259, where lines of text were cut at 20 ids without a word."""
    model = small()
    model.get_layer("text").get_layer("words").metadata["end"] = 29
    assert generate_text(model, IMAGES[:1], length=12).ids.shape == (1, 12)  # the table, of the default 64
    with pytest.warns(UserWarning, match="5 of 5 texts were cut at length=4: pass a larger one"):
        found = generate_text(model, IMAGES, length=4)
    assert found.ids.shape == (5, 4)


def test_images_that_cannot_be_read(tmp_path):
    (tmp_path / "bad.png").write_text("no image")
    keras.utils.save_img(tmp_path / "good.png", IMAGES[0])
    model, paths = small(), [tmp_path / "bad.png", tmp_path / "good.png"]
    with pytest.warns(UserWarning, match="Left out 1 of 2 images"):
        found = generate_text(model, paths, TABLE, length=6, bad_images="skip")
    assert np.isnan(found.scores[0]) and (found.ids[0] == 1).all() and found.texts[0] == ""
    np.testing.assert_array_equal(found.ids[1:], generate_text(model, paths[1], length=6).ids)
    with pytest.warns(UserWarning, match="Left out 1 of 2 images"):
        assert generate_text(model, paths, TABLE, length=6, prompt="a", bad_images="skip").texts[0] == ""
    with pytest.raises(ValueError, match="bad.png"):
        generate_text(model, paths, length=6)
    with pytest.raises(ValueError, match="No image could be read. The first of 1"):
        generate_text(model, paths[:1], length=6, bad_images="skip")


def test_bad_arguments():
    model, plain = small(), decoder("language")
    wrong = [
        (dict(beams=16), "`beams` must be at most half of the vocabulary, 30. Received: beams=16"),
        (dict(length=13), "`length` must be at most the model's, 12. Received: length=13"),
        (dict(images=None), "`images` must be images, for a captioner. Received: images=NoneType"),
        (dict(images=[]), "must contain an image. Received: an empty list"),
        (dict(prompt="a"), "A prompt of words needs `tokens`, a tokenizer. Received: prompt='a'"),
        (dict(prompt=[[2, 5]] * 3), "`prompt` must be one, or one for each of 5 images. Received: 3"),
        (dict(prompt=[2.5]), "`prompt` must be texts, or ids of shape"),
        (dict(prompt=[2, 30]), "Ids of a prompt must be from 0 to 29. Received: "),
        (dict(prompt=[2] * 12), "must leave room in length=12. Received: 12 ids"),
        (dict(tokens=[*TABLE, "more"]), "whose table has 30 rows. Received: ids up to 30"),
        (dict(bad_images="drop"), "`bad_images` must be one of 'raise', 'skip'"),
        (dict(length_penalty=np.inf), "`length_penalty` must be a finite number"),
        (dict(model=plain, images=None), "must have the ids start, end, pad: .*Received: none as start, end, pad"),
        (dict(model=keras_vit.vit("mu/4", image_size=8)), "must be a model from keras_vit.text_decoder"),
    ]
    given = dict(model=model, images=IMAGES)
    assert not unexpected([(lambda more=more: generate_text(**given | more), says) for more, says in wrong])
    assert SIZES["length"] == 12


def test_prompts_of_ids_may_be_filled_up_or_of_any_lengths():
    model = decoder("language", metadata={"start": 2, "end": 3, "pad": 1, "words": TABLE})
    alone = generate_text(model, prompt=[[2, 5]], length=10)
    for prompt in ([[2, 5, 6, 7], [2, 5, 1, 1]], [[2, 5, 6, 7], [1, 1, 2, 5]], [[2, 5, 6, 7], [2, 5]]):
        np.testing.assert_array_equal(generate_text(model, prompt=prompt, length=10).ids[1], alone.ids[0])
    for prompt, said in (([[1, 1]], "must leave room in length=10. Received: 0 ids"), ([[2], [[2]]], "of shape")):
        with pytest.raises(ValueError, match=said):
            generate_text(model, prompt=prompt, length=10)


def test_an_end_in_a_prompt_does_not_end_the_text():
    model = decoder("language", metadata={"start": 2, "end": 3, "pad": 1, "words": TABLE})
    found = generate_text(model, prompt=np.array([2, 5, 3, 6]), length=10)
    assert found.texts[0].startswith("b c ") and len(found.texts[0]) > 4
    same = decoder("language", metadata={"start": 3, "end": 3, "pad": 3, "words": TABLE})  # as GPT-2's three are one id
    assert generate_text(same, prompt=np.array([3, 5, 3, 6]), length=10).texts[0].startswith("b c ")


@slow
def test_words_are_drawn():
    model = small()
    given = dict(length=10, temperature=1.5)
    first = generate_text(model, IMAGES, **given)
    again = generate_text(model, IMAGES, batch_size=2, **given)
    np.testing.assert_array_equal(first.ids, again.ids)  # whatever the batch
    assert len({tuple(row) for row in generate_text(model, IMAGES[:1].repeat(8, axis=0), **given).ids}) > 1
    assert (generate_text(model, IMAGES, seed=1, **given).ids != first.ids).any()
    likeliest = generate_text(model, IMAGES, length=10)
    np.testing.assert_array_equal(generate_text(model, IMAGES, top_k=1, **given).ids, likeliest.ids)
    assert not unexpected(
        [
            (lambda: generate_text(model, IMAGES, temperature=-1), "Received: temperature=-1, top_p=1.0"),
            (lambda: generate_text(model, IMAGES, temperature=1, top_p=0), "above 0 to 1. Received: temperature=1"),
            (lambda: generate_text(model, IMAGES, temperature=1, top_k=0), "`top_k` must be a positive integer"),
            (lambda: generate_text(model, IMAGES, top_k=5), "with a temperature. Received: top_k=5, top_p=1.0"),
            (
                lambda: generate_text(model, IMAGES, temperature=1, beams=2),
                "with one beam. Received: temperature=1",
            ),
            (lambda: generate_text(model, IMAGES, temperature=float("nan")), "must be a finite number"),
        ]
    )


@few(2)
@pytest.mark.parametrize("way", [dict(), dict(beams=2), dict(temperature=1.0)])
def test_a_model_that_computes_nan_writes_nothing(way):
    model = small()
    table = model.get_layer("text").get_layer("words").word_embedding
    table.assign(np.full(table.shape, np.nan, "float32"))
    with pytest.raises(ValueError, match="'captioner' must compute finite logits. Received: NaN or infinity"):
        generate_text(model, IMAGES, length=6, **way)


def test_a_penalty_of_any_size_is_no_fault():
    found = generate_text(small(), IMAGES[:1], length=12, length_penalty=-9.0)
    assert np.isfinite(found.scores).all()


def test_a_model_whose_file_names_its_tokenizer():
    pytest.importorskip("tokenizers")
    model = small(vocabulary=600, metadata={"tokens": str(GOLDEN / "trocr")})
    found = generate_text(model, IMAGES[:1], length=6)
    assert found.texts == generate_text(model, IMAGES[:1], GOLDEN / "trocr", length=6).texts
