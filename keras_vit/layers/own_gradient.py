"""Functions with a gradient of their own, on every backend."""

from keras import ops


def own_gradient(function):
    """Decorates a function of tensors that returns its output, and a function from `upstream` to its gradients.

    `keras.ops.custom_gradient` calls the second with `upstream` alone on TensorFlow and JAX, and on torch with the
    inputs before it and `upstream` by name.
    """

    @ops.custom_gradient
    def called(*tensors):
        output, gradient = function(*tensors)
        return output, lambda *upstreams, upstream=None: gradient(upstreams[0] if upstream is None else upstream)

    return called
