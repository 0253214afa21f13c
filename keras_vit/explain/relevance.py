"""Which patches raise the logit of a class."""

import functools

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside, reading
from keras_vit.models import anatomy
from keras_vit.models.backbone import calls, input_of, leading_to, outputs_of
from keras_vit.models.between import between
from keras_vit.models.outputs import count_classes, ends_in_features, last_layer, logits_of
from keras_vit.utils import checks
from keras_vit.utils.keras_private import call_of
from keras_vit.utils.losses import end_of_layer


def attention_relevance(model: keras.Model, images, classes=None) -> np.ndarray:
    """Computes the relevance of each patch for a class: attention weighted by the gradient of the class's logit.

    Chefer et al. 2021 (arXiv:2103.15679), section 3.1, equations 5 and 6. Each block's attention is weighted by its
    gradient; negative parts are dropped and heads averaged. The blocks are combined along the residual path. The result
    is read where the model pools, as in `attention_rollout`. In a factorised encoder of clips, the relevance of a step
    in the temporal encoder is multiplied by that of its patches in the spatial one. This composition is ours: equation
    6, where tokens attend to those of their time step only.

    Args:
        model: As in `attention_maps`, with one logit for each class; or with one for two classes: class 1 is what
            raises it, class 0 what lowers it.
        images: Array, `(batch, height, width, channels)`, 0..255.
        classes: Class index of each image, `(batch,)`, or one for all images; the predicted classes if `None`.

    Returns:
        float32 array, `(batch, rows, columns)`, at least 0, without an upper bound; of clips `(batch, steps, rows,
        columns)`.

    Raises:
        ValueError: As `attention_maps`, and for a class that the model does not have.
        NotImplementedError: On a backend other than TensorFlow and JAX.
    """
    check_relevance(model)
    ends = reading.ends_of(model)
    classes = chosen_classes(model, images, classes)
    images = inside.checked(model, images)
    relevance = functools.partial(_relevance, model=model, ends=ends)
    return inside.in_parts(relevance, model, images, classes).reshape(-1, *anatomy.grid(model, factorised=True))


def chosen_classes(model, images, classes):
    """Returns a class of each image, `(batch,)`: the predicted ones for `None`, or one for all."""
    if classes is None:
        outputs = inside.in_parts(lambda *inputs: _logits(model, inputs[2]), model, images, images)
        classes = logits_of(model, outputs).argmax(-1)
    images = inside.checked(model, images)
    classes = np.full(len(images), classes) if np.ndim(classes) == 0 else classes
    return checks.class_indices(classes, count_classes(model), len(images), "classes")


def check_relevance(model):
    """Raises `ValueError` if a model is not one that `attention_relevance` takes."""
    reading.refuse_mixing(model)
    shapes = [tuple(tensor.shape) for tensor in outputs_of(model)]
    if ends_in_features(model) or len(shapes) != 1 or len(shapes[0]) != 2:
        raise ValueError(
            f"The model must end in a head with one logit for each class. Received: {model.name!r}, which ends in "
            f"{last_layer(model).name!r} with outputs {shapes}"
        )
    input_of(model, model.outputs)
    for graph, call in calls(model):
        around = [node for node in leading_to(graph.outputs, call.outputs) if not node.input_tensors]
        if around or len(call.outputs) != 1:
            raise ValueError(
                f"The logits must be computed only from the ViT's output. Received: {graph.name!r}, with a path around "
                "the ViT. If the ViT has a head, pass the ViT itself: keras_vit.models.backbone.backbone(model)."
            )


def has_classes(model):
    """Returns whether a model has one logit for each class, so that `attention_relevance` takes it."""
    try:
        check_relevance(model)
    except ValueError:
        return False
    return True


def _logits(model, images):
    return ops.convert_to_numpy(inside.run(model, model.outputs, images)[0])


