"""How many tokens stand before the patches: stated, or read off the layer that made them."""

import keras

from keras_vit.layers.inputs.patch_encoder import PatchEncoder
from keras_vit.utils import checks
from keras_vit.utils.keras_private import call_of, sublayers


class WithPrefix:
    """Reads `num_prefix` of a layer, where it is `None`, off the layers before it when a functional model is made.

    The configuration keeps the number. It is known as long as no token was left out or added in between.
    """

    keeps_prefix = True  # whether the output has the prefix tokens too

    def __call__(self, x, *args, **kwargs):
        if self.num_prefix is None:
            self.num_prefix = self.prefix_found(x)
        return super().__call__(x, *args, **kwargs)

    def prefix_found(self, x):
        found = prefix_of(x) if keras.utils.is_keras_tensor(x) else None
        if found is None:
            raise ValueError(
                f"`num_prefix` of `{type(self).__name__}`, the number of tokens before the patches, must be stated: it "
                "is read off the layers before only in a functional model, from a `PatchEncoder` on. "
                "Received: num_prefix=None"
            )
        return found

    def check_prefix(self, num_prefix):
        if num_prefix is not None:
            checks.whole(num_prefix=num_prefix)


def prefix_of(tokens):
    """Returns the number of prefix tokens of a symbolic tensor of tokens; `None` if that is not known."""
    found = {(count, length) for count, length, _ in _makers(tokens)}
    return found.pop()[0] if len(found) == 1 and (*found,)[0][1] == tokens.shape[1] else None


def has_class_token(tokens):
    """Returns whether the first of symbolic tokens is a class token; `None` if that is not known."""
    found = {first for *_, first in _makers(tokens)}
    return None if prefix_of(tokens) is None else found.pop()


def _makers(tokens):
    """Yields prefix, tokens and class token of the layers that made symbolic tokens, of each way the last layer."""
    waiting, seen = [tokens], set()
    while waiting:
        node = call_of(waiting.pop())
        if id(node) in seen:
            continue
        seen.add(id(node))
        layer = node.operation
        inside = sublayers(layer) if isinstance(layer, keras.Layer) else []
        encoders = [part for part in inside if isinstance(part, PatchEncoder)]
        for encoder in encoders:
            yield encoder.num_prefix, encoder.num_prefix + encoder.patches, encoder.class_token
        if getattr(layer, "keeps_prefix", False) and node.input_tensors:
            first = has_class_token(node.input_tensors[0])
            yield layer.num_prefix, node.outputs[0].shape[1], first
        elif not encoders:
            waiting += node.input_tensors
