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