def _relevance(vit, images, classes, model, ends):
    blocks = anatomy.blocks(vit)
    states = inside.run(vit, [block.input for block in blocks], images)
    # What leads from each block's output to the next block, and from the last one to the logits.
    starts = [keras.tree.flatten(block.input)[0] for block in blocks]
    paths = [[(block.output, tokens)] for block, tokens in zip(blocks, starts[1:])]
    last, as_logits = way_to_logits(model, vit, blocks[-1].output)
    paths.append(last)
    upstream = upstream_of(model, classes)
    weighted = []
    for block, state, path in reversed(list(zip(blocks, states, paths))):  # all at once would fill the memory
        x, *sources = keras.tree.flatten(state)

        def pulled_back(values, block=block, path=path, upstream=upstream, sources=sources):
            x, scores_offset = values
            y = block(x, *sources, scores_offset=scores_offset, training=False)
            for start, end in path:
                y = between(start, end, y)
            y = as_logits(y) if path is last else y
            return ops.sum(ops.cast(y, "float32") * upstream)

        *_, scores = block(x, *sources, return_attention_scores=True, training=False)
        scores = ops.convert_to_numpy(scores)  # (batch, heads, tokens, tokens)
        upstream, slope = gradients(pulled_back, [x, np.zeros_like(scores)])
        upstream = np.asarray(upstream, "float32")
        positive = np.maximum(slope * scores, 0).mean(1, keepdims=True)
        weighted.append(inside.of_patches(positive, *sources)[:, 0])  # (batch, tokens, tokens)
    space, *time = inside.flows(vit, (each + _identity_like(each) for each in reversed(weighted)))
    if not time:  # the residual path alone gives every pooled patch the same relevance: left out
        space = space - _identity_like(space)
    return reading.read_patches(vit, images, space, *time, ends=ends)


def upstream_of(model, classes):
    """Returns what selects the logit of the class; a single logit raises the second class, and lowers the first."""
    count, chosen = model.outputs[0].shape[-1], np.float32(classes)[:, None]
    return np.float32(chosen == np.arange(count)) if count > 1 else 2 * chosen - 1


def way_to_logits(model, vit, start):
    """Returns the way from a symbolic tensor of a model's ViT to its logits, as `_to_logits` does."""
    around = [(call.outputs[0], graph.outputs[0]) for graph, call in reversed(calls(model))]  # the innermost first
    return _to_logits([(start, vit.outputs[0]), *around])


def _identity_like(matrix):
    return np.eye(matrix.shape[-1], dtype="float32")


def _to_logits(path):
    """Returns a path, in pairs of symbolic tensors, up to the logits, and the function that makes them of its end.

    Behind a softmax or sigmoid that is sure, gradients are zero.
    """
    *before, (start, end) = path
    layer = call_of(end).operation
    if end is start and before:
        return _to_logits(before)
    if outputs_of(layer) and (end is not start):  # a model inside
        return _to_logits([*before, (start, call_of(end).input_tensors[0]), (layer.inputs[0], layer.outputs[0])])
    if end_of_layer(layer) is None:
        return path, lambda x: x
    path = [*before, (start, call_of(end).input_tensors[0])]
    if isinstance(layer, keras.layers.Dense):
        bias = 0 if layer.bias is None else layer.bias
        return path, lambda x: ops.matmul(ops.cast(x, layer.compute_dtype), layer.kernel) + bias
    return path, lambda x: x


def gradients(function, values):
    """Computes the gradient of a function on TensorFlow or JAX.

    Args:
        function: From a list of tensors to a scalar tensor.
        values: List of tensors, at which the gradient is taken.

    Returns:
        A list of NumPy arrays: the gradient with respect to each of `values`.

    Raises:
        NotImplementedError: On a backend other than TensorFlow and JAX.
    """
    values = [ops.convert_to_tensor(value) for value in values]
    if keras.backend.backend() == "jax":
        import jax

        results = jax.grad(function)(values)
    elif keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            scalar = function(values)
        results = tape.gradient(scalar, values)
    else:
        raise NotImplementedError(
            f"The backend must be TensorFlow or JAX. Received: backend {keras.backend.backend()!r}"
        )
    return [ops.convert_to_numpy(gradient) for gradient in results]
