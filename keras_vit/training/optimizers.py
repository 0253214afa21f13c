"""AdamW, SGD and Muon with layer-wise learning-rate decay, and the schedules of recipes, for your own loop too."""

import math

import keras
from keras import ops

from keras_vit.training.layer_factors import LayerDecay
from keras_vit.training.layer_factors import layer_factors as layer_factors
from keras_vit.training.muon import Muon as Muon
from keras_vit.utils import checks


def make(optim, variables, steps):
    """Returns the optimizer of a recipe for a model's trainable variables, not yet built.

    Weight decay applies to kernels only: not to biases, norms, tokens, positions or layer scale.

    Args:
        optim: A `keras_vit.config.Optim`.
        variables: The trainable variables.
        steps: Batches per epoch.

    Raises:
        ValueError: If there are no trainable variables.
    """
    if not variables:
        raise ValueError("At least one layer must be trainable. Received: a model with every layer frozen")
    an_epoch = steps / optim.accumulate  # updates
    schedule = Schedule(
        optim.schedule,
        optim.learning_rate,
        steps=optim.epochs * an_epoch,
        warmup=optim.warmup_epochs * an_epoch,
        every=optim.accumulate,
    )
    settings = dict(
        name="optimizer",  # the same in every process, for the training state
        weight_decay=optim.weight_decay,
        layer_decay=1.0 if optim.layer_decay is None else optim.layer_decay,
        global_clipnorm=optim.clip_norm,
        use_ema=optim.ema is not None,
        ema_momentum=(optim.ema or 0.0) ** (1 / optim.accumulate),  # Keras averages after every batch
        gradient_accumulation_steps=optim.accumulate if optim.accumulate > 1 else None,
    )
    settings |= {"momentum": optim.momentum} if optim.optimizer == "sgd" else {"epsilon": 1e-8}  # as Optax and PyTorch
    optimizer = OPTIMIZERS[optim.optimizer](schedule, **settings)
    optimizer.exclude_from_weight_decay([v for v in variables if not v.path.endswith("kernel")])
    return optimizer


@keras.saving.register_keras_serializable(package="keras_vit")
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0 and a decay, as in big_vision.

    Args:
        kind: `"cosine"` or `"linear"`, which end at 0; or `"constant"`.
        peak: Highest learning rate.
        steps: Steps of the whole run.
        warmup: Steps of the warm-up.
        every: Batches per step. Keras counts batches even when it accumulates their gradients.
    """

    def __init__(self, kind, peak, *, steps, warmup=0, every=1):
        checks.one_of("kind", kind, tuple(DECAYS))
        self.kind = kind
        self.peak = peak
        self.steps = steps
        self.warmup = warmup
        self.every = every

    def __call__(self, step):
        step = ops.cast(step // self.every, "float32")
        progress = ops.clip((step - self.warmup) / max(self.steps - self.warmup, 1), 0.0, 1.0)
        rate = self.peak * DECAYS[self.kind](progress)
        return rate * ops.minimum(step / self.warmup, 1.0) if self.warmup else rate

    def get_config(self):
        return dict(vars(self))


DECAYS = {
    "cosine": lambda progress: 0.5 * (1 + ops.cos(math.pi * progress)),
    "linear": lambda progress: 1 - progress,
    "constant": lambda progress: ops.ones_like(progress),
}


@keras.saving.register_keras_serializable(package="keras_vit")
class AdamW(LayerDecay, keras.optimizers.AdamW):
    """Keras's AdamW, with layer-wise learning-rate decay; see `layer_factors`.

    Args:
        layer_decay: Factor on the learning rate from a block to the one below it, in (0, 1].
        **kwargs: As in `keras.optimizers.AdamW`.
    """


@keras.saving.register_keras_serializable(package="keras_vit")
class SGD(LayerDecay, keras.optimizers.SGD):
    """Keras's SGD, with layer-wise learning-rate decay; see `layer_factors`.

    Args:
        layer_decay: Factor on the learning rate from a block to the one below it, in (0, 1].
        **kwargs: As in `keras.optimizers.SGD`.
    """


OPTIMIZERS = {"adamw": AdamW, "sgd": SGD, "muon": Muon}
