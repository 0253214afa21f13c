"""The number of prefix tokens, as an argument or inferred from the layers before."""

import keras

from keras_vit.layers.inputs.patch_encoder import PatchEncoder
from keras_vit.utils import checks
from keras_vit.utils.keras_private import call_of, sublayers

MOVES = {  # operations that may move tokens, by class name
    "GetItem", "Concatenate", "Stack", "Flip", "Roll", "Take", "TakeAlongAxis", "Transpose", "Permute", "Reshape",
    "Cropping1D", "ZeroPadding1D", "Split", "Sort", "Rot90", "Swapaxes", "Moveaxis", "Lambda",
}  # fmt: skip


class WithPrefix:
    """Mixin that infers `num_prefix`, if it is `None`, from the layers before, when a functional model is built.

    The configuration has the inferred number. It can be inferred unless tokens were removed or added in between.
    """

    keeps_prefix = True  # whether the output has the prefix tokens too
    looked_up = False  # whether the number was inferred

    def __call__(self, x, *args, **kwargs):
        if self.num_prefix is None:
            self.num_prefix = self.prefix_found(x)
            self.looked_up = True
        elif self.looked_up and keras.utils.is_keras_tensor(x) and prefix_of(x) not in (None, self.num_prefix):
            raise ValueError(
                f"`{self.name}` was called with {self.num_prefix} prefix tokens before: take another layer for others. "
                f"Received: {prefix_of(x)}"
            )
        return super().__call__(x, *args, **kwargs)

    def prefix_found(self, x):
        """Returns the number of prefix tokens in symbolic tokens, `(batch, tokens, width)`, or raises ValueError."""
        prefix = prefix_of(x) if keras.utils.is_keras_tensor(x) else None
        if prefix is None:
            raise ValueError(
                f"`num_prefix` of `{type(self).__name__}`, the number of tokens before the patches, must be stated: it "
                "is read off the layers before only in a functional model, from a `PatchEncoder` on. "
                "Received: num_prefix=None"
            )
        return prefix

    def check_prefix(self, num_prefix):
        """Raises ValueError unless `num_prefix` is `None` or an integer of at least 0."""
        if num_prefix is not None:
            checks.whole(num_prefix=num_prefix)


def prefix_of(tokens):
    """Returns the number of prefix tokens in a symbolic tensor, `(batch, tokens, width)`; `None` if unknown."""
    pairs = set()
    ends, passed = _before(tokens, _knows)
    if any(type(node.operation).__name__ in MOVES for node in passed):
        return None
    for node in ends:
        layer, encoders = node.operation, _encoders(node.operation)
        own = {(encoder.num_prefix, encoder.num_prefix + encoder.patches) for encoder in encoders}
        pairs |= own or {(layer.num_prefix, node.outputs[0].shape[1])}
    counts = {count for count, length in pairs if length == tokens.shape[1]}
    return counts.pop() if len(pairs) == 1 and counts else None


def has_class_token(tokens):
    """Returns whether the first token of a symbolic tensor, `(batch, tokens, width)`, is a class token, or `None`."""
    encoders = [encoder for node in _before(tokens, _encoders)[0] for encoder in _encoders(node.operation)]
    return None if prefix_of(tokens) is None else any(encoder.class_token for encoder in encoders)


def _encoders(layer):
    inside = sublayers(layer) if isinstance(layer, keras.Layer) else []
    return [part for part in inside if isinstance(part, PatchEncoder)]


def _knows(layer):
    return bool(_encoders(layer)) or getattr(layer, "keeps_prefix", False)


def _before(tokens, ends):
    """Searches the graph before symbolic tokens for nodes whose layer satisfies `ends`, the last one on each path.

    Returns:
        These nodes, and the nodes between them and the tokens.
    """
    waiting, seen, nodes, passed = [tokens], set(), [], []
    while waiting:
        node = call_of(waiting.pop())
        if id(node) in seen:
            continue
        seen.add(id(node))
        if ends(node.operation):
            nodes.append(node)
        else:
            passed.append(node)
            waiting += node.input_tensors
    return nodes, passed
