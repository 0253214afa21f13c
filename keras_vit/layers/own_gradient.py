"""Functions with a custom gradient, on every backend."""

from keras import ops


def own_gradient(function):
    """Decorator for a function of tensors with a custom gradient.

    On TensorFlow and JAX, `keras.ops.custom_gradient` calls the gradient function with `upstream` only; on torch, with
    the inputs before `upstream`, which is passed by name.

    Args:
        function: Function of tensors that returns its output, and a function from `upstream`, a tensor like the output,
            to the gradients, one for each input and of its shape.

    Returns:
        Function from the tensors to the output.
    """

    @ops.custom_gradient
    def called(*tensors):
        output, gradient = function(*tensors)
        return output, lambda *upstreams, upstream=None: gradient(upstreams[0] if upstream is None else upstream)

    return called
