"""A warning where float16 is trained without a scaled loss."""

import warnings

import keras

from keras_vit.utils.keras_private import outermost


def warn_unscaled(layer):
    """Warns if the model whose training calls a layer has a plain optimizer: Keras scales the loss in the optimizer.

    `compile` adds the scaling by the policy of the outermost model, which Keras sets for its own by the global policy.
    Where Keras does not tell which model that is, on JAX, nothing is said.
    """
    model = outermost(layer)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        warnings.warn(
            f"The loss is not scaled: float16 turns gradients below 6e-8 into zeros. {model.name!r} has the policy "
            f"{model.dtype_policy.name!r} around layers in float16. Set model.dtype_policy = 'mixed_float16' before "
            "`compile`, or pass keras.optimizers.LossScaleOptimizer(optimizer) to it.",
            stacklevel=2,
        )
