"""Which patches speak for a class."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_vit import checks
from keras_vit.explain import anatomy
from keras_vit.gradients import gradients


def attention_relevance(model, images, classes=None):
    """Returns how much each patch speaks for a class: attention, weighted by the gradient of the class's logit.

    Chefer et al. 2021 (arXiv:2103.15679), section 3.1, equations 5 and 6: of a block's scores counts what raises the
    logit, as the mean over the heads of the positive part of gradient times score; it is added up along the residual
    path. Read where the model pools, as in `attention_rollout`.

    Args:
        model: As in `attention_maps`, with one logit a class.
        images: Array, `(batch, height, width, channels)`, 0..255.
        classes: Class index of each image, `(batch,)`, or one for all; what the model answers if `None`.

    Returns:
        float32 array, `(batch, rows, columns)`, from 0, without an upper bound.

    Raises:
        ValueError: As `attention_maps`, and for a class that the model does not have.
    """
    anatomy.blocks(model)
    if len(model.outputs) != 1 or len(model.output_shape) != 2:
        shapes = [tuple(tensor.shape) for tensor in model.outputs]
        raise ValueError(f"Relevance needs one logit a class. Received: {model.name!r}, with outputs {shapes}")
    images = checks.pixels(images, model.input_shape[1:])
    if classes is None:
        classes = anatomy.in_parts(_logits, model, images).argmax(-1)
    classes = np.full(len(images), classes) if np.ndim(classes) == 0 else classes
    classes = checks.class_indices(classes, model.output_shape[-1], len(images), "classes")
    return anatomy.in_parts(_relevance, model, images, classes).reshape(-1, *anatomy.grid(model))


def _logits(model, images):
    return ops.convert_to_numpy(model(ops.convert_to_tensor(images), training=False))


def _relevance(model, images, classes):
    blocks = anatomy.blocks(model)
    (first,) = anatomy.run(model.input, [blocks[0].input], images)
    ends = [*(block.input for block in blocks[1:]), model.output]
    joints = [None if block.output is end else keras.Model(block.output, end) for block, end in zip(blocks, ends)]

    def logit(added):
        x = first
        for block, extra, joint in zip(blocks, added, joints):
            with _added_to_scores(block.attention, extra):
                x, _ = block.call(x, return_attention_scores=True, training=False)  # never rematerialised
            x = x if joint is None else joint(x, training=False)
        return ops.sum(ops.take_along_axis(x, ops.convert_to_tensor(classes)[:, None], axis=1))

    scores = anatomy.scores(model, images)  # (layers, batch, heads, tokens, tokens)
    slopes = gradients(logit, list(np.zeros_like(scores)))
    flow = own_place = np.eye(scores.shape[-1], dtype="float32")
    for score, slope in zip(scores, slopes):
        flow = flow + np.maximum(slope * score, 0).mean(1) @ flow  # (batch, tokens, tokens)
    # What a patch says by being read at its own place is the same for all patches that are pooled: left out.
    return np.einsum("bt,bts->bs", anatomy.reading(model, images), flow - own_place)[:, anatomy.num_prefix(model) :]


@contextlib.contextmanager
def _added_to_scores(attention, extra):
    """A block in which a tensor is added to a layer's scores: what a gradient by them is taken by."""
    own = attention._scores
    attention._scores = lambda *inputs: own(*inputs) + extra
    try:
        yield
    finally:
        del attention._scores
