"""Parts of the files of CLIP and SigLIP, and what is asked for wrongly; their numbers: `test_golden_answers.py`."""

import json

import keras
import numpy as np
import pytest

from keras_vit import from_checkpoint, from_pretrained, load_weights, save_checkpoint
from keras_vit.checkpoints.remarks import Assumption
from tests.checkpoints.helpers import assert_same_weights, file_of, unexpected, weights, write
from tests.checkpoints.towers import TOWERS, answers, arrays_in, both, file_in, io_in

pytestmark = pytest.mark.backend


def copied(case, folder, change, config=None):
    """Returns a copy of a golden file with other tensors, next to its `config.json` or another."""
    own = (TOWERS / case / "config.json").read_text()
    (folder / "config.json").write_text(json.dumps(config) if config else own)
    return write(folder / "model.safetensors", change(arrays_in(case)))


def of_text(arrays):
    return {name: array for name, array in arrays.items() if name.startswith("text_")}


@pytest.mark.parametrize("case", ["clip", "siglip2", "siglip_bigvision"])
def test_each_part_alone_has_the_same_weights(case):
    model = both(case)
    text, image = (from_checkpoint(file_in(case), part=part) for part in ("text", "image"))
    assert_same_weights(weights(text), weights(model.get_layer("text")))
    assert_same_weights(weights(image), weights(model.get_layer("image")))
    about = text.get_layer("words").metadata
    assert about["source"] == str(file_in(case)) and about["format"].endswith("-text") and "gelu" in about["from"]
    assert about["tokens"] == ("clip" if case == "clip" else "siglip")


def test_a_round_trip_through_keras_own_file(tmp_path):
    model, io = both("siglip2"), io_in("siglip2")
    model.save(tmp_path / "towers.keras")
    loaded = keras.models.load_model(tmp_path / "towers.keras")
    for name, array in answers(model, io).items():
        np.testing.assert_array_equal(answers(loaded, io)[name], array)
    assert from_checkpoint(tmp_path / "towers.keras", part="text").output_shape == model.get_layer("text").output_shape
    assert not unexpected(
        [
            (
                lambda: save_checkpoint(model, tmp_path / "x", format="huggingface"),
                "must be a model from `keras_vit.vit`",
            ),
            (
                lambda: load_weights(model, file_in("siglip2")),
                "Models of several inputs are loaded from a run or a .keras file",
            ),
        ]
    )


def test_a_text_tower_alone(tmp_path):
    """As Stable Diffusion's encoders: transformers' CLIPTextModel, with its projection or without."""
    io, own = io_in("clip"), json.loads((TOWERS / "clip" / "config.json").read_text())["text_config"]
    path = copied("clip", tmp_path, of_text, own)
    model = from_checkpoint(path, part="text")
    np.testing.assert_allclose(model(io["tokens"]), io["text_embedding"], atol=1e-4)
    path = copied("clip", tmp_path, lambda a: {k: v for k, v in of_text(a).items() if "text_proj" not in k}, own)
    last = io["text_tokens_output"][np.arange(5), io["tokens"].argmax(axis=1)]
    np.testing.assert_allclose(from_checkpoint(tmp_path, part="text")(io["tokens"]), last, atol=1e-4)
    assert not unexpected([(lambda: from_checkpoint(path, part="both"), "need the scale of their logits")])


def test_old_buffers_are_dropped_and_another_end_may_be_chosen(tmp_path):
    """Files before transformers 4.31 have `position_ids`; a table with words behind its end needs the end's own id."""
    ids = {f"{part}_model.embeddings.position_ids": np.arange(20)[None] for part in ("text", "vision")}
    path, io = copied("clip", tmp_path, lambda arrays: arrays | ids), io_in("clip")
    found = answers(from_checkpoint(path, part="both"), io)
    np.testing.assert_allclose(found["logits_per_image"], io["logits_per_image"], atol=1e-4)
    other = from_checkpoint(path, part="text", pooling="end", end=int(io["tokens"][0, 2]))
    last = keras.Model(other.input, other.get_layer("pool").output)(io["tokens"][:1])
    np.testing.assert_allclose(last, io["text_tokens_output"][:1, 2], atol=1e-4)
    with pytest.raises(ValueError, match="expected shape=.None, 20., found shape=.5, 12."):  # never another length
        other(io["tokens"][:, :12])


