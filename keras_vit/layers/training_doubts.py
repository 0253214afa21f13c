"""Warnings in the first training step, about settings that silently harm training."""

import warnings

import keras

from keras_vit.utils.keras_private import outermost
from keras_vit.utils.losses import untrainable


def warn_of_training(layer):
    """Warns if the model that trains a layer has no loss scaling in float16, or a loss that does not take logits.

    `compile` adds loss scaling by the policy of the outermost model; for a plain Keras model that is the global policy.
    Models of this package warn about their loss in `compile`. On JAX, Keras does not tell which model is trained: then
    there is no warning.
    """
    model = outermost(layer)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return
    if layer.compute_dtype == "float16" and not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        warnings.warn(
            f"The loss is not scaled: float16 turns gradients below 6e-8 into zeros. {model.name!r} has the policy "
            f"{model.dtype_policy.name!r} around layers in float16. Set model.dtype_policy = 'mixed_float16' before "
            "`compile`, or pass keras.optimizers.LossScaleOptimizer(optimizer) to it.",
            stacklevel=2,
        )
    if type(model).compile is keras.Model.compile and (why := untrainable(model)):
        warnings.warn(why, stacklevel=2)
