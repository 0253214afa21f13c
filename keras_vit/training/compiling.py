"""From a recipe's `optim` to a compiled model."""

import warnings

import keras
import numpy as np

from keras_vit.backbone import HEADS
from keras_vit.training import finetuning, optimizers
from keras_vit.training.distillation import Distiller
from keras_vit.training.losses import ClassLoss


def compile_run(run):
    """Returns the compiled model to fit: the run's own, or the `Distiller` around it."""
    optim = run.recipe.optim
    learner = prepare(run.model, optim)
    if optim.distill:
        learner = Distiller(run.model, run.teacher, optim.distill, optim.distill_weight, optim.temperature)
    weights = class_weights(run.train) if optim.class_weights else None
    return compile_model(learner, run.recipe, run.steps, weights, run.place.jit_compile)


def prepare(model, optim):
    """Returns the model, frozen, with LoRA, and with the initial bias of its head, as a recipe's `optim` says."""
    if optim.freeze is not None:
        finetuning.freeze(model, optim.freeze)
    if optim.lora is not None:
        finetuning.add_lora(model, optim.lora)
    if optim.head_bias is not None:
        for layer in model.layers:
            if layer.name in HEADS:
                layer.bias.assign(keras.ops.full(layer.bias.shape, optim.head_bias))
    return model


def compile_model(model, recipe, steps, class_weights=None, jit_compile=True):
    """Compiles a model as a recipe says.

    Args:
        model: A Keras model that returns logits.
        recipe: A `Recipe`; its `optim` is read.
        steps: Batches per epoch.
        class_weights: As in `ClassLoss`.
        jit_compile: Whether XLA compiles it.

    Returns:
        The model, with its optimizer built.

    Raises:
        ValueError: If `optim.accumulate` is larger than the run.
    """
    optim = recipe.optim
    if optim.accumulate > optim.epochs * steps:
        raise ValueError(
            f"optim.accumulate must be at most {optim.epochs * steps}, the batches of the whole run. "
            f"Received: {optim.accumulate}"
        )
    if optim.warmup_epochs + optim.cooldown_epochs > optim.epochs:
        warnings.warn(
            f"The learning rate never reaches its peak: optim.warmup_epochs={optim.warmup_epochs} and "
            f"optim.cooldown_epochs={optim.cooldown_epochs} are longer than optim.epochs={optim.epochs}.",
            stacklevel=2,
        )
    optimizer = optimizers.make(optim, model.trainable_variables, steps)
    loss = ClassLoss(optim.loss, optim.label_smoothing, class_weights)
    model.compile(optimizer, loss, weighted_metrics=["accuracy"], jit_compile=jit_compile)
    model.optimizer.build(model.trainable_variables)
    return model


def class_weights(source):
    """Returns a weight per class, inverse to its share of the images; the mean over images is 1."""
    counts = np.bincount(source.labels, minlength=len(source.class_names))
    return len(source) / (len(counts) * np.maximum(counts, 1))
