"""Class-conditional image generation by rectified flow."""

from dataclasses import dataclass
from typing import Literal

import keras
import numpy as np
from keras import ops

from keras_vit.generation.latents import decoded, decoder_at
from keras_vit.generation.sampler import by_steps, drawn
from keras_vit.generation.sampling import UNGUIDED, as_bytes
from keras_vit.models import kinds
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.models.dit import ARGUMENTS, INPUTS, classes_of, dit, is_dit
from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.models.outputs import distinct
from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.class_names import named_by, numbered
from keras_vit.tasks.generate.latent_learner import LatentLearner
from keras_vit.tasks.generate.sample_tally import SampleTally, judge_of
from keras_vit.tasks.measured import Measured
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.configured import Loss

FIXED = ("mean", "std", "value_range", "metadata")  # arguments of `dit` that the task sets
BATCH = 64  # images to generate in a batch
SCORES = ("accuracy", "frechet", "thumbnail_frechet")


@dataclass(frozen=True, repr=False)
class Generate(Task):
    """Class-conditional image generation: a diffusion Transformer (`dit`), trained by rectified flow.

    A training image, -1 to 1, is mixed with normal noise, `x = (1 - t) noise + t image`, and the model learns the
    velocity `image - noise` by the mean squared error (Liu et al. 2023, arXiv:2209.03003; Ma et al. 2024,
    arXiv:2401.08740). Some labels are dropped in training, so that images can be generated with guidance.

    The model takes a dictionary: `"images"`, float32 `(batch, height, width, channels)`; `"times"`, float32 `(batch,)`,
    0 (noise) to 1 (image); `"labels"`, int32 `(batch,)`. It returns velocities, `(batch, height, width, channels)`.

    To score it, one image is generated for each real image, of the same class. The scores are the Fréchet distance of
    thumbnails and, with a classifier as `judge`, its accuracy on generated images, and the Fréchet distance of its
    features (Heusel et al. 2017, arXiv:1706.08500, with the classifier in place of Inception: it is not FID).

    Args:
        autoencoder: An autoencoder of latents, diffusers' `AutoencoderKL`: the path of its file or folder, or an
            address; or `None` for a model of images. `image_size` and `channels` of the model are then those of the
            latents; images are larger. It is frozen: images are encoded in each step of the training, and what is drawn
            is decoded.
        label_drop: Share of the labels that are dropped in training (Ho and Salimans 2022, arXiv:2207.12598).
        times: Distribution of the times: `"normal"`, the sigmoid of a normal number, with more in the middle (Esser et
            al. 2024, arXiv:2403.03206, section 3.1), or `"uniform"`.
        steps: Number of Euler steps from noise to an image.
        guidance: Scale of classifier-free guidance; 1 for no guidance. See `keras_vit.sample`.
        judge: Classifier with the same classes and image size, for the scores: a recipe whose weights ship with the
            package, a run or a file; or `None`.
        every: Number of epochs between two measurements during training.
        samples: Number of images to generate for each measurement.
    """

    inputs = INPUTS
    targets = ("labels",)
    gives = "velocity"
    arguments = (*(name for name in ARGUMENTS if name not in FIXED), "weights")
    measured = ("steps", "guidance", "judge", "every", "samples")
    refuses = {
        **refusals.of_places("images to draw"),
        "augment.erase": "What erasing makes would be drawn too.",
    }

    autoencoder: str | None = None
    label_drop: float = number(0.1, below=1)
    times: Literal["normal", "uniform"] = "normal"
    steps: int = number(25, low=1)
    guidance: float = number(2.0)
    judge: str | None = None
    every: int = number(10, low=1)
    samples: int = number(500, low=2)

    def check(self, recipe=None):
        super().check(recipe)
        checks.options("model", recipe.model, self.arguments)
        if "image_size" not in recipe.model:
            raise ValueError(f"Generate needs model.image_size. Received: model={checks.shown(recipe.model)}")
        if self.autoencoder and "channels" not in recipe.model:
            raise ValueError(
                "A model of latents needs model.channels, those of the latents. "
                f"Received: model={checks.shown(recipe.model)}"
            )
        if not self.label_drop and self.guidance != 1:
            raise ValueError(
                "A model that always sees the class has no guidance: with label_drop=0, guidance must be 1. "
                f"Received: guidance={self.guidance}"
            )

    def on(self, source, arguments=None):
        task = named_by(self, source, arguments)
        source.check_labels()
        if self.autoencoder and arguments is not None:
            sizes = self._sizes()
            if arguments["channels"] != sizes.latent_channels:
                raise ValueError(
                    f"model.channels must be {sizes.latent_channels}, those of the autoencoder's latents. "
                    f"Received: {arguments['channels']} with autoencoder={self.autoencoder!r}"
                )
        if self.judge:
            has_model = arguments is not None
            size = (*checks.pair("image_size", arguments["image_size"]), arguments["channels"]) if has_model else None
            size = size and self.data_shape(size)
            judge_of(self.judge).check(task.classes, size)
        return task

    def settled(self, source):
        return {"num_classes": len(source.class_names)}

    def _sizes(self):
        """Returns the `Sizes` of the autoencoder."""
        from keras_vit.checkpoints.autoencoder import sizes_of

        return sizes_of(self.autoencoder)

    def data_shape(self, shape):
        """Returns `(height, width, channels)` of the images: with an autoencoder, they are larger than the latents."""
        if not self.autoencoder:
            return shape
        sizes = self._sizes()
        return shape[0] * sizes.factor, shape[1] * sizes.factor, sizes.channels

    def classes_for(self, arguments):
        return numbered(self, arguments)

    def fits(self, model):
        """Returns whether the model is a DiT with an embedding for each of the task's classes."""
        return is_dit(model) and classes_of(model) == len(self.classes)

    def model(self, *, weights=None, num_classes=None, **arguments):
        """Builds the DiT: from images, times and labels to velocities, as in the class docstring."""
        model = dit(num_classes=num_classes or 1, **arguments)  # 1 as long as the number is unknown
        kinds.note(model, self.gives)
        metadata_of(model).update({} if self.label_drop else {UNGUIDED: True})
        if self.autoencoder:
            from keras_vit.checkpoints.autoencoder import address

            metadata_of(model)[AUTOENCODER] = address(self.autoencoder)
        if weights is not None:
            from keras_vit.checkpoints import load_weights
            from keras_vit.checkpoints.pretrained import location

            load_weights(model, location(weights) or weights)
        return model

    def teacher_for(self, model, given=None):
        """Returns the encoder of the autoencoder, for the model's latents, or `None`."""
        if given is not None or not self.autoencoder:
            return super().teacher_for(model, given)
        from keras_vit.checkpoints import from_checkpoint

        return from_checkpoint(self.autoencoder, part="encoder", latent_size=image_shape(model)[:2], dtype="float32")

    def learner(self, model, teacher=None):
        return model if teacher is None else LatentLearner(model, teacher)

    def compiled(self, source):
        return {"loss": VelocityLoss(), "weighted_metrics": []}

    def prepare(self, examples, seed):
        """Replaces `"images"` by normal noise, and adds `"originals"` and `"times"`.

        Args:
            examples: `"images"`, float32 `(batch, height, width, channels)`, 0..255, and `"labels"`, `(batch,)`.
            seed: Integer tensor, `(2,)`.

        Returns:
            `"images"`, noise of the same shape, or of that of the latents; `"originals"`, the images, 0..255;
            `"times"`, zeros, `(batch,)`; and `"labels"`.
        """
        from keras_vit.data.augment.flow import from_noise

        sizes = self._sizes() if self.autoencoder else None
        return from_noise(examples, seed, sizes and (sizes.factor, sizes.latent_channels))

    def batch(self, examples, augment, seed):
        """Returns the model's inputs, and velocities, float32 `(batch, height, width, channels)`.

        Images are mixed with noise at random times, and some labels become `classes`, the index for no class.
        """
        from keras_vit.data.augment.flow import before_encoding, on_the_way

        share = 0.0 if augment is None else self.label_drop
        made = before_encoding if self.autoencoder else on_the_way
        return made(examples, seed, self.times, share, len(self.classes))

    def callbacks(self, run):
        names = SCORES if self.judge else SCORES[-1:]
        return [Measured(run, self.tally, names, self.every, self.samples)]

    def tally(self, keep=False):
        return SampleTally(self.judge)

    def answering(self, model):
        """Returns the function that generates images.

        Args:
            model: The model, or a function of an exported file with the same inputs and output.

        Returns:
            Function from a dictionary of arrays, `"images"`, noise, `(batch, height, width, channels)`, and `"labels"`,
            `(batch,)`, to images, float32 `(batch, height, width, channels)`, whole numbers from 0 to 255. Latents are
            decoded.
        """

        def images(examples):
            noise, labels = (np.asarray(examples[name]) for name in ("images", "labels"))
            if isinstance(model, keras.Model):
                pictures = drawn(model, noise, labels, self.steps, self.guidance, batch_size=BATCH)
            else:
                pictures = by_steps(model, len(self.classes), noise, labels, self.steps, self.guidance)
            if self.autoencoder:
                pictures = decoded(decoder_at(self.autoencoder, noise.shape[1:3]), pictures)
            return as_bytes(pictures).astype("float32")

        return images

    def answer(self, output):
        """Returns an empty dictionary: the output is an image, `(height, width, channels)`."""
        return {}

    def caption(self, output, example):
        """Returns the name of the class in `"labels"`, an integer, of an image, `(height, width, channels)`."""
        return distinct(self.classes)[example["labels"]]

    def picture(self, image, output, example=None):
        """Returns `output`, an image, `(height, width, channels)`, 0..255, as uint8 `(height, width, 3)`."""
        return super().picture(output, output)


@keras.saving.register_keras_serializable(package="keras_vit")
class VelocityLoss(Loss):
    """Mean squared error of the velocities of each image.

    Call arguments:
        y_true: Velocities, `(batch, height, width, channels)`.
        y_pred: Predicted velocities, `(batch, height, width, channels)`. Further channels are ignored.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def call(self, y_true, y_pred):
        y_pred = y_pred[..., : y_true.shape[-1]]
        return ops.mean(ops.square(y_pred - ops.cast(y_true, y_pred.dtype)), axis=(1, 2, 3))  # (batch,)
