import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.explain import towers as module
from keras_vit.frozen.embedder import Embedder
from tests.marks import slow_on_jax
from tests.towers import LENGTH, WORDS, two_towers

pytestmark = pytest.mark.backend


@pytest.fixture(scope="module")
def model():
    return two_towers()


def test_the_parts_of_two_towers(model):
    towers = module.towers_of(model)
    assert (towers.image.name, towers.text.name, towers.bias) == ("image", "text", None)
    assert abs(towers.scale - np.exp(1.5)) < 1e-5 and module.towers_of(two_towers(bias=-3.0)).bias == -3
    with pytest.raises(ValueError, match="must have an image tower and a text tower.* Received: 'image'"):
        module.towers_of(towers.image)
    with pytest.raises(TypeError, match="`model` must be a Keras model. Received: model='clip'"):
        module.towers_of("clip")


@slow_on_jax
def test_embeddings_are_those_of_the_towers(model):
    towers = module.towers_of(model)
    tokens = keras_vit.tokenizer(WORDS, LENGTH)
    texts = ["a red car", "dog"]
    vectors = module.text_vectors(towers, tokens, texts)
    raw = keras.ops.convert_to_numpy(towers.text(tokens(texts)))
    np.testing.assert_allclose(vectors, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(module.text_vectors(towers, WORDS, texts, batch_size=1), vectors, atol=1e-6)
    own = module.towers_of(two_towers(words=WORDS))
    np.testing.assert_allclose(module.text_vectors(own, None, texts), vectors, atol=1e-6)


def test_what_tokens_is_for_a_named_model(model):
    own = two_towers(words=WORDS)
    assert module.usual_tokens(own, "name") is own and module.usual_tokens(model, "name") == "name"
    assert module.tokens_for(module.towers_of(own), own).size == len(WORDS)


def test_a_keras_file_has_both_and_is_read_as_its_image_tower(model, tmp_path):
    model.save(tmp_path / "both.keras")
    texts, tokens = ["a red car"], keras_vit.tokenizer(WORDS, LENGTH)
    again = module.towers_of(keras_vit.from_pretrained(tmp_path / "both.keras", part="both"))
    wanted = module.text_vectors(module.towers_of(model), tokens, texts)
    np.testing.assert_allclose(module.text_vectors(again, tokens, texts), wanted, atol=1e-6)
    named = Embedder(tmp_path / "both.keras")
    assert named.fingerprint() == Embedder(model).fingerprint() == Embedder(again.image).fingerprint()
    assert named.name == str(tmp_path / "both.keras") and Embedder(model).name == ""


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (None, "The model has no table of words: pass `tokens`, a tokenizer. Received: tokens=None"),
        ([*WORDS, "boat"], "whose table has 12 rows. Received: ids up to 12"),
        (lambda texts: np.full((1, LENGTH), 12), "must return ids from 0 to 11. Received: 12 to 12"),
        (lambda texts: np.full((1, LENGTH), -1), "must return ids from 0 to 11. Received: -1 to -1"),
        (lambda texts: np.ones((1, LENGTH)), r"must return integers of shape \(1, 8\). Received: \(1, 8\), float64"),
        (keras_vit.tokenizer(WORDS, 5), r"must return integers of shape \(1, 8\). Received: \(1, 5\), int32"),
    ],
)
def test_tokens_of_another_model(model, tokens, said):
    with pytest.raises(ValueError, match=said):
        module.text_vectors(module.towers_of(model), tokens, "a dog")


def test_a_tokenizer_of_another_family_whose_ids_fit():
    """CLIP's 49,408 ids fit into SigLIP 2's table of 256,000."""
    towers = module.towers_of(two_towers())
    towers.text.get_layer("words").metadata = {"tokens": "siglip"}
    with pytest.raises(ValueError, match="own, by the rules of 'siglip'. Received: those of 'words'"):
        module.tokens_for(towers, WORDS)
    towers.text.get_layer("words").metadata = {}
    towers.text.get_layer("pool").end = 3
    with pytest.raises(ValueError, match="own, whose texts end with the id 3. Received: the end 1"):
        module.tokens_for(towers, WORDS)


def test_texts_that_cannot_be_searched(model):
    towers = module.towers_of(model)
    for texts in ("", [" "], []):
        with pytest.raises(ValueError, match="Each text must have a word"):
            module.text_vectors(towers, WORDS, texts)
    with pytest.raises(ValueError, match="at most 8 tokens: shorten it, .*Received: 10 in 'a a a"):
        module.text_vectors(towers, WORDS, "a a a a a a a a a")
