"""Rules of `Pretrain(method="dino")`: a student and a teacher of one model."""

import dataclasses
import math

import keras

from keras_vit.models import variants
from keras_vit.models.options import merged
from keras_vit.tasks import refusals
from keras_vit.tasks.pretrain.encoder import check_student
from keras_vit.utils import checks

SHARE = 3 / 7  # of an image's side that a local crop has, by default: the paper's 96 pixels of 224
MIXED = (*refusals.MIXES, "augment.erase")


class Distilling:
    """Rules of self-distillation. Every method has the same attributes and methods.

    Args:
        task: A `Pretrain`.
    """

    compares = True  # the teacher's center is of a whole batch
    refuses = {
        **{name: f"{name} is of whole images: method='dino' compares crops of one image." for name in MIXED},
        "optim.accumulate": "Teacher and center of method='dino' move with each batch: optim.accumulate must be 1.",
        "optim.ema": "The teacher of method='dino' is an average of the weights already: optim.ema must be None.",
        "optim.patience": "The loss of method='dino' does not say which teacher is best: optim.patience must be None.",
    }

    def __init__(self, task):
        self.task = task

    def check(self, recipe):
        """Raises ValueError if the recipe has a model or options that cannot be trained so."""
        from keras_vit.checkpoints.pretrained import DEFAULTS

        refusals.refuse(self.refuses, self.task, recipe)
        arguments = merged(DEFAULTS, recipe.model)
        hybrid = recipe.model.get("variant") and variants.parse(recipe.model["variant"])[2]
        check_student({**arguments, "num_classes": 0, "stem": arguments["stem"] or (hybrid and arguments["variant"])})
        policy = keras.dtype_policies.get(recipe.model.get("dtype") or keras.config.dtype_policy())
        if policy.variable_dtype != "float32":
            raise ValueError(
                "The teacher of method='dino' moves by less than half precision holds: model.dtype must be float32, "
                f"mixed_bfloat16 or mixed_float16. Received: {policy.name}"
            )
        if self.task.colors and arguments["channels"] not in (1, 3):
            raise ValueError(
                "task.colors needs images of one channel or three; set task.colors=False. "
                f"Received: model.channels={arguments['channels']}"
            )
        self.on(arguments)

    def check_model(self, model):
        """Raises ValueError if a model, such as one of weights, cannot be trained so, or local crops do not fit it."""
        from keras_vit.checkpoints.arguments import arguments_of

        arguments = arguments_of(model)
        check_student(arguments)
        self.on({**arguments, "variant": None})

    def on(self, arguments):
        """Returns the task with its `local_size`, `(height, width)`.

        Args:
            arguments: Arguments of the model.

        Raises:
            ValueError: If it does not fit the images.
        """
        task = self.task
        if not task.local_crops or arguments is None:
            return task
        size, patch = checks.pair("image_size", arguments["image_size"]), _patch_size(arguments)
        if patch is None and task.local_size is None:
            raise ValueError(
                "task.local_size must be given where the weights say the patch size, or set model.patch_size. "
                f"Received: model.weights={arguments.get('weights')!r} without"
            )
        grid = None if patch is None else [side // pixels for side, pixels in zip(size, patch)]
        if task.local_size is None:
            local = _nearest(grid, patch)
        else:
            local = checks.pair("local_size", task.local_size)
            fits = patch is None or all(side % pixels == 0 for side, pixels in zip(local, patch))
            if not fits or local[0] * size[1] != local[1] * size[0] or local[0] > size[0]:
                raise ValueError(
                    "task.local_size must have the proportions of the images, be no larger, and be a multiple of the "
                    f"patch size. Received: {task.local_size} of {size[0]} x {size[1]} pixels"
                    + (f" in patches of {patch[0]} x {patch[1]}" if patch else "")
                )
        return dataclasses.replace(task, local_size=local)

    def learner(self, model):
        """Returns a `StudentTeacher` around the model; its output is `(batch, 3)`."""
        from keras_vit.tasks.pretrain.student_teacher import StudentTeacher

        task = self.task
        return StudentTeacher(model, task.prototypes, task.head_width, task.teacher_temperature, task.teacher_momentum)

    def compiled(self):
        """Returns arguments of Keras's `compile`."""
        from keras_vit.tasks.pretrain.crops_loss import CropsLoss, metrics

        return {"loss": CropsLoss(), "weighted_metrics": metrics()}

    def batch(self, examples, augment, seed):
        """Returns crops, uint8, and zeros, as in `Pretrain.batch`. They are mirrored if the recipe flips images."""
        from keras_vit.data.augment.multicrop import multicrop
        from keras_vit.data.augment.noise import zeros
        from keras_vit.tasks.pretrain.student_teacher import GLOBAL, LOCAL

        task = self.task
        large, small = multicrop(
            examples["images"],
            seed,
            local_crops=task.local_crops,
            local_size=task.local_size,
            border=task.global_area,
            flip=augment is not None and augment.flip,
            colors=task.colors,
        )
        crops = {GLOBAL: large} | ({} if small is None else {LOCAL: small})
        return crops, zeros(large)

    def callbacks(self, run):
        """Returns Keras callbacks: one says how long the run is, one looks for a collapse."""
        from keras_vit.tasks.pretrain.collapse import Planned, SayCollapse

        return [Planned(run), SayCollapse(run)]

    def viewer(self, learner):
        """Returns `None`: there is nothing to see but embeddings."""


def _patch_size(arguments):
    """Returns `(height, width)` of a patch by arguments of a model; `None` where its weights say it."""
    from keras_vit.checkpoints.pretrained import DEFAULTS

    patch, variant = arguments["patch_size"], arguments["variant"]
    if patch is None and (not arguments.get("weights") or variant not in (None, DEFAULTS["variant"])):
        patch = variants.parse(variant)[1]
    return patch and checks.pair("patch_size", patch)


def _nearest(grid, patch):
    """Returns the size in pixels, of the grid's proportions, whose side is nearest to the paper's share."""
    parts = math.gcd(*grid)
    count = max(round(SHARE * parts), 1)
    return tuple(side // parts * count * pixels for side, pixels in zip(grid, patch))
