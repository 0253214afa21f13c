"""Models that write about images beside their originals, and what is asked for wrongly."""

import json
import shutil
import warnings

import keras
import numpy as np
import pytest

from keras_vit import from_checkpoint, from_pretrained, generate_text
from tests.captions import CASES, FOLDER, arrays_in, images_of, io_in, marks_of, numbers, original, settings_in, until
from tests.checkpoints.helpers import assert_same_weights, unexpected, weights, write
from tests.marks import few, slow

pytestmark = [pytest.mark.backend, pytest.mark.filterwarnings("ignore:.*does not show all:UserWarning")]


def copied(case, folder, arrays=None, **config):
    """Returns the folder of a copy of a golden file with other tensors, and with options of its `config.json`."""
    own = json.loads((FOLDER / case / "config.json").read_text())
    for name, value in config.items():
        place, _, option = name.partition("__")
        own |= {place: own[place] | {option: value}} if option else {name: value}
    (folder / "config.json").write_text(json.dumps(own))
    write(folder / "model.safetensors", arrays_in(case) | (arrays or {}))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_logits_are_the_original_s(case):
    model, io = original(case), io_in(case)
    images, texts = images_of(model, io), io.get("decoder_inputs", io.get("tokens")).astype("int32")
    np.testing.assert_allclose(model.get_layer("image")(images), io["context"], atol=1e-4)
    logits = numbers(model({"images": images, "texts": texts}, training=False))
    np.testing.assert_allclose(logits, io["logits"], atol=1e-4)
    labels = io.get("labels", np.where(texts[:, 1:] == 0, -100, texts[:, 1:]))  # BLIP predicts its own input
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
    found = numbers(loss(labels.astype("int32"), logits[:, : labels.shape[1]]))
    counted = (labels != -100).mean()  # Keras divides by all places
    assert any(np.isclose(found / share, io["loss"], atol=1e-4) for share in (1, counted))


@few(1)
@pytest.mark.parametrize("case", CASES)
def test_texts_are_the_original_s(case):
    model, io, stated = original(case), io_in(case), settings_in(case)
    marks, searches = marks_of(model), {"greedy": {}, "beam": {"beams": stated["beams"]}}
    searches |= {"prompted": {"prompt": io["prompt"]}} if "prompt" in io else {}
    for name, options in searches.items():
        found = generate_text(model, images_of(model, io), length=stated["max_length"], **options)
        assert until(found.ids, marks["end"]) == until(io[name], marks["end"]), name
        if name == "beam":
            np.testing.assert_allclose(found.scores, io["beam_scores"], atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_each_part_alone_has_the_same_weights(case):
    model, path = original(case), FOLDER / case / "checkpoint.safetensors"
    text, image = (from_pretrained(path, part=part) for part in ("text", "image"))
    assert_same_weights(weights(text), weights(model.get_layer("text")))
    assert set(weights(image)) - set(weights(model.get_layer("image"))) <= {"head/kernel", "head/bias"}
    assert len(image.output_shape) == 2  # the tower alone is pooled, as any ViT
    metadata = text.get_layer("words").metadata
    assert metadata["source"] == str(path) and metadata["tokens"] in ("gpt2", "roberta", "bert")


def test_a_round_trip_through_keras_own_file(tmp_path):
    model, io = original("trocr"), io_in("trocr")
    model.save(tmp_path / "writer.keras")
    loaded = keras.models.load_model(tmp_path / "writer.keras")
    assert marks_of(loaded) == {"start": 2, "end": 299, "pad": 1}
    inputs = {"images": images_of(model, io), "texts": io["decoder_inputs"].astype("int32")}
    np.testing.assert_array_equal(numbers(loaded(inputs)), numbers(model(inputs)))


def test_ids_come_from_the_generation_s_settings_first(tmp_path):
    """As transformers' `generate` finds them; what is padding where nobody says it is the end."""
    folder = copied("vision_encoder_decoder", tmp_path, eos_token_id=None, pad_token_id=None)
    (folder / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 7}))
    assert marks_of(from_checkpoint(folder)) == {"start": 7, "end": 306, "pad": 306}


def test_old_names_and_copies_are_dropped(tmp_path):
    gpt2, blip = arrays_in("vision_encoder_decoder"), arrays_in("blip_captioning")
    masks = {f"decoder.transformer.h.{i}.attn.{name}": np.ones((1, 1, 4, 4)) for i in (0, 1) for name in ("bias",)}
    masks |= {"decoder.transformer.h.0.attn.masked_bias": np.ones(1)}
    masks |= {"decoder.lm_head.weight": gpt2["decoder.transformer.wte.weight"]}
    table = blip["text_decoder.bert.embeddings.word_embeddings.weight"]
    copies = {"text_decoder.bert.embeddings.position_ids": np.arange(24)[None]}
    copies |= {"text_decoder.cls.predictions.decoder.weight": table}
    copies |= {"text_decoder.cls.predictions.decoder.bias": blip["text_decoder.cls.predictions.bias"]}
    for case, more in (("vision_encoder_decoder", masks), ("blip_captioning", copies)):
        (tmp_path / case).mkdir()
        model = from_checkpoint(copied(case, tmp_path / case, more))
        assert_same_weights(weights(model), weights(original(case)))


