"""An autoencoder of latents, for `Generate` to draw in."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_vit.models.whole_autoencoder import ARGUMENTS, autoencoder, is_autoencoder
from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.compress.latent_loss import LatentLoss
from keras_vit.tasks.compress.latent_scale import LatentScale, measured
from keras_vit.tasks.compress.learner import AutoencoderLearner
from keras_vit.tasks.images import ReturnsImages
from keras_vit.tasks.restore.image_tally import ImageTally
from keras_vit.tasks.restore.luma import PSNR
from keras_vit.tasks.restore.windows import check_settings, check_sizes
from keras_vit.utils import checks
from keras_vit.utils.checked import number

BLOCKS = ("optim.freeze", "optim.lora", "optim.layer_decay")  # options that count them


@dataclass(frozen=True, repr=False)
class Compress(ReturnsImages, Task):
    """An autoencoder that makes images small, for `Generate(autoencoder=...)`, trained on images without labels.

    The encoder says a normal distribution of latents for each image, and the decoder makes the image again of latents
    drawn from it (Rombach et al. 2022, arXiv:2112.10752, section 3.1, with the KL penalty; here without an adversary
    and without a perceptual loss, so fine texture becomes smooth). Networks are those of diffusers' `AutoencoderKL`,
    see `keras_vit.from_checkpoint`; `model` of the recipe has `image_size`, `channels`, `latent_channels`, `widths`,
    `depth`, `groups`, `attention` and `projection`. Latents are smaller by `2 ** (len(widths) - 1)`.

    The model takes images, `(batch, height, width, channels)`, 0..255, and returns what the decoder makes of the mean
    of their latents, float32 pixels of the same shape, which may leave 0..255 a little. After each epoch, the mean and
    the standard deviation of the latents of up to 512 validation images are measured. They are saved with the model:
    `from_checkpoint(path, part="encoder")` and `part="decoder"` return models for latents of mean 0 and deviation 1.

    `image_size` is the size of the training windows. Recipes must set `augment.crop` and `data.resize` to `"window"`:
    images are never resized, and whole ones of any size are made again in overlapping tiles.

    Args:
        classes: Not used: the task has no classes.
        kl: Weight of the Kullback-Leibler divergence of the latents from normal noise. The loss is the mean absolute
            error of pixels from -1 to 1, plus `kl` times the divergence for each of the image's numbers.
    """

    whole = True
    best = ("val_psnr", "max")
    gives = "image"
    parts = ("original", "of its latents", "original")
    arguments: ClassVar[tuple[str, ...]] = tuple(name for name in ARGUMENTS if name != "metadata")
    refuses = {
        "task.classes": "Compress has no classes.",
        **refusals.of_places("originals"),
        **refusals.each(BLOCKS, "An autoencoder has no blocks of a Transformer."),
    }

    kl: float = number(1e-6)

    def check(self, recipe=None):
        super().check(recipe)
        if recipe is None:
            return
        check_settings("Compress", recipe)
        checks.options("model", recipe.model, self.arguments)
        if "image_size" not in recipe.model:
            raise ValueError(f"Compress needs model.image_size. Received: model={checks.shown(recipe.model)}")

    def on(self, source, arguments=None):
        if arguments is not None:
            check_sizes(source, checks.pair("image_size", arguments["image_size"]), "the model's image_size")
        return self

    def fits(self, model):
        """Returns whether the model is an autoencoder."""
        return is_autoencoder(model)

    def model(self, **arguments):
        """Builds the autoencoder, from images to images, with shapes as in the class docstring."""
        return autoencoder(**{name: value for name, value in arguments.items() if name in ARGUMENTS})

    def learner(self, model, teacher=None):
        return AutoencoderLearner(model)

    def compiled(self, source):
        return {"loss": LatentLoss(self.kl), "weighted_metrics": [PSNR()]}

    def callbacks(self, run):
        return [LatentScale(run)]

    def finish(self, run):
        measured(run, again=False)

    def prepare(self, examples, seed):
        """Adds `"originals"`, the images."""
        return {**examples, "originals": examples["images"]}

    def batch(self, examples, augment, seed):
        """Returns the images twice, float32, 0..255: what the model takes, and what it must return."""
        return examples["images"], examples["originals"]

    def tally(self, keep=False):
        return ImageTally(of_luma=False)

    def caption(self, output, example):
        """Returns the PSNR as text, of an image and `"originals"`, both `(rows, columns, channels)`, 0..255."""
        tally = self.tally()
        tally.add({name: np.asarray(example[name])[None] for name in ("images", "originals")}, [output])
        return f"{tally.result()['psnr']:.2f} dB"

    def picture(self, image, output, example=None):
        """Returns the original and what was made of its latents side by side, uint8 `(rows, columns, 3)`."""
        from keras_vit.plots.canvas import side_by_side

        return side_by_side([Task.picture(self, one, None) for one in (image, output)])
