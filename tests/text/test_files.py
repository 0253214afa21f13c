import json

import pytest

from keras_vit.text import files
from tests.text.test_tokenizer import GOLDEN


def family(folder, there, **settings):
    """Returns the family of a folder with these files, empty, and these settings."""
    folder.mkdir(exist_ok=True)
    for name in there:
        (folder / name).touch()
    for name, content in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return files.find(folder).family


@pytest.mark.parametrize(
    ("wanted", "there", "settings"),
    [
        ("clip", ["vocab.json", "merges.txt"], {"tokenizer_config": {"tokenizer_class": "CLIPTokenizerFast"}}),
        ("clip", ["tokenizer.json"], {"config": {"model_type": "clip_text_model"}}),
        ("clip", ["tokenizer.json"], {"open_clip_config": {"model_cfg": {"text_cfg": {"context_length": 77}}}}),
        ("siglip", ["spiece.model", "tokenizer.json"], {"config": {"model_type": "siglip"}}),
        ("siglip2", ["tokenizer.json"], {"config": {"model_type": "siglip"}}),
        ("siglip2", ["tokenizer.json"], {"tokenizer_config": {"tokenizer_class": "GemmaTokenizer"}}),
        ("bert", ["vocab.txt"], {"config": {"model_type": "vilt"}}),
        ("bert", ["vocab.txt"], {"config": {"model_type": "blip"}, "tokenizer_config": {"tokenizer_class": None}}),
        ("gpt2", ["vocab.json"], {"config": {"decoder": {"model_type": "gpt2"}}}),
        ("roberta", ["vocab.json"], {"config": {"decoder": {"model_type": "trocr"}}}),
    ],
)
def test_the_settings_say_which_family(wanted, there, settings, tmp_path):
    assert family(tmp_path / "model", there, **settings) == wanted


def test_open_clip_s_own_settings_change_the_row(tmp_path):
    clean = {"model_cfg": {"text_cfg": {"tokenizer_kwargs": {"clean": "canonicalize"}}}}
    assert family(tmp_path / "one", ["spiece.model"], open_clip_config=clean) == "siglip"
    assert family(tmp_path / "two", ["tokenizer.json"], open_clip_config=clean) == "siglip2"
    t5 = {"tokenizer_class": "T5TokenizerFast"}
    assert family(tmp_path / "t5", ["tokenizer.json"], open_clip_config=clean, tokenizer_config=t5) == "siglip"
    assert files.find(tmp_path / "two").changes["clean"]("A_b, C!") == "a b c"
    assert files.find(GOLDEN / "clip_openclip").changes["pad"] == 0
    assert files.find(GOLDEN / "clip").changes["pad"] == "<|endoftext|>"


def test_ids_that_only_the_config_has(tmp_path):
    captions = {"model_type": "blip", "text_config": {"bos_token_id": 30522}}
    family(tmp_path / "blip", ["vocab.txt"], config=captions)
    assert files.find(tmp_path / "blip").changes == {"start": 30522}
    family(tmp_path / "blip", [], config={**captions, "architectures": ["BlipForQuestionAnswering"]})
    assert files.find(tmp_path / "blip").changes == {}
    with pytest.raises(ValueError, match="`eos_token_id` must be an id in the settings of .* Received: 'x'"):
        family(tmp_path / "gpt2", ["vocab.json"], config={"model_type": "gpt2", "eos_token_id": "x"})


@pytest.mark.parametrize(
    ("there", "settings", "said"),
    [
        (["spiece.model"], {}, "`family` must be one of 'clip', .*Received: no settings that say it"),
        (["tokenizer.json"], {"config": {"model_type": "t5"}}, "Received: t5"),
        (["tokenizer.json"], {"tokenizer_config": {"tokenizer_class": "MarianTokenizer"}}, "MarianTokenizer"),
        (
            ["tokenizer.json"],
            {"open_clip_config": {"model_cfg": {"text_cfg": {"hf_tokenizer_name": "roberta-base"}}}},
            "Received: no settings",
        ),
        ([], {"config": {"model_type": "clip"}}, "must have tokenizer.json or vocab.json. Received: none in"),
        (["tokenizer.json"], {"config": ["clip"]}, "must be a JSON object. Received: list"),
    ],
)
def test_others_are_refused(there, settings, said, tmp_path):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        family(tmp_path / "model", there, **settings)


def test_one_file_of_a_folder(tmp_path):
    assert files.find(GOLDEN / "clip" / "vocab.json").path.name == "vocab.json"
    with pytest.raises(
        FileNotFoundError, match="'siglip' must have spiece.model or tokenizer.json. Received: 'vocab.json'"
    ):
        files.find(GOLDEN / "clip" / "vocab.json", "siglip")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json' must be JSON"):
        files.find(tmp_path, "clip")
