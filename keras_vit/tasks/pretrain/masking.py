"""Rules of `Pretrain(method="mae")`: a masked autoencoder."""

import math

import numpy as np

from keras_vit.models import variants
from keras_vit.models.options import merged
from keras_vit.tasks import refusals
from keras_vit.tasks.pretrain.encoder import check_encoder, visible_patches
from keras_vit.utils import checks
from keras_vit.utils.value_range import by_band, to_bytes

SMALLEST = 2  # smallest side of a patch, in pixels
BLENDED = (*refusals.MIXES, "augment.erase")  # they change the pixels to reconstruct


class Masking:
    """Rules of a masked autoencoder. Every method has the same attributes and methods.

    Args:
        task: A `Pretrain`.
    """

    compares = False
    refuses = {name: f"{name} changes the target: pre-training takes none." for name in BLENDED}

    def __init__(self, task):
        self.task = task

    def check(self, recipe):
        """Raises ValueError if the recipe has a model or options that cannot be trained so."""
        from keras_vit.checkpoints.pretrained import DEFAULTS

        task = self.task
        refusals.refuse(self.refuses, task, recipe)
        arguments = merged(DEFAULTS, recipe.model)
        if recipe.model.get("weights") and "variant" not in recipe.model:
            arguments["variant"] = None  # the variant of the weights
        _, number, hybrid = variants.parse(arguments["variant"])
        check_encoder({**arguments, "num_classes": 0, "stem": arguments["stem"] or (hybrid and arguments["variant"])})
        patch = arguments["patch_size"] or number
        if patch is not None:  # else the patch size of the weights
            sides = zip(checks.pair("image_size", arguments["image_size"]), patch := checks.pair("patch_size", patch))
            visible_patches(math.prod(side // pixels for side, pixels in sides), task.mask_ratio, task.tubes)
            _check_patch(patch)
        if task.decoder_width % 4 or task.decoder_width % task.decoder_heads:
            raise ValueError(
                "task.decoder_width must be a multiple of 4 and of task.decoder_heads. "
                f"Received: {task.decoder_width} and {task.decoder_heads}"
            )

    def check_model(self, model):
        """Raises ValueError if a model, which may be of weights, cannot be trained so."""
        from keras_vit.checkpoints.arguments import arguments_of
        from keras_vit.tasks.pretrain.layouts import layout_of

        arguments = arguments_of(model, words=any(layer.name == "tubelets" for layer in model.layers))
        check_encoder(arguments)
        layout_of(arguments, self.task.mask_ratio)  # raises if no patch would be visible, or none masked
        _check_patch(arguments["patch_size"])

    def on(self, arguments):
        """Returns the task as it is."""
        return self.task

    def learner(self, model):
        """Returns a `MaskedAutoencoder` around the model; its output is `(batch, patches, values + 1)`."""
        from keras_vit.tasks.pretrain.masked import MaskedAutoencoder

        task = self.task
        decoder = {"width": task.decoder_width, "depth": task.decoder_depth, "num_heads": task.decoder_heads}
        return MaskedAutoencoder(model, task.mask_ratio, **decoder, normalize=task.normalize)

    def compiled(self):
        """Returns arguments of Keras's `compile`."""
        from keras_vit.tasks.pretrain.masked import MaskedLoss

        return {"loss": MaskedLoss(), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns images with noise, and the images, as in `Pretrain.batch`."""
        from keras_vit.data.augment.noise import noise

        images = examples["images"]
        patches = (images.shape[-3] // SMALLEST) * (images.shape[-2] // SMALLEST)  # at most: surplus noise is ignored
        return {"images": images, "noise": noise(seed, images, patches)}, images

    def callbacks(self, run):
        """Returns no Keras callbacks."""
        return []

    def viewer(self, learner):
        """Returns the function from images to masked and reconstructed ones, 0..255."""

        def view(images):
            limits = learner.model.get_layer("rescale").limits
            views = np.stack(learner.reconstruct(images), axis=1)  # (batch, 2, [frames,] height, width, channels)
            return np.clip(to_bytes(views, limits), 0, 255) if by_band(limits) else views

        return view


def _check_patch(patch):
    if min(patch) < SMALLEST:
        raise ValueError(f"Pre-training needs patches of {SMALLEST} x {SMALLEST} pixels. Received: {patch}")
