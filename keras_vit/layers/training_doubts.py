"""Warnings, in the first step, of a model that would train badly in silence."""

import warnings

import keras

from keras_vit.utils.keras_private import outermost
from keras_vit.utils.losses import untrainable


def warn_of_training(layer):
    """Warns of the model whose training calls a layer, if its loss is not scaled in float16, or not one of logits.

    `compile` adds the scaling by the policy of the outermost model, which Keras sets for its own by the global policy.
    Of their loss this package's models warn in `compile`. Where Keras does not tell which model is trained, on JAX,
    nothing is said.
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
