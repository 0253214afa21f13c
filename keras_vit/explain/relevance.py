"""Which patches speak for a class."""

import keras
import numpy as np
from keras import ops

from keras_vit import checks
from keras_vit.explain import anatomy
from keras_vit.gradients import gradients
from keras_vit.layers import TokenPool


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
    headless = isinstance(model.layers[-1], (TokenPool, keras.layers.LayerNormalization))
    if headless or len(model.outputs) != 1 or len(model.outputs[0].shape) != 2:
        shapes = [tuple(tensor.shape) for tensor in model.outputs]
        raise ValueError(
            f"Relevance needs a head with one logit a class. Received: {model.name!r}, which ends in "
            f"{model.layers[-1].name!r} with outputs {shapes}"
        )
    images = checks.pixels(images, model.inputs[0].shape[1:])
    if classes is None:
        classes = anatomy.in_parts(_logits, model, images).argmax(-1)
    classes = np.full(len(images), classes) if np.ndim(classes) == 0 else classes
    classes = checks.class_indices(classes, model.outputs[0].shape[-1], len(images), "classes")
    return anatomy.in_parts(_relevance, model, images, classes).reshape(-1, *anatomy.grid(model))


def _logits(model, images):
    return ops.convert_to_numpy(anatomy.run(model, model.outputs, images)[0])


def _relevance(model, images, classes):
    blocks = anatomy.blocks(model)
    tokens = anatomy.run(model, [block.input for block in blocks], images)
    chosen = np.eye(model.outputs[0].shape[-1], dtype="float32")[classes]  # by what the logits are pulled
    ends = [*(block.input for block in blocks[1:]), model.outputs[0]]
    weighted = []
    for block, x, end in reversed(list(zip(blocks, tokens, ends))):  # one at a time: all at once would fill the memory

        def pulled(values, block=block, end=end, by=chosen):
            result = anatomy.between(block.output, end, _with_added_scores(block, *values))
            return ops.sum(ops.cast(result, "float32") * by)

        _, scores = block(x, return_attention_scores=True, training=False)
        scores = ops.convert_to_numpy(scores)  # (batch, heads, tokens, tokens)
        chosen, slope = gradients(pulled, [x, np.zeros_like(scores)])
        chosen = np.asarray(chosen, "float32")
        weighted.append(np.maximum(slope * scores, 0).mean(1))  # (batch, tokens, tokens)
    flow = own_place = np.eye(weighted[0].shape[-1], dtype="float32")
    for each in reversed(weighted):
        flow = flow + each @ flow
    # What a patch says by being read at its own place is the same for all patches that are pooled: left out.
    return np.einsum("bt,bts->bs", anatomy.reading(model, images), flow - own_place)[:, anatomy.num_prefix(model) :]


def _with_added_scores(block, x, extra):
    """Returns what a block gives for `x` when a tensor is added to its attention scores; the block stays as it is."""
    layer = block.attention
    added = _Like(layer, _scores=lambda *inputs: layer._scores(*inputs) + extra)
    attention = lambda *inputs, **settings: type(layer).call(added, *inputs, **settings)  # noqa: E731
    return type(block).call(_Like(block, attention=attention), x, return_attention_scores=True, training=False)[0]


class _Like:
    """An object with all attributes of another, but for some of its own."""

    def __init__(self, other, **own):
        vars(self).update(own, _other=other)

    def __getattr__(self, name):
        return getattr(self._other, name)