def test_the_caller_may_say_what_a_bare_file_does_not(tmp_path):
    """Warnings of the heads of a width that no text tower has, and of an end of other tokens than CLIP's."""
    path, io = write(tmp_path / "bare.safetensors", arrays_in("clip")), io_in("clip")
    heads = {"num_heads": 3, "text": {"num_heads": 4, "pooling": "largest"}}
    with pytest.warns(Assumption, match="gelu='quick' .files of CLIP have 'exact' or 'quick'."):
        model = from_checkpoint(path, part="both", **heads)
    np.testing.assert_allclose(answers(model, io)["logits_per_image"], io["logits_per_image"], atol=1e-4)
    text = {"num_heads": 4}
    assert not unexpected(
        [
            (lambda: from_checkpoint(path, part="text"), "No tensor shows the heads, and no text tower of width 32 is"),
            (lambda: from_checkpoint(path, part="text", **text), "CLIP has 49408 ids, not 574: pass pooling. Received"),
        ]
    )


def test_precision_and_metadata_go_to_both():
    model = both("clip", dtype="mixed_bfloat16", metadata={"name": "mine"})
    assert {tower.dtype_policy.name for tower in map(model.get_layer, ("image", "text"))} == {"mixed_bfloat16"}
    text = from_checkpoint(file_in("clip"), part="text", metadata={"name": "mine"}, name="reader")
    assert text.name == "reader" and text.get_layer("words").metadata["name"] == "mine"


def test_wrong_parts_are_refused(tmp_path):
    clip, vit = file_in("clip"), file_of("google_vit")
    more = copied("clip", tmp_path, lambda arrays: arrays | {"text_model.pooler.weight": np.ones(3, "float32")})
    wrong = [
        (
            dict(source=clip, part="words"),
            "`part` must be one of None, 'image', 'text', 'both', 'encoder', 'decoder'. Received: part='words'",
        ),
        (dict(source=vit, part="text"), "must have a text tower of huggingface, openai, google. Received: a file with"),
        (dict(source=vit, part="both"), "must have a text tower of"),
        (dict(source=clip, part="text", format="google"), "must have a text tower of google"),
        (dict(source=clip, part="text", image_size=64), "keys among vocabulary, .*Received: .'image_size': 64."),
        (
            dict(source=clip, part="text", head="new", grid=(2, 2)),
            "A text tower has no head, .*Received: part='text', h",
        ),
        (dict(source=clip, part="both", head="new"), "Both towers need the file's head"),
        (dict(source=clip, text={"num_heads": 4}), "`text` is for part='both'. Received: part='image'"),
        (dict(source=clip, part="both", text={"heads": 4}), "`text` must be a dictionary with keys among vocabulary"),
        (dict(source=clip, part="both", num_classes=0), "need the file's head, .*Received: num_classes=0"),
        (dict(source=clip, part="text", width=16), "does not match the model; of another shape: "),
        (dict(source=more, part="text"), "does not match the model; not in the model: pooler.weight"),
    ]
    assert not unexpected([(lambda given=given: from_checkpoint(**given), says) for given, says in wrong])
    two = copied("clip", tmp_path, lambda arrays: arrays | {"logit_scale": np.ones(2, "float32")})
    assert not unexpected(
        [(lambda: from_checkpoint(two, part="both"), "logit_scale of .* must be one number. Received")]
    )
    by_name = [(lambda: from_pretrained("B/16-augreg-i21k-i1k-384", part="text"), "by name are of images alone")]
    assert not unexpected(by_name)
