"""From a recipe's `optim` to a compiled model."""

from keras_vit.models import remat
from keras_vit.training import doubts, finetuning, optimizers


def compile_run(run):
    """Returns the compiled model to fit: the task's learner around the run's model, or the model itself."""
    optim = run.recipe.optim
    with remat.scope(optim):  # it may add blocks, such as a decoder's
        learner = run.task.learner(prepare(run.model, optim), run.teacher)
    return compile_model(learner, optim, run.steps, run.task.compiled(run.train), run.place.compiles(optim))


def prepare(model, optim):
    """Returns the model, frozen and with LoRA as a recipe's `optim` says."""
    if optim.freeze is not None:
        finetuning.freeze(model, optim.freeze)
    if optim.lora is not None:
        finetuning.add_lora(model, optim.lora)
    return model


def compile_model(model, optim, steps, losses, jit_compile=True):
    """Compiles a model as a recipe says.

    Args:
        model: A Keras model.
        optim: A `keras_vit.config.Optim`.
        steps: Batches per epoch.
        losses: Loss and metrics, arguments of Keras's `compile`.
        jit_compile: Whether XLA compiles it.

    Returns:
        The model, with its optimizer built.
    """
    doubts.warm_up(optim)
    doubts.lag(optim, steps)
    doubts.precision(model, jit_compile)
    optimizer = optimizers.make(optim, model.trainable_variables, steps)
    model.compile(optimizer, jit_compile=jit_compile, **losses)
    model.optimizer.build(model.trainable_variables)
    return model
