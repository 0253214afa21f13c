"""Where a model reads the tokens after its blocks, and whether anything but the blocks mixes tokens before."""

import itertools

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.layers import PatchEncoder, TokenPool, TransformerBlock, Unmerge
from keras_vit.layers.base import Layer
from keras_vit.models import anatomy
from keras_vit.models.backbone import backbone, calls, leading_to, outputs_of
from keras_vit.utils.keras_private import place_of, takes_training
from keras_vit.utils.warned import warn

BATCH = 2  # of random numbers with which a layer is tried
NEAR = {"float32": 1e-4, "float64": 1e-4}  # other types have fewer digits
ROUGH = 0.05


def doubt(model):
    """Returns why attention cannot be followed through a model, a sentence, or `None` if it can."""
    try:
        refuse_mixing(model)
        ends_of(model)
    except ValueError as error:
        return str(error)
    return None


def mixing(model):
    """Returns the name of what mixes tokens before the last block and is no block, such as a `MultiHeadAttention`.

    `None` if there is nothing: all else, such as a norm, computes each token by itself.
    """
    anatomy.blocks(model)
    for layers in anatomy.stages(model):
        chain = [layer for layer in layers if isinstance(layer, (PatchEncoder, TransformerBlock))]
        for before, block in itertools.pairwise(chain):
            for node in leading_to([_tokens(block.input)], keras.tree.flatten(before.output)):
                around = not node.input_tensors or node.operation in chain
                if around or not (_is_of_patches(node) or all(_is_tokenwise(node, x) for x in node.input_tensors)):
                    return node.operation.name
    return None


def refuse_mixing(model):
    """Raises ValueError if something besides the blocks mixes tokens, since attention could not be followed through."""
    if (name := mixing(model)) is not None:
        raise ValueError(
            "The blocks must form a single path, and what stands between them must compute each token by itself. "
            f"Received: {model.name!r} with {name!r}"
        )


def warn_mixing(model):
    """Warns if something besides the blocks mixes tokens, whose attention is not among theirs."""
    if (name := mixing(model)) is not None:
        warn(
            f"{name!r} in {model.name!r} mixes tokens too, and is no `TransformerBlock`: it is left out of what is "
            "shown of the blocks' attention."
        )


def reading(model, images, ends=None):
    """Returns the weight of each token in the pooling: float32 array, `(batch, tokens)`; each row sums to one.

    One token, the mean of the patches, half of each, or the mean over the heads of attention pooling: whatever layers
    or operations pool. The mean of all that read, such as both pools of a distilled model. The mean of the patches for
    a head of this package that reads all of them, and for a model that returns tokens. Of a factorised encoder, that of
    the pooling in space, and the batch is of steps.

    Args:
        model: A ViT.
        images: Its images.
        ends: From `ends_of`, of a model around it.
    """
    ends = ends_of(model) if ends is None else ends
    batch = len(images) * inside.examples(model)
    probed = {id(end): _of_probe(model, end, images, batch) for end in ends if isinstance(end, TokenPool)}
    rows = [probed[id(end)] if id(end) in probed else np.tile(end, (batch, 1)) for end in ends]
    return np.mean(rows, axis=0).astype("float32")


def read_patches(model, images, space, time=None, ends=None):
    """Returns what flows from each patch to where the model reads: `(batch, patches)`, of clips steps times patches.

    A factorised encoder is one in which patches attend to those of their own time step only: the product of the
    matrices of all blocks is then that of time, times what is read of each step.

    Args:
        model: A ViT.
        images: Its images or clips.
        space, time: From `inside.flows`.
        ends: As in `reading`.
    """
    shares = np.einsum("bt,bts->bs", reading(model, images, ends), space)[:, anatomy.num_prefix(model) :]
    if time is None:
        return shares
    weights = time[:, 0, 1:]  # (batch, steps), at the class token of time
    return (weights[:, :, None] * shares.reshape(*weights.shape, -1)).reshape(len(weights), -1)


