"""A layer that Keras can rematerialise, with random draws in it."""

import keras

from keras_vit.keras_private import sublayers


class RematLayer(keras.layers.Layer):
    """Base of a layer that keeps only its input for the backward pass when it is built in a `keras.RematScope`.

    Gradient checkpointing, Chen et al. 2016 (arXiv:1604.06174). Keras's own layers draw other random numbers in the
    second forward pass, and take no keyword arguments in a TensorFlow graph. Here the seeds are drawn once, before both
    passes, and keyword arguments are constants. Inference is not rematerialised.
    """

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`, rematerialised if the scope names this layer. Keras calls it."""
        if super().rematerialized_call(layer_call, *args, **kwargs) is layer_call or not kwargs.get("training"):
            return layer_call

        def call(x, *more, **settings):
            generators = [getattr(layer, "seed_generator", None) for layer in sublayers(self)]
            values = [(generator.state, generator.next()) for generator in generators if generator is not None]
            if keras.backend.backend() == "jax":  # its weights are traced values of the scope around this one
                values += [(weight, weight.value) for weight in self.weights]

            def stateless(x):
                with keras.StatelessScope(values):
                    return layer_call(x, *more, **settings)

            return keras.remat(stateless)(x)

        return call