@slow
def test_a_matrix_of_its_own_counts_whatever_the_settings_say(tmp_path):
    """As transformers 5 reads them; without one, the settings say whether the table of words is meant."""
    rng = np.random.default_rng(0)
    heads = ("decoder.lm_head", "decoder.output_projection", "text_decoder.cls.predictions.decoder")
    for case, head in zip(CASES, heads):
        config = json.loads((FOLDER / case / "config.json").read_text())
        part = "text_config" if case == "blip_captioning" else "decoder"
        words = original(case).get_layer("text").get_layer("words")
        own = {f"{head}.weight": rng.normal(size=(words.vocabulary, words.width)).astype("float32")}
        own |= {f"{head}.bias": rng.normal(size=words.vocabulary).astype("float32")} if part == "text_config" else {}
        for i, said in enumerate((True, False)):
            folder = tmp_path / f"{case}{i}"
            folder.mkdir()
            stated = {"tie_word_embeddings": said, part: config[part] | {"tie_word_embeddings": said}}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = from_checkpoint(copied(case, folder, own, **stated)).get_layer("text")
            assert said == any("the matrix of the logits is the table of words" in str(w.message) for w in caught)
            np.testing.assert_array_equal(numbers(model.get_layer("head").kernel).T, own[f"{head}.weight"])
            if f"{head}.bias" in own:
                np.testing.assert_array_equal(numbers(model.get_layer("head").bias), own[f"{head}.bias"])
    blip = CASES[2]
    for i, (whole, part) in enumerate(((True, False), (False, True))):  # one of both is enough
        (tmp_path / str(i)).mkdir()
        folder = copied(blip, tmp_path / str(i), tie_word_embeddings=whole, text_config__tie_word_embeddings=part)
        assert_same_weights(weights(from_checkpoint(folder)), weights(original(blip)))
    (tmp_path / "none").mkdir()
    folder = copied(blip, tmp_path / "none", tie_word_embeddings=False, text_config__tie_word_embeddings=False)
    with pytest.raises(ValueError, match="missing in the file: cls.predictions.decoder.weight"):
        from_checkpoint(folder)


def test_how_a_file_s_texts_are_written_is_said_or_followed(tmp_path):
    folder = copied("trocr", tmp_path)
    stated = {"max_length": 7, "num_beams": 4, "repetition_penalty": 1.2}
    stated |= {"decoder_start_token_id": 2, "eos_token_id": 299, "pad_token_id": 1}
    (folder / "generation_config.json").write_text(json.dumps(stated))
    with pytest.warns(UserWarning, match="num_beams=4, repetition_penalty=1.2, .* Pass beams=4. It has no repetition_"):
        model = from_checkpoint(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = generate_text(model, images_of(model, io_in("trocr")))
    assert found.ids.shape[1] == 7


def test_images_of_another_size_and_precision(tmp_path):
    model = from_checkpoint(FOLDER / "blip_captioning", image_size=48, dtype="mixed_bfloat16")
    assert {model.get_layer(name).dtype_policy.name for name in ("image", "text")} == {"mixed_bfloat16"}
    logits = model({"images": np.zeros((1, 48, 48, 3)), "texts": np.ones((1, 5), "int32")})
    assert logits.shape == (1, 5, 103) and keras.backend.standardize_dtype(logits.dtype) == "float32"


def test_what_cannot_be_read_is_refused(tmp_path):
    folders = iter(range(99))

    def made(case, arrays=None, **config):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return copied(case, folder, arrays, **config)

    def bare(case):
        return shutil.copy(FOLDER / case / "checkpoint.safetensors", tmp_path / f"{case}.safetensors")

    gpt2, trocr, blip = CASES
    wrong = [
        (dict(source=made(gpt2, decoder__model_type="bert")), "must be one of gpt2, trocr. Received: 'bert'"),
        (
            dict(source=made(gpt2, encoder__model_type="swin")),
            "The encoder's `model_type` must be one of vit, deit. Received: 'swin'",
        ),
        (dict(source=made(gpt2, decoder__scale_attn_weights=False)), "scale_attn_weights=False cannot be loaded"),
        (dict(source=made(gpt2, decoder__activation_function="silu")), "activation must be one of .*Received: 'silu'"),
        (dict(source=made(gpt2, decoder__tie_word_embeddings=False)), "missing in the file: lm_head.weight"),
        (dict(source=made(gpt2, eos_token_id=[1, 2])), r"one id as `eos_token_id`. Received: \[1, 2\]"),
        (dict(source=made(gpt2, decoder__n_embd=64)), "says n_embd 64, and the weights have 32"),
        (dict(source=made(gpt2, {"decoder.more.weight": np.ones(3)})), "not in the model: more.weight"),
        (dict(source=made(trocr, decoder__layernorm_embedding=False)), "not in the model: layernorm_embedding.bias"),
        (dict(source=made(trocr, decoder__use_learned_position_embeddings=False)), "not in the model: embed_positions"),
        (dict(source=made(blip, text_config__num_attention_heads=5)), "cannot be split into 5 heads"),
        *((dict(source=bare(case)), "config.json") for case in CASES),
        (dict(source=FOLDER / blip, num_classes=3), "pass part='image'. Received: num_classes=3"),
        (dict(source=FOLDER / blip, pooling="gap"), "pass part='image'. Received: pooling='gap'"),
        (dict(source=FOLDER / blip, head="new"), "need the file's head"),
        (dict(source=FOLDER / trocr, part="text", causal=True), "must be a dictionary with keys among"),
        (dict(source=FOLDER / trocr, text={"width": 8}), "does not match the model; of another shape"),
        (dict(source=FOLDER / trocr, part="image", text={"width": 8}), "`text` is for part='both'"),
    ]
    assert not unexpected([(lambda given=given: from_checkpoint(**given), says) for given, says in wrong])


def test_blip_s_model_of_answers_is_read_as_its_image_tower(tmp_path):
    more = {"text_encoder.encoder.layer.0.output.dense.weight": np.ones((3, 3), "float32")}
    model = from_checkpoint(copied("blip_captioning", tmp_path, more))
    assert model.output_shape == (None, 36) and model.input_shape == (None, 32, 32, 3)
