"""Gradient checkpointing of layers with dropout."""

import keras

from keras_vit.layers.base import Layer
from keras_vit.utils.keras_private import sublayers


class RematLayer(Layer):
    """Base class of a layer with correct gradients under gradient checkpointing (`keras.RematScope`).

    In a plain layer, dropout would draw new random numbers in the backward pass, and TensorFlow's `recompute_grad`
    takes no keyword arguments in a graph, and no gradient leaves it for tensors that it was not passed. Here seeds are
    drawn once, before the forward pass, and all arguments that are tensors of floats, such as the condition of an
    `AdaptiveBlock`, get their gradients. Only training is checkpointed.
    """

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`, checkpointed if the scope includes this layer. Keras calls this method."""
        training = kwargs.get("training")
        options = {
            name: value for name, value in kwargs.items() if name != "training"
        }  # Keras 3.16 always wraps with it
        if not training or super().rematerialized_call(layer_call, *args, **options) is layer_call:
            return layer_call

        def call(x, *more, **settings):
            generators = [getattr(layer, "seed_generator", None) for layer in sublayers(self)]
            values = [(generator.state, generator.next()) for generator in generators if generator is not None]
            if keras.backend.backend() == "jax":  # JAX trains in its own stateless scope, which the scope below hides
                values += [(weight, weight.value) for weight in self.weights]

            given = [x, *more, *settings.values()]
            places = [i for i, each in enumerate(given) if _is_differentiable(each)]

            def stateless(*tensors):
                whole = list(given)
                for place, tensor in zip(places, tensors):
                    whole[place] = tensor
                named = dict(zip(settings, whole[1 + len(more) :]))
                with keras.StatelessScope(values):
                    return layer_call(*whole[: 1 + len(more)], **named)

            return keras.remat(stateless)(*(given[i] for i in places))

        return call


def _is_differentiable(value):
    """Returns whether a value is a tensor of floats."""
    return keras.ops.is_tensor(value) and "float" in keras.backend.standardize_dtype(value.dtype)
