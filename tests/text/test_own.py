import json

import numpy as np
import pytest

from keras_vit import tokenizer
from keras_vit.text.own import learn_words

TEXTS = ["red apple", "green apple", "a red car", "cars; a bar", "Grinning face", "grinning cat", "12:30 é"]


def test_frequent_words_are_rows_and_rare_ones_are_cut():
    table = learn_words(TEXTS, 100)
    assert table[:3] == ["<pad>", "<end>", "<unknown>"] and len(set(table)) == len(table)
    assert {"grinning", "apple", "red", "##ar"} <= set(table) and "green" not in table
    table = json.loads(json.dumps(table))  # as a model's metadata keep it
    tokens = tokenizer(table, 8)
    assert [table[i] for i in tokens.ids("Red bars")[0]] == ["red", "b", "##ar", "##s", "<end>"]
    assert [table[i] for i in tokens.ids("red zebra ñ")[0]] == ["red", "<unknown>", "<unknown>", "<end>"]
    assert tokens(["a red car", ""]).tolist() == [
        [*(table.index(word) for word in ("a", "red", "car")), 1, 0, 0, 0, 0],
        [1] + [0] * 7,
    ]


def test_texts_come_back():
    table = learn_words(TEXTS, 60)
    tokens = tokenizer(table, 20)
    for text in ("red apple", "a grinning car", "12 : 30 é"):
        assert tokens.texts(tokens(text)) == [text]
    assert tokens.texts(tokens("a ñ")) == ["a <unknown>"]


def test_the_table_does_not_depend_on_the_order_of_texts_and_respects_its_limits():
    assert learn_words(TEXTS, 60) == learn_words(np.array(TEXTS[::-1]), 60)
    letters = learn_words(TEXTS, 1)
    assert all(len(row.removeprefix("##")) == 1 for row in letters[3:])
    assert len(learn_words(TEXTS, len(letters) + 3)) == len(letters) + 3
    assert learn_words(TEXTS, 1000, least=10) == letters
    words = learn_words(["what color is it", "is it red"] * 2, 1000)  # with room for all, words are whole
    assert [words[i] for i in tokenizer(words, 9).ids("is it red")[0]] == ["is", "it", "red", "<end>"]


def test_repeated_letters():
    table = learn_words(["aaaa aaaa", "aaa"], 50)
    tokens = tokenizer(table, 9)
    assert tokens.texts(tokens("aaaa aaaaaaa a")) == ["aaaa aaaaaaa a"]


@pytest.mark.parametrize("texts", [[], ["", " \n"]])
def test_texts_without_words(texts):
    with pytest.raises(ValueError, match="Texts must have words to learn from. Received: "):
        learn_words(texts)
    with pytest.raises(TypeError, match="Each text must be a string. Received: 3"):
        learn_words(["a", 3])
    with pytest.raises(ValueError, match="`size` must be a positive integer"):
        learn_words(["a"], 0)


def test_an_accent_is_written_in_one_way():
    table = learn_words(["un caf\u00e9", "cafe\u0301"], 20)
    assert "##\u00e9" in table and "\u0301" not in table
    made = tokenizer(table, 4)
    assert made("caf\u00e9").tolist() == made("cafe\u0301").tolist()


def test_letters_keep_capitals_and_blanks():
    table = learn_words(["AB-12 c", "Ba  b\n", "é"], letters=True)
    assert table == ["<pad>", "<end>", "<unknown>", " ", "-", "1", "2", "A", "B", "a", "b", "c", "é"]
    tokens = tokenizer(json.loads(json.dumps(table)), 8)
    assert tokens.family == "letters"
    assert tokens.texts(tokens([" AB-12  c", "e\u0301", ""])) == ["AB-12 c", "é", ""]
    assert tokens("Aß").tolist() == [[7, 2, 1, 0, 0, 0, 0, 0]] and tokens.texts(tokens("Aß")) == [
        "A\N{REPLACEMENT CHARACTER}"
    ]
    assert learn_words(["abb b", "ccc"], 6, letters=True)[3:] == [" ", "b", "c"]  # the most frequent
    with pytest.raises(ValueError, match="must have more than 4 rows. Received: size=4"):
        learn_words(["abc"], 4, letters=True)
    with pytest.raises(ValueError, match="have letters to learn from. Received: "):
        learn_words([" "], letters=True)
    with pytest.raises(ValueError, match="`letters` must be True or False. Received: letters='yes'"):
        learn_words(["a"], letters="yes")


def test_tables_of_letters_that_cannot_be():
    with pytest.raises(ValueError, match="Each letter must be in the table. Received: 'b' in 'ab'"):
        tokenizer(["<pad>", " ", "a"], 4)("ab")
    with pytest.raises(ValueError, match="must be one letter or sign. Received: 'ab'"):
        tokenizer(["<pad>", " ", "ab"], 4)
    with pytest.raises(
        ValueError,
        match="family='letters' is that of this table: .* Received: family='words'",
    ):
        tokenizer(["<pad>", " "], 4, family="words")
    with pytest.raises(ValueError, match="family='letters' must have a list of letters"):
        tokenizer("spiece.model", 4, family="letters")
