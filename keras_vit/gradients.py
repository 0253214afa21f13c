"""Gradients outside of training, on the backend in use."""

import keras


def gradients(function, values):
    """Differentiates a function.

    Args:
        function: From a list of tensors to a scalar tensor.
        values: List of tensors, at which the gradient is taken.

    Returns:
        A list of the function's gradients by each of `values`, as NumPy arrays of their shapes.

    Raises:
        NotImplementedError: On another backend than TensorFlow and JAX.
    """
    values = [keras.ops.convert_to_tensor(value) for value in values]
    if keras.backend.backend() == "jax":
        import jax

        found = jax.grad(function)(values)
    elif keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            result = function(values)
        found = tape.gradient(result, values)
    else:
        raise NotImplementedError(
            f"Gradients are taken on TensorFlow and JAX. Received: backend {keras.backend.backend()!r}"
        )
    return [keras.ops.convert_to_numpy(gradient) for gradient in found]