def ends_of(model):
    """Returns all that reads the tokens after a model's blocks: attention pooling as its layer, else a row of weights.

    What is between the last block and them is tried with numbers: layers that compute each token by itself, and
    operations without weights that are linear in the tokens, such as a mean, or the choice of one.

    Raises:
        ValueError: For another layer, such as `GlobalMaxPooling1D`.
    """
    vit, ends = backbone(model), []
    last = [layer for layer in anatomy.stages(vit)[0] if isinstance(layer, TransformerBlock)][-1]
    tokens = anatomy.blocks(vit)[0].input
    even = _even(_tokens(tokens).shape[1], anatomy.num_prefix(vit))
    shares_of = {id(x): np.eye(len(even)) for x in keras.tree.flatten(last.output)[:1]}
    steps = calls(model) if vit is not model else []
    for graph, call in [(vit, None), *reversed(steps)]:
        if call is not None:
            inner = outputs_of(call.operation)
            shares_of = {id(outer): shares_of[id(x)] for x, outer in zip(inner, call.outputs) if id(x) in shares_of}
        for node in _in_order(graph, shares_of):
            found = _through(node, shares_of, even)
            if isinstance(found, list):
                ends += found
            else:
                shares_of |= {id(x): found for x in node.outputs}
        if any(id(x) in shares_of for x in outputs_of(graph)) and graph is model:
            ends.append(even)
    return ends or [even]


def read_by_head(model):
    """Returns the tokens that a model's head reads, in words, such as `"the class token"`."""
    prefix = anatomy.num_prefix(model)
    return " and ".join(sorted({_in_words(end, prefix) for end in ends_of(model)}))


def _in_words(end, prefix):
    if isinstance(end, TokenPool):
        return "all patches, as the attention pooling weights them"
    tokens = len(end)
    even, one = _even(tokens, prefix), np.eye(tokens)
    rows = {
        "the class token": one[0] if prefix else None,
        "the distillation token": one[1] if prefix > 1 else None,
        "the first patch": one[prefix],
        "the last patch": one[-1],
        "all patches, on average": even,
        "all tokens, on average": _even(tokens, 0),
        "the class token and, on average, all patches": (one[0] + even) / 2,
    }
    near = (text for text, row in rows.items() if row is not None and np.allclose(end, row, atol=1e-3 / tokens))
    return next(near, "some tokens")


def _through(node, shares_of, even):
    """Returns what each token after a node holds of those after the blocks, `(tokens, tokens)`, or a list of ends."""
    layer, inputs = node.operation, [x for x in node.input_tensors if id(x) in shares_of]
    if _is_of_patches(node) or all(_is_tokenwise(node, x) for x in inputs):
        return sum(shares_of[id(x)] for x in inputs)
    if isinstance(layer, TokenPool) and layer.pooling == "map":
        if np.array_equal(shares_of[id(inputs[0])], np.eye(len(even))):
            return [layer]
        _refuse(layer)
    parts = [_linear(node, x) for x in inputs]
    if any(part is None for part in parts):
        if isinstance(layer, Layer) and not isinstance(layer, TokenPool):
            return [even]  # a head of ours that reads all patches
        _refuse(layer)
    shares = sum(part @ shares_of[id(x)] for part, x in zip(parts, inputs))
    if _is_3d(node.outputs[0]):
        return shares
    weights = np.abs(shares).sum(0)
    return [weights / weights.sum()]


def _refuse(layer):
    raise ValueError(
        "What is read of the tokens after the blocks cannot be told: they must be pooled by `TokenPool`, or by what is "
        f"linear and has no weights, such as a mean. Received: {layer.name!r}, {type(layer).__name__}"
    )


def _in_order(graph, tensors):
    """Yields the nodes of a graph that compute something of known tensors, each after those before it."""
    waiting = [node for node in leading_to(outputs_of(graph)) if not any(id(x) in tensors for x in node.outputs)]
    ahead = {id(x) for node in waiting for x in node.outputs}
    while waiting:
        ready = [node for node in waiting if not any(id(x) in ahead for x in node.input_tensors)]
        ahead -= {id(x) for node in ready for x in node.outputs}
        waiting = [node for node in waiting if node not in ready]
        yield from (node for node in ready if any(id(x) in tensors for x in node.input_tensors))


