"""Files of tokenizers that would wait, end in a panic or write without an end: each is one sentence."""

import base64
import json
import os
import struct

import pytest

from keras_vit import tokenizer
from keras_vit.text import guard
from keras_vit.text.engines import Engine
from tests.text.test_tokenizer import GOLDEN

VOCABULARY = {"<|startoftext|>": 0, "<|endoftext|>": 1, "cat": 2}
WHOLE = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None, "decoder": None,
    "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": VOCABULARY, "unk_token": "<|endoftext|>"},
}  # fmt: skip


def wrote(folder, **more):
    (folder / "tokenizer.json").write_text(json.dumps(WHOLE | more))
    return folder / "tokenizer.json"


def doubled(times):
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    return {"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": [step] * times}]}


def charsmap(*texts):
    return struct.pack("<I", 4) + bytes(4) + b"\0".join(texts) + b"\0"


def message(number, data):
    sizes, size = b"", len(data)
    while size > 127:
        sizes, size = sizes + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + sizes + bytes([size]) + data


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"normalizer": doubled(30)}, "must not make a text more than 1,000 times as long. Received: 1,073,741,824"),
        ({"decoder": {"type": "Sequence", "decoders": doubled(11)["normalizers"]}}, "times as long. Received: 2,048"),
        (
            {"normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "x" * 2000}},
            "times as long. Received: 2,001",
        ),
        (
            {
                "normalizer": {
                    "type": "Precompiled",
                    "precompiled_charsmap": base64.b64encode(charsmap(b"a", b"b" * 5000)).decode(),
                }
            },
            "times as long. Received: 5,000",
        ),
        ({"model": WHOLE["model"] | {"vocab": VOCABULARY | {"cat": 2**31}}}, "ids below 16,777,216. Received: 2,147,"),
        ({"model": WHOLE["model"] | {"unk_token": "nope"}}, "cannot read .*Missing .UNK. token"),
        (
            {
                "pre_tokenizer": {
                    "type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False,
                }
            },
            "cannot read .*retry-limit",
        ),
    ],
)  # fmt: skip
def test_hostile_rules_are_refused(more, said, tmp_path):
    pytest.importorskip("tokenizers")
    path = wrote(tmp_path, **more)
    with pytest.raises(ValueError, match=f"tokenizer.json' .*{said}"):
        tokenizer(path, 8, family="clip", long="cut")("a cat " + "a" * 40 + "!")


def test_what_waits_or_never_ends_is_not_opened(tmp_path):
    pytest.importorskip("tokenizers")
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(ValueError, match="must be a regular file"):
        tokenizer(tmp_path, 8, family="clip")
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "merges.txt").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="must be a regular file"):
        tokenizer(tmp_path, 8, family="gpt2")
    with open(tmp_path / "tokenizer.json", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match="must have at most 67,108,864 bytes"):
        tokenizer(tmp_path, 8, family="clip")
    (tmp_path / "tokenizer.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="is damaged or no tokenizer"):
        tokenizer(tmp_path, 8, family="clip")


def test_files_of_sentencepiece(tmp_path):
    path = tmp_path / "spiece.model"
    inner = message(1, b"name") + message(2, charsmap(b"b" * 5000))
    path.write_bytes(message(1, b"piece") + b"\x10\x05" + message(3, inner) + message(3, b""))
    with pytest.raises(ValueError, match="times as long. Received: 5,000"):
        guard.check(path)
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="no file of sentencepiece"):
        guard.check(path)
    for file in GOLDEN.rglob("*"):
        if file.name in ("spiece.model", "tokenizer.json", "vocab.json"):
            guard.check(file)


def test_an_interrupt_is_no_fault_of_the_file():
    def stop(texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.guarded(Engine(stop, None, None, 3), "'a'").pieces(["x"])
