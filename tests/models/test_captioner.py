import keras
import numpy as np
import pytest

from keras_vit import captioner, generate_text, text_decoder, text_tower, two_towers, vit
from keras_vit.models.captioner import is_captioner, is_translator, parts_of
from keras_vit.traits import Traits
from tests.captions import SIZES, decoder, marks_of, numbers, small
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
GIVEN = {"images": RNG.integers(0, 256, (3, 8, 8, 3)).astype("uint8"), "texts": RNG.integers(0, 30, (3, 7), "int32")}


def tower(**options):
    return vit("mu/4", **{"image_size": 8, "pooling": "none", "num_classes": 0, **options})


def test_the_decoder_sees_all_tokens_of_the_image():
    image, text = tower(), decoder()
    model = captioner(image, text, start=2, end=3)
    assert [image.name, text.name] == ["vit_mu_4", "text"] and is_captioner(model) and not is_captioner(image)
    expected = text({"texts": GIVEN["texts"], "context": numbers(image(GIVEN["images"]))})
    np.testing.assert_allclose(numbers(model(GIVEN)), numbers(expected), atol=1e-6)
    assert model.output_shape == (None, None, 30) and image.output_shape == (None, 4, 32)
    assert marks_of(model) == {"start": 2, "end": 3, "pad": 3}


def test_an_encoder_of_texts_and_a_decoder(tmp_path):
    """As in Vaswani et al. 2017: the decoder sees all tokens of the source, each word no later one."""
    source = text_tower(vocabulary=20, length=6, width=32, depth=1, num_heads=2, pooling="none", masked_id=0)
    text = decoder()
    model = captioner(source, text, start=2, end=3, pad=0)
    assert is_translator(model) and not is_captioner(model) and Traits(model).structure == "translator"
    assert [part.name for part in parts_of(model)] == ["source", "text"] and model.name == "translator"
    given = {"sources": RNG.integers(0, 20, (3, 6), "int32"), "texts": GIVEN["texts"]}
    expected = text({"texts": given["texts"], "context": numbers(source(given["sources"]))})
    np.testing.assert_allclose(numbers(model(given)), numbers(expected), atol=1e-6)
    later = np.concatenate([given["texts"][:, :4], given["texts"][:, 4:] * 0 + 5], axis=1)
    np.testing.assert_allclose(numbers(model({**given, "texts": later}))[:, :4], numbers(expected)[:, :4], atol=1e-5)
    model.save(tmp_path / "translator.keras")
    np.testing.assert_array_equal(
        numbers(keras.models.load_model(tmp_path / "translator.keras")(given)), numbers(model(given))
    )
    with pytest.raises(ValueError, match="must be that of the text's tokens, 32. Received: 24"):
        captioner(source, text_decoder(**SIZES, context_width=24), start=0, end=1)


def test_a_decoder_that_does_not_attend_to_padding(tmp_path):
    """What padding has as its word does not matter, in the whole text as in the steps of the generator."""
    sizes = dict(vocabulary=20, length=6, width=32, depth=1, num_heads=2, causal=False, pooling="none")
    model = captioner(text_tower(**sizes, masked_id=0), decoder(mask_context=True), start=2, end=3, pad=0)
    given = {"sources": np.array([[5, 7, 9, 3, 0, 0], [5, 3, 0, 0, 0, 0]], "int32"), "texts": GIVEN["texts"][:2]}
    expected, written = numbers(model(given)), generate_text(model, given["sources"], length=8)
    model.save(tmp_path / "translator.keras")
    words = model.get_layer("source").get_layer("words")
    table = numbers(words.weights[0])
    table[0] += 3.0
    words.weights[0].assign(table)
    np.testing.assert_allclose(numbers(model(given)), expected, atol=1e-6)
    changed = generate_text(model, given["sources"], length=8)
    np.testing.assert_array_equal(changed.ids, written.ids)
    np.testing.assert_allclose(changed.scores, written.scores, atol=1e-5)
    again = keras.models.load_model(tmp_path / "translator.keras")
    np.testing.assert_allclose(numbers(again(given)), expected, atol=1e-6)
    for tower_, name in ((text_tower(**sizes), "text"), (tower(), "vit_mu_4")):
        with pytest.raises(ValueError, match=f"needs a text tower with `masked_id`, .* Received: '{name}' without it"):
            captioner(tower_, decoder(mask_context=True), start=2, end=3)


def test_two_towers_are_no_captioner():
    """Their parts have the same names, and with pairs as outputs the same number of axes."""
    text = text_tower(vocabulary=30, length=7, width=16, depth=1, num_heads=2, projection=8, pooling="first")
    image = vit("mu/4", image_size=8, num_classes=8)
    assert not any(is_captioner(two_towers(image, text, pairs=pairs)) for pairs in (True, False))


def test_trains_compiled_saves_and_loads(tmp_path):
    model = small()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    before = numbers(model(GIVEN))
    assert np.isfinite(model.train_on_batch(GIVEN, GIVEN["texts"]))
    assert not np.allclose(numbers(model(GIVEN)), before)
    model.save(tmp_path / "writer.keras")
    loaded = keras.models.load_model(tmp_path / "writer.keras")
    np.testing.assert_array_equal(numbers(loaded(GIVEN)), numbers(model(GIVEN)))
    assert marks_of(loaded) == {"start": 2, "end": 3, "pad": 1} and is_captioner(loaded)
    assert [weight.path for weight in loaded.weights] == [weight.path for weight in model.weights]


def test_a_tower_with_a_distillation_token():
    model = captioner(tower(tokens={"distilled": True}), decoder(), start=2, end=3)
    assert model.get_layer("image").output_shape == (None, 5, 32)
    with pytest.raises(ValueError, match="A distilled model needs pooling='token'"):
        tower(tokens={"distilled": True}, num_classes=5)


def test_bad_models_and_ids():
    image, text = tower(), decoder()
    wrong = [
        (lambda: captioner(vit("mu/4", image_size=8), text, start=0, end=1), "`image` must be .*Received: 'vit_mu_4'"),
        (lambda: captioner("vit", text, start=0, end=1), "`image` must be .*Received: 'vit'"),
        (lambda: captioner(image, image, start=0, end=1), "`decoder` must be a model from keras_vit.text_decoder"),
        (lambda: captioner(image, decoder("language"), start=0, end=1), "must have a `context_width`"),
        (
            lambda: captioner(image, text_decoder(**SIZES, context_width=24), start=0, end=1),
            "must be that of the image's tokens, 32. Received: 24",
        ),
        (
            lambda: captioner(image, text, start=30, end=1),
            "`start` must be below the vocabulary, 30. Received: start=30",
        ),
        (lambda: captioner(image, text, start=0, end=-1), "`end` must be an integer, 0 or more. Received: end=-1"),
    ]
    assert not unexpected(wrong)


def test_what_does_not_write_has_no_parts():
    wrong = [
        (
            lambda: parts_of(decoder("gpt2")),
            "must be joined with a tower by keras_vit.captioner. Received: 'text'",
        ),
        (
            lambda: parts_of(small().get_layer("image")),
            "must be a model from keras_vit.text_decoder. Received: 'image'",
        ),
    ]
    assert not unexpected(wrong)
