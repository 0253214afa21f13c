"""Gradient checkpointing of a layer with dropout in it."""

import keras

from keras_vit.layers.base import Layer
from keras_vit.utils.keras_private import sublayers


class RematLayer(Layer):
    """Base class of a layer that `keras.RematScope` rematerializes (gradient checkpointing) with the right gradients.

    A plain layer cannot: its dropout would draw again in the backward pass, and TensorFlow's `recompute_grad` takes no
    keyword arguments in a graph. Here the seeds are drawn once, before the forward pass, and arguments other than the
    first are constants. Only training is rematerialized.
    """

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`, rematerialized if the scope asks for this layer. Keras calls this method."""
        training = kwargs.get("training")
        options = {
            name: value for name, value in kwargs.items() if name != "training"
        }  # Keras 3.16 always wraps with it
        if not training or super().rematerialized_call(layer_call, *args, **options) is layer_call:
            return layer_call

        def call(x, *more, **settings):
            generators = [getattr(layer, "seed_generator", None) for layer in sublayers(self)]
            values = [(generator.state, generator.next()) for generator in generators if generator is not None]
            if keras.backend.backend() == "jax":  # trains in a scope of its own, which the one below hides
                values += [(weight, weight.value) for weight in self.weights]

            def stateless(x):
                with keras.StatelessScope(values):
                    return layer_call(x, *more, **settings)

            return keras.remat(stateless)(x)

        return call
