"""Words to ids: the tokenizers of published text towers, and tables of words of one's own."""

from keras_vit.text.own import learn_words
from keras_vit.text.tokenizer import Tokenizer, tokenizer

__all__ = ["Tokenizer", "learn_words", "tokenizer"]
