import json

import pytest

from keras_vit import tokenizer
from keras_vit.text.engines import cut, tree_of
from tests.text.test_tokenizer import GOLDEN

TEXTS = [
    "", "A photo of a cat.", "l'été à Paris", "e\u0301te\u0301", "😀😀 ok", "Ἀθήνας ΣΑΣ", "you've 2024!!!", "\ta\n b  ",
    "ﬁ “x” ½", "<|endoftext|> a", "日本 語", "a_b-c", "don't", "ǅ İ ẞ",
]  # fmt: skip


def test_vocabulary_and_merges_are_as_the_whole_file():
    pytest.importorskip("tokenizers")
    whole, parts = (tokenizer(GOLDEN / "clip" / name, 40) for name in ("tokenizer.json", "vocab.json"))
    assert whole.ids(TEXTS) == parts.ids(TEXTS) and whole.size == parts.size == 574


def test_settings_of_bert(tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "A", "é", "e", ","]))
    plain = tokenizer(tmp_path / "vocab.txt", 8, family="bert")
    assert plain("A, é x").tolist() == [[2, 4, 8, 7, 1, 3, 0, 0]]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert tokenizer(tmp_path, 8, family="bert")("A, é").tolist() == [[2, 5, 8, 6, 3, 0, 0, 0]]


def test_a_vocabulary_needs_its_merges(tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="vocab.json' needs merges.txt in the same folder"):
        tokenizer(tmp_path, 8, family="roberta")


def test_a_blank_belongs_to_the_next_word_of_gpt2():
    pytest.importorskip("tokenizers")
    tokens = tokenizer(GOLDEN / "vision_encoder_decoder", 8)
    assert tokens.start is None and tokens.ids("cat") != tokens.ids(" cat")
    assert tokenizer(GOLDEN / "trocr", 8).ids("") == [[0, 2]]


def test_sentencepiece_as_fairseq_counts(tmp_path):
    """Ids are one above those of the file, but for the four that come first; as transformers' XLMRobertaTokenizer."""
    sentencepiece = pytest.importorskip("sentencepiece")
    file = tmp_path / "sentencepiece.bpe.model"
    text, prefix = ["a photo of a cat", "l'été à Paris", "two red cars"] * 9, str(file).removesuffix(".model")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=prefix, vocab_size=40, minloglevel=2, hard_vocab_limit=False
    )
    inner = sentencepiece.SentencePieceProcessor(model_file=str(file))
    tokens = tokenizer(file, 40, family="xlmr")
    assert (tokens.start, tokens.pad, tokens.end, tokens.size) == (0, 1, 2, inner.get_piece_size() + 2)
    for text in TEXTS:
        wanted = [3 if id == inner.unk_id() else id + 1 for id in inner.encode(text)]
        assert tokens.ids(text) == [[0, *wanted, 2]]
    assert tokens.texts(tokens(["two red cats", "l'été"])) == ["two red cats", "l'été"]
    (tmp_path / "config.json").write_text(
        '{"model_type": "vision-encoder-decoder", "decoder": {"model_type": "trocr"}}'
    )
    assert tokenizer(tmp_path, 8).family == "xlmr"
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizerFast"}')
    assert tokenizer(tmp_path, 8).family == "xlmr"


def test_a_word_of_any_length_is_cut_in_time_that_grows_with_it():
    tokens = tokenizer(["<pad>", "<end>", "<unknown>", "a", "##a", "##aab", "aaa", "c"], 4, long="cut")
    assert tokens.ids("aaaaab aac caab")[0] == [6, 5, 2, 7, 5, 1]  # each the longest from the left
    for letters, id in (("a" * 300_000, 4), ("a" * 300_000 + "b", 5), ("x" * 300_000, 2)):  # a cube of it took days
        assert tokens.ids(letters)[0][-2] == id
    assert cut("cab", tree_of(["c", "##a"])) == [] and cut("c", {}) == []


WORDS = {"<My-Dog>": 9, "zorbium": 10}


def slow_files(folder, **settings):
    """Writes BERT's files of nine rows."""
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "dog", "my", "<", "-"]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **settings}))
    return folder


def test_words_that_were_added_have_their_own_ids(tmp_path):
    """As transformers reads them: those of added_tokens.json in any case of letters, unless they are special."""
    pytest.importorskip("tokenizers")
    slow_files(tmp_path)
    (tmp_path / "added_tokens.json").write_text(json.dumps(WORDS))
    tokens = tokenizer(tmp_path, 8)
    assert tokens.ids(["a <my-dog> a", "Zorbium", "dog"]) == [[2, 4, 9, 4, 3], [2, 10, 3], [2, 5, 3]]
    assert tokens.size == 11 and tokens.texts([[2, 4, 10, 3]]) == ["a zorbium"]
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["<My-Dog>"]}))
    assert tokenizer(tmp_path, 8).ids(["<my-dog>", "a<My-Dog>"]) == [[2, 7, 6, 8, 5, 1, 3], [2, 4, 9, 3]]
    how = {str(id): {"content": word, "single_word": True, "normalized": False} for word, id in WORDS.items()}
    (tmp_path / "added_tokens.json").unlink()
    assert tokenizer(slow_files(tmp_path, added_tokens_decoder=how), 8).ids(["zorbium", "azorbium"]) == [
        [2, 10, 3],
        [2, 1, 3],
    ]


def test_a_word_with_capitals_is_found_before_letters_are_made_small(tmp_path):
    pytest.importorskip("tokenizers")
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes((GOLDEN / "clip" / name).read_bytes())
    how = {"574": {"content": "<My-Dog>", "normalized": False}}
    settings = {"tokenizer_class": "CLIPTokenizer", "added_tokens_decoder": how}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokens = tokenizer(tmp_path, 20)
    assert 574 in tokens.ids("A Photo <My-Dog>")[0] and 574 not in tokens.ids("a photo <my-dog>")[0]
    assert tokens.ids("A PHOTO") == tokenizer(GOLDEN / "clip" / "vocab.json", 20).ids("a photo")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"12": {"content": "new"}}, "must follow its vocabulary. Received: 'new' with the id 12 in place of 9"),
        ({"9": {"content": "dog"}}, "Received: 'dog' with the id 9 in place of 5"),
        ({"9": "dog"}, "must be texts, each found by True or False. Received: "),
        ({"9": {"content": "new", "lstrip": "yes"}}, "must be texts, each found by True or False"),
        ({"x": {"content": "new"}}, "`added_tokens_decoder` must be an id in the settings of .* Received: 'x'"),
        ({str(2**40): {"content": "new"}}, "must be an id in the settings"),
    ],
)
def test_added_words_that_cannot_be(how, said, tmp_path):
    pytest.importorskip("tokenizers")
    with pytest.raises(ValueError, match=said):
        tokenizer(slow_files(tmp_path, added_tokens_decoder=how), 8)


def test_added_words_of_sentencepiece_are_refused(tmp_path):
    pytest.importorskip("sentencepiece")
    (tmp_path / "spiece.model").write_bytes((GOLDEN / "siglip" / "spiece.model").read_bytes())
    (tmp_path / "added_tokens.json").write_text('{"<new>": 99999}')
    with pytest.raises(ValueError, match="are read from tokenizer.json: save it, too. Received: '<new>'"):
        tokenizer(tmp_path, 8, family="siglip")
