"""What the page shows of an image: the answer, the picture, and where the model looked."""

from typing import Any, NamedTuple

import numpy as np

from keras_vit.demo import markup
from keras_vit.explain import attention_rollout
from keras_vit.explain.queries import has_queries, where_queries_look
from keras_vit.explain.reading import doubt
from keras_vit.models.inputs import fed
from keras_vit.plots import canvas
from keras_vit.plots.attention import METHODS
from keras_vit.runs.looking import SIMILARITY, similarity_of, support_of
from keras_vit.tasks.shown import INPUT

VIEW = 336  # pixels of the longer side of an image
WIDE, WIDEST = 672, 2048  # of a picture that a task draws, at least and at most
MOST_TEXTS = 32  # that are ranked
QUERIES = "Attention of the queries: where those look that found something"
SAYS_NOTHING = "No answer: the model was trained without classes and gives {} numbers, which describe the image."
COSINES = "Cosines of image and text, from -1 to 1: an order, no probabilities."


class Seen(NamedTuple):
    """What the page shows, in the order of its parts."""

    answer: str = ""  # HTML
    picture: Any = None
    under: str = ""  # the picture: what it shows
    laid: Any = None  # the image under a heat map
    heading: str = ""  # of the heat map
    playing: str = ""  # HTML of a clip


def looks_of(loaded):
    """Returns the ways to see where a model looked: `(function from inputs to maps, heading)` by name.

    Args:
        loaded: A `Trained`.
    """
    if loaded.task.whole:  # by tiles
        return {}
    about = loaded.about
    model, tower, support, looks = about.model, about.tower, support_of(about), {}
    if about.structure == "towers":
        looks["similarity"] = (lambda examples: similarity_of(model, examples["images"], examples["texts"]), SIMILARITY)
    if has_queries(model):
        looks["queries"] = (lambda examples: where_queries_look(model, examples["images"]), QUERIES)
    elif not (about.reads_both or doubt(tower)):
        looks["rollout"] = (lambda examples: attention_rollout(tower, examples["images"]), METHODS["rollout"][1])
    if support:
        looks["relevance"] = (support, METHODS["relevance"][1])
    return looks


def seeing(loaded, looks, most):
    """Returns the function from pixels, the name of a look and a text to what is shown, a `Seen`.

    Args:
        loaded: A `Trained`.
        looks: From `looks_of`.
        most: Bars, at most; of several labels all that hold.
    """
    run, task = loaded.viewer(), loaded.task
    asks, ranks = "texts" in task.inputs, task.gives == "pairs"

    def see(pixels, method=None, text=""):
        if pixels is None:
            return Seen()
        texts = _texts(text, ranks) if asks else []
        if asks and not texts:
            return Seen(markup.answer(notes=[f"Write a {task.asks.lower()}, and press the button."]))
        if len(texts) > MOST_TEXTS:
            note = f"At most {MOST_TEXTS} texts are compared at once. Received: {len(texts)}"
            return Seen(markup.answer(notes=[note]))
        count = max(len(texts), 1)
        try:
            examples = {"images": np.repeat(pixels[None], count, 0), **loaded.ids_of(texts if asks else None, count)}
        except ValueError as error:  # of a text that is too long, or has other words
            return Seen(markup.answer(notes=[str(error)]))
        outputs = run(fed(examples, task.inputs))
        best = int(np.argmax([next(iter(task.answer(one).values())) for one in outputs])) if ranks else 0
        output, notes = outputs[best], [note for one in texts for note in notes_on(task, one)]
        if count > 1:
            answer = markup.answer(texts[best], rows=ranked(task, texts, outputs), notes=[COSINES, *notes])
        else:
            bars = dict([*task.bars(output).items()][: len(task.listed(output, most))])
            name = next(iter(bars)) if bars and task.gives != "labels" else task.heading(output)
            answer = markup.answer(name, bars, notes=notes if name else [*notes, SAYS_NOTHING.format(np.size(output))])
        seen = canvas.as_bytes(pixels, loaded.about.range)
        drawn = task.picture(seen, output)
        side = min(max(*drawn.shape[:2], WIDE), WIDEST) if draws_more(task, output) else VIEW
        picture, under = canvas.painted(drawn, side=side), _capital(task.shows(output))
        look, heading = looks.get(method, (None, ""))
        if look is None:
            return Seen(answer, picture, under)
        try:
            heat = look({name: values[best : best + 1] for name, values in examples.items()})[0]
        except ValueError as error:  # of a model that it cannot follow
            return Seen(answer, picture, under, None, str(error))
        playing = markup.animation(pixels, heat) if task.clips is not None else ""
        return Seen(answer, picture, under, canvas.painted(seen, heat, VIEW), heading, playing)

    return see


def draws_more(task, output=()):
    """Returns whether a task draws more than the input of its model."""
    return task.draws and task.shows(output) != INPUT


def _texts(text, several):
    """Returns the texts in a box, each once: one on each line, or a single one."""
    lines = (text or "").splitlines() if several else [" ".join((text or "").split())]
    return [*dict.fromkeys(line.strip() for line in lines if line.strip())]


def ranked(task, texts, outputs):
    """Returns texts with their similarity to an image, the nearest first: pairs of texts."""
    order = sorted(zip(texts, outputs), key=lambda pair: -next(iter(task.answer(pair[1]).values())))
    return [(text, task.heading(output)) for text, output in order]


def notes_on(task, text):
    """Returns sentences on a text's words that the model does not know, or knows in pieces alone."""
    unknown, pieced = task.unknown_in(text), [] if task.letters else task.pieced_in(text)
    notes = [f"Unknown to the model: {_quoted(unknown)}."] if unknown else []
    return notes + ([f"Rare or unknown, read in pieces: {_quoted(pieced)}."] if pieced else [])


def _quoted(words):
    return ", ".join(f"“{word}”" for word in words)


def hint(task):
    """Returns a sentence on the words that a task's model knows; `""` without a table of words."""
    whole = [word for word in task.words if len(word) > 2 and word.isalpha()]
    return f"Its {len(whole)} words are such as {', '.join(whole[-8:])}." if whole else ""


def _capital(text):
    return text[:1].upper() + text[1:]
