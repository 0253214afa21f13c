"""The functional Keras model, with the precision policy of its blocks."""

import keras

from keras_vit.layers.blocks.decoder_block import DecoderBlock
from keras_vit.layers.blocks.transformer_block import TransformerBlock
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.losses import untrainable
from keras_vit.utils.warned import warn

BLOCKS = (TransformerBlock, DecoderBlock)


@keras.saving.register_keras_serializable(package="keras_vit")
class Model(keras.Model):
    """A functional Keras model, `Model(inputs, outputs)`, with the precision policy of its blocks.

    With float16, `compile` enables loss scaling by the policy of the model. Keras does not save this policy: a loaded,
    cloned or pickled model would train without loss scaling, and gradients below 6e-8 would become zero.
    """

    def compile(self, *args, **kwargs):
        """Compiles the model as Keras does, and warns if the loss takes probabilities and the model returns logits."""
        super().compile(*args, **kwargs)
        if why := untrainable(self):
            warn(why)

    def compile_from_config(self, config):
        """Compiles a loaded model as Keras does; Keras itself skips models that override `compile`."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if getattr(self, "optimizer", None) is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    @property
    def dtype_policy(self):
        blocks = (layer for layer in sublayers(self, include_self=False) if isinstance(layer, BLOCKS))
        block = next(blocks, None)
        return super().dtype_policy if block is None else block.dtype_policy