def _is_3d(tensor):
    return len(tensor.shape) == 3


def _is_of_patches(node):
    """Returns whether a node gives each patch the token that it was merged into."""
    return isinstance(node.operation, Unmerge)


def _tokens(structure):
    return keras.tree.flatten(structure)[0]


def _even(tokens, prefix):
    return (np.arange(tokens) >= prefix) / (tokens - prefix)


def _is_tokenwise(node, tensor):
    """Returns whether each token of a node's output depends on the same token of one of its inputs alone."""
    shape, output = tensor.shape, node.outputs[0]
    if len(output.shape) != 3 or output.shape[1] != shape[1] or isinstance(node.operation, TransformerBlock):
        return False
    plain, ends = _random(tensor), (0, shape[1] - 1)
    values = [plain, *(np.where(np.arange(shape[1])[:, None] == end, 1 - plain, plain) for end in ends)]
    base, *changed = (_called(node, tensor, value) for value in values)
    return all(
        np.allclose(np.delete(each, end, 1), np.delete(base, end, 1), rtol=0, atol=1e-5)
        for each, end in zip(changed, ends)
    )


def _linear(node, tensor):
    """Returns the weight of each token in what a node makes, `(rows, tokens)`; `None` if it has weights or no such."""
    _, tokens, width = tensor.shape
    if getattr(node.operation, "weights", None):
        return None
    first, second = _random(tensor), _random(tensor, 1)
    signs = np.linspace(-1, 2, width, dtype="float32")
    values = [_called(node, tensor, value) for value in (first, second, first + second, first * signs)]
    if values[0].size % (BATCH * width):
        return None
    one, other, both, scaled = (value.reshape(BATCH, -1, width) for value in values)
    near = NEAR.get(keras.backend.standardize_dtype(node.outputs[0].dtype), ROUGH)
    if not all(np.allclose(*pair, rtol=near, atol=near) for pair in ((one + other, both), (one * signs, scaled))):
        return None
    batch = -(-tokens // width)  # token t alone has a 1 in channel t % width of example t // width
    alone = np.zeros((max(batch, BATCH), tokens, width), "float32")
    place = np.arange(tokens)
    alone[place // width, place, place % width] = 1
    found = _called(node, tensor, alone).reshape(len(alone), -1, width)
    return found[place // width, :, place % width].T


def _random(tensor, seed=0):
    return np.random.default_rng(seed).normal(size=(BATCH, *tensor.shape[1:])).astype("float32")


def _called(node, tensor, value):
    """Returns what a node makes of a value of one input, and of fixed numbers in the others, as an array."""
    others = {id(x): np.full((len(value), *x.shape[1:]), 0.5) for x in node.input_tensors}
    inputs = {id(x): ops.cast(others[id(x)] if x is not tensor else value, x.dtype) for x in node.input_tensors}
    arguments, settings = node.arguments.fill_in(inputs)
    if takes_training(node.operation):
        settings["training"] = False
    output = keras.tree.flatten(node.operation(*arguments, **settings))[place_of(node.outputs[0])]
    return ops.convert_to_numpy(ops.cast(output, "float32"))


def _of_probe(model, pool, images, batch):
    (tokens,) = inside.run(model, [pool.input], images)
    patches = tokens[:, pool.start :]
    probe = ops.broadcast_to(ops.cast(pool.probe, patches.dtype), (batch, 1, patches.shape[-1]))
    _, attended = pool.attention(probe, patches, return_attention_scores=True)  # (batch, heads, 1, patches)
    row = ops.convert_to_numpy(ops.cast(attended, "float32")).mean(axis=(1, 2))
    return np.pad(row / row.sum(-1, keepdims=True), ((0, 0), (pool.start, 0)))  # bfloat16 rounds
