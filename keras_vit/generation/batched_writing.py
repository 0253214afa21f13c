"""Writes texts batch by batch, with compiled writers that are kept."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.generation.search import NEVER, Rules
from keras_vit.generation.writer import Writer
from keras_vit.utils import reading
from keras_vit.utils.feeding import replicas

KEPT = 8  # compiled writers


class Plan(NamedTuple):
    """What is to be written, checked."""

    model: keras.Model
    image: keras.Model | None  # its image tower, or `None` for a language model
    images: list | None
    read: Callable  # from the place of a text to the pixels of its image, or to `None`
    begun: list[list[int]]  # ids that each text begins with
    draws: np.ndarray | None  # uniform numbers, `(texts, length)`, by which words are drawn
    rules: Rules
    beams: int
    batch_size: int
    tokens: Any  # a `Tokenizer`, or `None`


class Written(NamedTuple):
    """A batch of texts."""

    places: list[int]  # of those that were written, in the order of all
    ids: np.ndarray  # int32, `(texts, length)`
    scores: np.ndarray  # float32, `(texts,)`
    errors: dict[int, Exception]  # of images that cannot be read, by their places

    def __len__(self):
        return len(self.places) + len(self.errors)


def batches(plan):
    """Writes the texts of a plan, in their order; yields a `Written` for each batch.

    Texts that begin with different numbers of ids are written together: fillers stand before those with fewer. So a
    writer is compiled for powers of two of these numbers, not for each.

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
            yield Written([], np.zeros((0, rules.length), "int32"), np.zeros(0, "float32"), errors)
            continue
        padded = (some + some[-1:] * size)[:size]  # one size: compiled once
        fillers = np.array([first - len(plan.begun[i]) for i in padded], "int32")
        begun = [[rules.pad] * none + plan.begun[i] for none, i in zip(fillers, padded)]
        inputs = {"texts": np.array(begun, "int32")}
        if first > 1:
            inputs["fillers"] = fillers
        if plan.draws is not None:
            room = ((0, first - 1),)
            inputs["draws"] = np.stack([np.roll(np.pad(plan.draws[i], room), n) for i, n in zip(padded, fillers)])
        if plan.images is not None:
            pixels = [*batch.pixels.values()]
            inputs["images"] = np.concatenate((pixels + pixels[-1:] * size)[:size])
        ids, scores = (keras.ops.convert_to_numpy(each)[: len(some)] for each in write.predict_on_batch(inputs))
        if np.isnan(scores).any() or (scores == np.float32(NEVER)).any():
            raise ValueError(f"{plan.model.name!r} must compute finite logits. Received: NaN or infinity")
        rows = [row[none : none + rules.length] for row, none in zip(ids, fillers)]
        yield Written(some, np.stack(rows), scores, errors)


@functools.lru_cache(maxsize=KEPT)
def _writer(model, variables, size, first, rules, beams):
    """Returns a compiled writer; that of a model to which weights were added, such as LoRA, is another."""
    writer = Writer(model, size, first, rules, beams)
    on_cpu = keras.backend.backend() == "tensorflow" and not keras.distribution.list_devices("gpu")
    writer.compile(jit_compile=not on_cpu)  # there XLA takes longer to compile, and is slower with beams
    return writer
