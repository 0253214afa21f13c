"""Writes texts, about images or on their own: the encoder once, then one step a word, batch by batch."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_vit.generation.decoding import context_of, empty_cache, step
from keras_vit.generation.search import NEVER, Rules, beam_search, one_by_one, room
from keras_vit.models.captioner import context_for, parts_of
from keras_vit.utils import reading
from keras_vit.utils.feeding import replicas

KEPT = 8  # compiled writers


class Plan(NamedTuple):
    """The checked arguments of a call that writes texts."""

    model: keras.Model
    image: keras.Model | None  # the tower that reads, or `None` for a language model
    images: list | None  # or ids to translate
    read: Callable  # from the place of a text to the pixels of its image, or its ids, or to `None`
    begun: list[list[int]]  # ids that each text begins with
    draws: np.ndarray | None  # uniform numbers, `(texts, length)`, by which words are drawn
    rules: Rules
    beams: int
    batch_size: int
    tokens: Any  # a `Tokenizer`, or `None`


class Batch(NamedTuple):
    """A batch of texts that were written."""

    places: list[int]  # of those that were written, in the order of all
    ids: np.ndarray  # int32, `(texts, length)`
    scores: np.ndarray  # float32, `(texts,)`
    errors: dict[int, Exception]  # of images that cannot be read, by their places

    def __len__(self):
        return len(self.places) + len(self.errors)


class Writer(keras.Model):
    """Writes a fixed number of texts that begin with at most a fixed number of ids.

    Its inputs are `texts`, `(count, first)`, int32, and of a captioner `images`, one each, or ids to translate. Its
    outputs are ids, `(count, length)`, and the texts' scores. If words are drawn, `draws` is an input too, as
    `one_by_one` takes it. With the input `fillers`, `(count,)`, int32, this number of padding tokens is before each
    text, and the ids have `first - 1` columns more.

    Args:
        model: A model from `captioner`, or from `text_decoder` without a context.
        count: Number of texts.
        first: Ids that each begins with.
        rules: `Rules`.
        beams: Number of beams; with 1 the likeliest next word is taken each time.
    """

    def __init__(self, model, count, first, rules, beams=1):
        super().__init__(name="writer")
        image, text = parts_of(model)
        self.image = image
        self.text = text
        self.size = (count, first)
        self.rules = rules
        self.beams = beams
        search = one_by_one if beams == 1 else functools.partial(beam_search, beams=beams)
        self.search = functools.partial(search, rules=rules)

    def call(self, inputs):
        context = None
        if self.image is not None:
            context = context_of(self.text, **context_for(self.text, self.image, inputs["images"], training=False))
        begun = ops.reshape(inputs["texts"], self.size)
        fillers = inputs.get("fillers")
        cache = empty_cache(self.text, self.size[0], room(self.size[1], self.rules, fillers))
        logits, cache = step(self.text, begun, 0, cache, context, fillers)
        every = None if fillers is None else ops.repeat(fillers, self.beams)
        following = functools.partial(step, self.text, context=context, fillers=every)
        draws = {"draws": inputs["draws"]} if "draws" in inputs else {}
        return self.search(following, logits, cache, begun, fillers=fillers, **draws)


def batches(plan):
    """Writes the texts of a plan, in their order; yields a `Batch` for each batch.

    Prompts of different lengths are written together: shorter ones are padded at the beginning. So a writer is compiled
    for powers of two of these lengths, not for each.

    Raises:
        ValueError: If logits are not finite.
    """
    count, rules = len(plan.begun), plan.rules
    longest = max(map(len, plan.begun))
    first = min(2 ** (longest - 1).bit_length(), rules.length - 1)
    size = -(-min(plan.batch_size, count) // replicas()) * replicas()
    write = _writer(plan.model, tuple(map(id, plan.model.variables)), size, first, rules, plan.beams)
    for batch in reading.batches(plan.read, range(count), size):
        some = [batch.images[i] for i in batch.pixels]
        errors = {batch.images[i]: error for i, error in batch.errors.items()}
        if not some:
            yield Batch([], np.zeros((0, rules.length), "int32"), np.zeros(0, "float32"), errors)
            continue
        padded = (some + some[-1:] * size)[:size]  # one size: compiled once
        fillers = np.array([first - len(plan.begun[i]) for i in padded], "int32")
        begun = [[rules.pad] * none + plan.begun[i] for none, i in zip(fillers, padded)]
        inputs = {"texts": np.array(begun, "int32")}
        if first > 1:
            inputs["fillers"] = fillers
        if plan.draws is not None:
            padding = ((0, first - 1),)
            inputs["draws"] = np.stack([np.roll(np.pad(plan.draws[i], padding), n) for i, n in zip(padded, fillers)])
        if plan.images is not None:
            pixels = [*batch.pixels.values()]
            inputs["images"] = np.concatenate((pixels + pixels[-1:] * size)[:size])
        ids, scores = (keras.ops.convert_to_numpy(each)[: len(some)] for each in write.predict_on_batch(inputs))
        if np.isnan(scores).any() or (scores == np.float32(NEVER)).any():
            raise ValueError(f"{plan.model.name!r} must compute finite logits. Received: NaN or infinity")
        rows = [row[none : none + rules.length] for row, none in zip(ids, fillers)]
        yield Batch(some, np.stack(rows), scores, errors)


@functools.lru_cache(maxsize=KEPT)
def _writer(model, variables, size, first, rules, beams):
    """Returns a compiled writer; that of a model to which weights were added, such as LoRA, is another."""
    writer = Writer(model, size, first, rules, beams)
    on_cpu = keras.backend.backend() == "tensorflow" and not keras.distribution.list_devices("gpu")
    writer.compile(jit_compile=not on_cpu)  # there XLA takes longer to compile, and is slower with beams
    return writer
