"""The functional Keras model whose precision policy is that of its blocks."""

import itertools
import weakref

import keras

from keras_vit.layers.blocks.decoder_block import DecoderBlock
from keras_vit.layers.blocks.transformer_block import TransformerBlock
from keras_vit.utils.keras_private import call_of, sublayers
from keras_vit.utils.losses import untrainable
from keras_vit.utils.warned import warn

BLOCKS = (TransformerBlock, DecoderBlock)
PLACED = weakref.WeakKeyDictionary()  # by layers of input: the models that are computed from them, by name


@keras.saving.register_keras_serializable(package="keras_vit")
class Model(keras.Model):
    """A functional Keras model, `Model(inputs, outputs)`, with the precision policy of its blocks.

    `compile` scales the loss of float16 by the policy of the model. Keras does not save that policy: a loaded, cloned
    or pickled model would train without scaling, and gradients below 6e-8 would be zero.

    All layers of a model must have different names. If a second model of the same name takes the same input, such as
    another `vit("B/16")` or a second copy of a file, it is called `name_1` from then on.
    """

    def __call__(self, *args, **kwargs):
        for source in _inputs(tensor for tensor in keras.tree.flatten(args) if keras.utils.is_keras_tensor(tensor)):
            placed = PLACED.setdefault(source, {})
            names = (f"{self.name}_{i}" if i else self.name for i in itertools.count())
            self.name = next(name for name in names if placed.setdefault(name, self) is self)
        return super().__call__(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Compiles the model as Keras does, and warns if the loss takes probabilities and the model returns logits."""
        super().compile(*args, **kwargs)
        if why := untrainable(self):
            warn(why)

    def compile_from_config(self, config):
        """Compiles a loaded model as Keras does, which leaves out models with a `compile` of their own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if getattr(self, "optimizer", None) is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    @property
    def dtype_policy(self):
        blocks = (layer for layer in sublayers(self, include_self=False) if isinstance(layer, BLOCKS))
        block = next(blocks, None)
        return super().dtype_policy if block is None else block.dtype_policy


def _inputs(tensors):
    """Returns the layers of input from which symbolic tensors are computed."""
    waiting, seen = list(tensors), {}
    for tensor in waiting:  # and what is added to them meanwhile
        node = call_of(tensor)
        if id(node) not in seen:
            seen[id(node)] = node
            waiting += node.input_tensors
    return [node.operation for node in seen.values() if not node.input_tensors]
