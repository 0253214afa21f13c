import json
import pathlib

import numpy as np
import pytest

import keras_vit
from keras_vit import tokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "tokens"
CASES = {  # and the library that reads them
    "clip": "tokenizers", "clip_openclip": "tokenizers", "siglip": "sentencepiece", "siglip2": "tokenizers",
    "vilt_vqa": "tokenizers", "blip_captioning": "tokenizers", "vision_encoder_decoder": "tokenizers",
    "trocr": "tokenizers",
}  # fmt: skip
TABLE = ["<pad>", "<start>", "<end>", "red", "car", "a", "?", "'", "s", "é"]


def known(case):
    """Returns the texts of a golden tokenizer and the ids of each, up to the end."""
    ids = np.load(GOLDEN / case / "ids.npz")["ids"]
    return json.loads((GOLDEN / case / "texts.json").read_text())["texts"], ids


@pytest.mark.parametrize("case", CASES)
def test_ids_are_the_original_s(case):
    pytest.importorskip(CASES[case])
    texts, ids = known(case)
    made = tokenizer(GOLDEN / case, ids.shape[1], long="cut")(texts)  # of ViLT's some are too long
    assert made.dtype == "int32"
    np.testing.assert_array_equal(np.where(ids == -100, -100, made), ids)


@pytest.mark.parametrize("case", CASES)
def test_a_text_that_is_too_long_is_named_or_cut_with_its_end(case):
    pytest.importorskip(CASES[case])
    texts, ids = known(case)
    tokens = tokenizer(GOLDEN / case, ids.shape[1])
    long = " ".join(texts[0] for _ in range(20))
    count = len(tokens.ids(long)[0])
    with pytest.raises(
        ValueError, match=f"at most {ids.shape[1]} tokens: shorten it.* Received: {count} in '{long[:20]}"
    ):
        tokens(long)
    [cut] = tokenizer(GOLDEN / case, ids.shape[1], long="cut")(long)
    np.testing.assert_array_equal(cut, [*tokens.ids(long)[0][: ids.shape[1] - 1], tokens.end])


@pytest.mark.parametrize("case", ["clip", "siglip", "siglip2"])
def test_capitals_are_lowered_as_python_lowers_them(case):
    """A Greek capital sigma at the end of a word becomes another letter than inside it."""
    pytest.importorskip(CASES[case])
    tokens = tokenizer(GOLDEN / case, 40)
    for text in ("ΣΑΣ", "A PHOTO OF A CAT", "ÉTÉ", "İ"):
        np.testing.assert_array_equal(tokens(text), tokens(text.lower()))
    if case == "clip":  # of which every byte has an id
        assert tokens.ids("\u03c2") != tokens.ids("\u03c3") and tokens.ids("😀") == tokens.ids("  😀\n")


def test_siglip_2_is_lowered_where_its_file_does_not(tmp_path):
    """As most published files do not: transformers' pull request 43101."""
    pytest.importorskip("tokenizers")
    content = json.loads((GOLDEN / "siglip2" / "tokenizer.json").read_text())
    content["normalizer"]["normalizers"] = content["normalizer"]["normalizers"][1:]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    texts, ids = known("siglip2")
    np.testing.assert_array_equal(tokenizer(tmp_path, ids.shape[1], family="siglip2")(texts), ids)


def test_contractions_of_clip_are_pieces():
    """transformers' older tokenizer made two of 've: issues 22166 and 26887."""
    pytest.importorskip("tokenizers")
    tokens = tokenizer(GOLDEN / "clip", 20)
    apart = [each for word in ("you", "'ve", "done", "this") for each in tokens.ids(word)[0][1:-1]]
    assert tokens.ids("You've done this")[0][1:-1] == apart
    assert len(tokens.ids("2024")[0]) == 2 + 4  # each digit is a piece


def test_a_table_of_words_needs_no_extra():
    tokens = tokenizer(TABLE, 6)
    np.testing.assert_array_equal(tokens(["A red car?", ""]), [[1, 5, 3, 4, 6, 2], [1, 2, 0, 0, 0, 0]])
    assert tokens.ids("car's É") == [[1, 4, 7, 8, 9, 2]]
    assert (tokens.size, tokens.pad, tokens.start, tokens.end, tokens.family) == (10, 0, 1, 2, "words")
    assert tokenizer(["<pad>", "<unknown>", "a"], 3)("a blue").tolist() == [[2, 1, 0]]
    with pytest.raises(ValueError, match="Each word must be in the table. Received: 'blue' in 'a blue car'"):
        tokens("a blue car")


def test_texts_may_be_an_array_and_none():
    tokens = tokenizer(TABLE, 6)
    assert tokens(np.array(["a", "car"])).shape == (2, 6) and tokens([]).shape == (0, 6)


