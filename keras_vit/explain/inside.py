"""Values inside a model, computed for images: the trained graph returns its outputs only."""

import keras
import numpy as np
from keras import ops

from keras_vit.layers import TransformerBlock, Unmerge
from keras_vit.models.anatomy import blocks, seen, stages, tubelets
from keras_vit.models.backbone import backbone, calls, input_of
from keras_vit.preparing import pixel_range
from keras_vit.preparing.pixel_range import range_of
from keras_vit.utils import checks, clip_files

SCORES = 2**26  # held at a time: 256 MB


def run(model, outputs, images):
    """Returns the values of some of a model's symbolic tensors, or of lists of them, for images, as a list."""
    inputs = input_of(model, keras.tree.flatten(outputs))
    return computed(inputs, outputs, ops.cast(ops.convert_to_tensor(images), inputs.dtype))


def computed(inputs, outputs, values):
    """Returns the values of symbolic tensors, or of lists of them, as a list, from those of a model's inputs."""
    tensors = keras.Model(inputs, keras.tree.flatten(outputs))(values, training=False)
    return list(keras.tree.pack_sequence_as(outputs, keras.tree.flatten(tensors)))


def entrances(model):
    """Returns the steps from a model's input images to those of its ViT.

    Returns:
        A list of pairs, outermost model first: a model, and the symbolic tensor with which it calls the next one.
        Models that pass their input on unchanged are left out.
    """
    steps = []
    for graph, call in calls(model):
        if len(call.input_tensors) != 1:
            raise ValueError(f"A nested ViT must have one input. Received: {call.operation.name!r}")
        if call.input_tensors[0] is not input_of(graph, call.input_tensors):
            steps.append((graph, call.input_tensors[0]))
    return steps


def checked(model, images):
    """Returns a batch of images as an array, or raises `ValueError` if it does not fit the model.

    Pixel values are checked only if the ViT receives the images unchanged: the layers before a nested ViT may take any.
    """
    steps, of_clips = entrances(model), tubelets(model, factorised=True) is not None
    if not steps and of_clips:
        return clip_files.checked(images, seen(model).shape[1:], value_range=range_of(model))
    if not steps:
        return pixel_range.checked(model, images, seen(model).shape[1:])
    return checks.batch(images, input_of(steps[0][0], [steps[0][1]]).shape[1:])


def scores(model, images):
    """Returns the attention scores of all blocks: float32 array, `(layers, batch, heads, tokens, tokens)`.

    After merging, those of the patches: a patch attends as its token does, and patches of a token share its score.

    Raises:
        ValueError: For a factorised encoder, whose blocks have different tokens.
    """
    tubelets(model)
    return np.stack([*each_scores(model, images)])


def each_scores(model, images):
    """Yields the scores of each block, as `scores`; of those of space in a factorised encoder, for each time step."""
    every = blocks(model)
    for block, state in zip(every, run(model, [block.input for block in every], images)):
        x, *sources = keras.tree.flatten(state)
        *_, one = block(x, *sources, return_attention_scores=True, training=False)
        yield of_patches(ops.convert_to_numpy(one), *sources)


def flows(model, matrices):
    """Returns the product of the matrices of all blocks, in a list; of a factorised encoder those of space and time.

    Args:
        model: A ViT.
        matrices: Iterable of an array of each block, `(batch, tokens, tokens)`.
    """
    matrices, products = iter(matrices), []
    for layers in stages(model):
        flow = None
        for _ in filter(lambda layer: isinstance(layer, TransformerBlock), layers):
            matrix = next(matrices)
            flow = matrix if flow is None else matrix @ flow
        products.append(flow)
    return products


def of_patches(scores, sources=None):
    """Returns scores between patches (and prefix tokens) from those between tokens, `(batch, heads, tokens, tokens)`.

    Args:
        scores: Array.
        sources: The token that each patch is in, `(batch, prefix + patches, 1)`; `None` without merging.
    """
    if sources is None:
        return scores
    sources = ops.convert_to_numpy(sources)[:, :, 0]
    sizes = (sources[:, :, None] == np.arange(scores.shape[-1])).sum(1)  # (batch, tokens)
    shares = scores / sizes[:, None, None, :]
    rows = np.take_along_axis(shares, sources[:, None, :, None], 2)
    return np.take_along_axis(rows, sources[:, None, None, :], 3)


def after(block):
    """Returns the symbolic tokens after a block, one for each patch even if it merges them."""
    output = block.output
    return Unmerge(dtype=block.dtype_policy)(*output) if isinstance(output, (list, tuple)) else output


def in_parts(function, model, images, *more, axis=0):
    """Applies a function to a few images at a time and concatenates the results.

    The attention of all images at once would fill the memory.

    Args:
        function: Function of `(vit, images, *more)` that returns an array. Its arguments are the model's ViT and the
            input images of that ViT.
        model: A ViT, or a model with a ViT nested in it.
        images: Array, `(batch, height, width, channels)`, 0..255; checked here.
        more: Arrays with an entry for each image.
        axis: The batch axis of the arrays that the function returns.
    """
    images, steps, inner = checked(model, images), entrances(model), backbone(model)

    def enter(images):
        for graph, tensor in steps:
            (images,) = run(graph, [tensor], images)
        return images

    every = blocks(model)
    scores = sum(block.num_heads for block in every) * every[0].input.shape[1] ** 2 * examples(model)  # for each image
    size = min(max(SCORES // scores, 1), 8)
    parts = [slice(i, i + size) for i in range(0, len(images), size)]
    return np.concatenate([function(inner, enter(images[p]), *(array[p] for array in more)) for p in parts], axis)


def examples(model):
    """Returns of how many examples the blocks of space make an image: of a factorised encoder, of each time step."""
    layer = tubelets(model, factorised=True)
    return layer.steps if layer is not None and layer.fold else 1
