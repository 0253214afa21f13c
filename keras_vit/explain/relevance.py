"""Which patches speak for a class."""

import functools
import itertools

import keras
import numpy as np
from keras import ops

from keras_vit import checks
from keras_vit.backbone import calls, input_of, leading_to, outputs_of
from keras_vit.explain import anatomy
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
    check(model)
    if classes is None:
        classes = anatomy.in_parts(lambda *inputs: _logits(model, inputs[2]), model, images, images).argmax(-1)
    images = anatomy.checked(model, images)
    classes = np.full(len(images), classes) if np.ndim(classes) == 0 else classes
    classes = checks.class_indices(classes, model.outputs[0].shape[-1], len(images), "classes")
    return anatomy.in_parts(functools.partial(_relevance, model=model), model, images, classes).reshape(
        -1, *anatomy.grid(model)
    )


def check(model):
    """Raises ValueError if `attention_relevance` cannot be computed for a model."""
    anatomy.blocks(model)
    last, shapes = model.layers[-1], [tuple(tensor.shape) for tensor in outputs_of(model)]
    while isinstance(last, keras.Model):
        last = last.layers[-1]
    headless = isinstance(last, (TokenPool, keras.layers.LayerNormalization))
    if headless or len(shapes) != 1 or len(shapes[0]) != 2:
        raise ValueError(
            f"Relevance needs a head with one logit a class. Received: {model.name!r}, which ends in "
            f"{last.name!r} with outputs {shapes}"
        )
    input_of(model, model.outputs)
    for graph, call in calls(model):
        around = [node for node in leading_to(graph.outputs, call.outputs) if not node.input_tensors]
        if around or len(call.outputs) != 1:
            raise ValueError(
                f"Relevance needs logits that are computed from the ViT's output alone. Received: {graph.name!r}, with "
                "a path around it. Pass the ViT itself, keras_vit.backbone.backbone(model), if it has a head."
            )


def _logits(model, images):
    return ops.convert_to_numpy(anatomy.run(model, model.outputs, images)[0])


def _relevance(vit, images, classes, model):
    blocks = anatomy.blocks(vit)
    tokens = anatomy.run(vit, [block.input for block in blocks], images)
    chosen = np.eye(model.outputs[0].shape[-1], dtype="float32")[classes]  # by what the logits are pulled
    around = [(call.outputs[0], graph.outputs[0]) for graph, call in reversed(calls(model))]  # of the ViT, inner first
    ways = [[(block.output, after.input)] for block, after in itertools.pairwise(blocks)]
    ways.append([(blocks[-1].output, vit.outputs[0]), *around])
    weighted = []
    for block, x, way in reversed(list(zip(blocks, tokens, ways))):  # one at a time: all at once would fill the memory

        def pulled(values, block=block, way=way, by=chosen):
            result = _with_added_scores(block, *values)
            for start, end in way:
                result = anatomy.between(start, end, result)
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
    return np.einsum("bt,bts->bs", anatomy.reading(vit, images), flow - own_place)[:, anatomy.num_prefix(vit) :]


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


def gradients(function, values):
    """Differentiates a function.

    Args:
        function: From a list of tensors to a scalar tensor.
        values: List of tensors, at which the gradient is taken.

    Returns:
        A list of the function's gradients by each of `values`, as NumPy arrays of their shapes.

    Raises:
        NotImplementedError: On another backend than TensorFlow and JAX.
    """
    values = [keras.ops.convert_to_tensor(value) for value in values]
    if keras.backend.backend() == "jax":
        import jax

        found = jax.grad(function)(values)
    elif keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            result = function(values)
        found = tape.gradient(result, values)
    else:
        raise NotImplementedError(
            f"Gradients are taken on TensorFlow and JAX. Received: backend {keras.backend.backend()!r}"
        )
    return [keras.ops.convert_to_numpy(gradient) for gradient in found]
