"""The vectors of classes in the space of a text tower, by their names."""

import collections

import keras
import numpy as np

from keras_vit.explain.embedding import unit
from keras_vit.explain.towers import own_words, text_vectors
from keras_vit.models.outputs import check_labels
from keras_vit.utils import checks

PROMPTS = ("a photo of a {}.",)
SLOT = "{}"


def class_vectors(towers, classes, tokens, prompts):
    """Returns the names of classes as a list, and their vectors, of length 1, `(classes, width)`.

    Args:
        towers: `Towers`; those with a bias give independent probabilities, for which one class will do.
        classes: Names, all different.
        tokens: As in `towers.tokens_for`.
        prompts: Texts with `{}` instead of the name, or one, over whose embeddings the mean is taken; `None` for CLIP's
            `"a photo of a {}."`, or the name alone for a tower with a table of words of its own.

    Raises:
        TypeError, ValueError: For a class given twice or none, a prompt without `{}`, and as `towers.text_embeddings`.
    """
    classes = classes.tolist() if isinstance(classes, np.ndarray) else classes
    classes = list(checks.sequence("classes", classes))
    if prompts is None:
        own = (tokens is None or isinstance(tokens, keras.Model)) and own_words(towers.text)
        prompts = (SLOT,) if own else PROMPTS
    prompts = list(checks.sequence("prompts", [prompts] if isinstance(prompts, str) else prompts))
    wrong = [each for each in classes + prompts if not isinstance(each, str) or not each.strip()]
    if wrong:
        raise ValueError(f"Each class and each prompt must be a text. Received: {checks.shown(wrong[0]):.100}")
    if not classes or (len(classes) == 1 and towers.bias is None):
        raise ValueError(f"`classes` must be two names or more. Received: classes={checks.shown(classes):.100}")
    twice = next((name for name, count in collections.Counter(classes).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"Each class must be given once. Received: {twice!r} twice")
    without = [prompt for prompt in prompts if SLOT not in prompt]
    if without or not prompts:
        raise ValueError(
            f"Each prompt must have {SLOT} instead of the name. Received: {checks.shown(without or prompts):.100}"
        )
    check_labels(classes)
    texts = [prompt.replace(SLOT, name) for name in classes for prompt in prompts]
    vectors = text_vectors(towers, tokens, texts)
    return classes, unit(vectors.reshape(len(classes), len(prompts), -1).mean(1))