@pytest.mark.parametrize(
    ("texts", "error", "said"),
    [
        (None, TypeError, "must be a string or a list of them. Received: NoneType"),
        ({"a": 1}, TypeError, "must be a string or a list of them. Received: dict"),
        (["a", float("nan")], TypeError, "Each text must be a string. Received: nan"),
        ([b"a"], TypeError, "Each text must be a string. Received: b'a'"),
        (["\ud800"], ValueError, "Each text must be valid Unicode"),
        (["a a a a a a a a"], ValueError, "at most 6 tokens: shorten it, or pass long='cut'. Received: 10 in 'a a"),
    ],
)
def test_bad_texts(texts, error, said):
    with pytest.raises(error, match=said):
        tokenizer(TABLE, 6)(texts)


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        (["a"], {}, "the table must have the piece '<pad>', as all of 'words'. Received: none"),
        (["<pad>", "a", "a"], {}, "Each word of a table must be there once. Received: 'a' twice"),
        (
            ["<pad>", "A"],
            {},
            "one run of lower-case letters and digits, which may begin with ##, or one sign. Received: 'A'",
        ),
        (["<pad>", "red car"], {}, "or one sign. Received: 'red car'"),
        (["<pad>", "##?"], {}, "or one sign. Received: '##[?]'"),
        (TABLE, {"family": "clip"}, "family='words' is that of this table: .* Received: family='clip'"),
        (TABLE, {"length": 2}, "`length` must be at least 3 for 'words'. Received: length=2"),
        (TABLE, {"length": 0}, "`length` must be a positive integer"),
        (TABLE, {"long": "crop"}, "`long` must be one of 'raise', 'cut'. Received: long='crop'"),
        ("words.txt", {"family": "words"}, "family='words' must have a list of words"),
        ("words.txt", {"family": "t5"}, "`family` must be one of 'clip'"),
    ],
)
def test_bad_arguments(source, more, said):
    with pytest.raises(ValueError, match=said):
        tokenizer(source, **{"length": 6, **more})


def test_damaged_files_and_others(tmp_path):
    pytest.importorskip("tokenizers")
    pytest.importorskip("sentencepiece")
    for name, family in (("tokenizer.json", "clip"), ("vocab.json", "gpt2"), ("spiece.model", "siglip")):
        (tmp_path / name).write_bytes(b"\xff\x00{")
        (tmp_path / "merges.txt").write_text("#version: 0.2\n")
        with pytest.raises(ValueError, match=f"{name}' is damaged or no tokenizer: "):
            tokenizer(tmp_path / name, 8, family=family)
    with pytest.raises(ValueError, match="tokenizer.json' must have the piece '<eos>', as all of 'siglip2'"):
        tokenizer(GOLDEN / "clip", 8, family="siglip2")
    with pytest.raises(FileNotFoundError, match="There is no file or folder 'nowhere'"):
        tokenizer("nowhere", 8)


def test_a_repository_is_downloaded(monkeypatch):
    pytest.importorskip("tokenizers")
    asked = []
    download = lambda source, patterns: asked.append((source, patterns)) or GOLDEN / "clip"  # noqa: E731
    monkeypatch.setattr("keras_vit.utils.downloads.snapshot", download)
    texts, ids = known("clip")
    np.testing.assert_array_equal(tokenizer("hf://me/clip", 20)(texts), ids)
    [(source, patterns)] = asked
    assert source == "hf://me/clip" and {"tokenizer.json", "merges.txt", "config.json"} <= set(patterns)
    assert not [name for name in patterns if "safetensors" in name or "*" in name]


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    for case, library in (("clip", "tokenizers"), ("siglip", "sentencepiece")):
        with pytest.raises(ImportError, match=rf"needs {library}. Install it: pip install .*\[text\]"):
            tokenizer(GOLDEN / case, 20)
    assert keras_vit.tokenizer(TABLE, 6)("a").shape == (1, 6)


@pytest.mark.parametrize("case", CASES)
def test_ids_become_texts_again(case):
    pytest.importorskip(CASES[case])
    tokens = tokenizer(GOLDEN / case, 64)
    texts = ["a photo of a cat", "a red circle", ""]
    assert [text.strip() for text in tokens.texts(tokens(texts))] == texts
    assert tokens.begun(texts) == [ids[:-1] for ids in tokens.ids(texts)]
    padded = [*tokens.ids(texts[0])[0], *tokens.ids(texts[1])[0]]  # what follows the end does not count
    assert tokens.texts([padded])[0].strip() == texts[0]


def test_ids_of_a_table_and_others():
    tokens = tokenizer(TABLE, 6)
    assert tokens.texts(tokens(["A red car?"])) == ["a red car ?"] and tokens.texts([]) == []
    for rows in (3, [3], [[2.5]], [[-1]], "a"):
        with pytest.raises(ValueError, match="`rows` must be rows of ids, integers of at least 0. Received: "):
            tokens.texts(rows)
