"""Images of classes, or of texts, by rectified flow."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import keras
import numpy as np

from keras_vit.generation.latents import check_scale, decoded, decoder_at
from keras_vit.generation.sampler import by_steps, drawn
from keras_vit.generation.sampling import as_bytes
from keras_vit.models import kinds
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.models.dit import ARGUMENTS
from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.models.whole_autoencoder import SCALE
from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.generate.by_labels import ByLabels
from keras_vit.tasks.generate.by_texts import ByTexts
from keras_vit.tasks.generate.latent_learner import LatentLearner
from keras_vit.tasks.generate.noted import note
from keras_vit.tasks.generate.velocity_loss import VelocityLoss
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.texts import ReadsTexts
from keras_vit.utils import checks
from keras_vit.utils.checked import number, only_with

FIXED = ("mean", "std", "value_range", "text", "metadata")  # arguments of `dit` that the task sets
BATCH = 64  # images to generate in a batch
TEXT = "text=True"


@dataclass(frozen=True, repr=False)
class Generate(ReadsTexts, Task):
    """Images of classes, or of texts, from noise: a diffusion Transformer (`dit`), trained by rectified flow.

    A training image, -1 to 1, is mixed with normal noise, `x = (1 - t) noise + t image`, and the model learns the
    velocity `image - noise` by the mean squared error (Liu et al. 2023, arXiv:2209.03003; Ma et al. 2024,
    arXiv:2401.08740). Some labels are dropped in training, so that images can be generated with guidance.

    The model takes a dictionary: `"images"`, float32 `(batch, height, width, channels)`; `"times"`, float32 `(batch,)`,
    0 (noise) to 1 (image); `"labels"`, int32 `(batch,)`. It returns velocities, `(batch, height, width, channels)`.

    With `text=True` each image has a text in place of a label, `"texts"`, int32 ids, `(batch, length)`. A text tower in
    the model reads it: its vector is part of what the normalizations depend on, and the blocks attend to its words, see
    `dit`. Of several texts in a row, one is drawn each time. A part of the texts is left out in training: the text
    without words takes their place.

    To score it, one image is generated for each real image, of the same class or text. The scores are the Fréchet
    distance of thumbnails and, with a classifier as `judge`, its accuracy on generated images, and the Fréchet distance
    of its features (Heusel et al. 2017, arXiv:1706.08500, with the classifier in place of Inception: it is not FID).

    Args:
        autoencoder: An autoencoder of latents: a run or a `.keras` file of `Compress`, or a recipe whose weights ship;
            or diffusers' `AutoencoderKL`, a file, a folder or an address; `None` for a model of images. `image_size`
            and `channels` of the model are then those of the latents; images are larger. It is frozen: images are
            encoded in each step of the training, and what is drawn is decoded.
        label_drop: Share of the labels, or texts, that are left out in training (Ho and Salimans 2022,
            arXiv:2207.12598).
        times: Distribution of the times: `"normal"`, the sigmoid of a normal number, with more in the middle (Esser et
            al. 2024, arXiv:2403.03206, section 3.1), or `"uniform"`.
        shift: How much nearer to the noise times are, in training and in drawing, 1 for not at all (Esser et al. 2024,
            equation 23). Large images with large things need more, since a little image already shows them through
            the noise: 3 for photographs of 1,024 pixels in an autoencoder's latents, 8 for plain drawings of 64.
        steps: Number of Euler steps from noise to an image.
        guidance: Scale of classifier-free guidance, 1 for none; see `keras_vit.sample`.
        judge: Classifier with the same classes and image size, for the scores: a recipe whose weights ship with the
            package, a run or a file; or `None`. With `text=True` a captioner: the score `exact_match` is the share of
            images of which it writes the text.
        every: Number of epochs between two measurements during training.
        samples: Number of images to generate for each measurement.
        text: Whether a text says what is drawn. The options below are for `text=True`.
        words: Vocabulary, as `tokenizer` takes it; by default learned from the training texts.
        tokens: Instead of `words`, a published tokenizer: a source of `tokenizer`.
        letters: Whether to learn a vocabulary of characters, else of lower-case words.
        vocabulary: Largest size of a learned vocabulary.
        length: Number of ids of a text. Longer texts are cut, with a warning that counts them.
        draw: Of several texts in a row: `"one"` is drawn at a time, or `"some"`, joined.
        example: Text that the demo shows first.
        tower: Arguments of `text_tower`, such as `width`, `depth` and `num_heads`. By default a word sees only those
            before it (`causal`).
    """

    asks: ClassVar[str] = "Text"
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
    shift: float = number(1.0, low=0.01)
    steps: int = number(25, low=1)
    guidance: float = number(2.0)
    judge: str | None = None
    every: int = number(10, low=1)
    samples: int = number(500, low=2)
    text: bool = only_with("by_text", False)
    words: tuple[str, ...] = only_with("by_text", (), TEXT)
    tokens: str = only_with("by_text", "", TEXT)
    letters: bool = only_with("by_text", False, TEXT)
    vocabulary: int = only_with("by_text", number(1000, low=3), TEXT)
    length: int = only_with("by_text", number(32, low=2), TEXT)
    draw: Literal["one", "some"] = only_with("by_text", "one", TEXT)
    example: str = only_with("by_text", "", TEXT)
    tower: dict[str, Any] | None = only_with("by_text", None, TEXT)  # noqa: RUF009

    def __post_init__(self):
        super().__post_init__()
        self.rules.check_options()

    @property
    def by_text(self):
        """Whether a text says what is drawn."""
        return self.text

    @property
    def rules(self):
        """What depends on what images are drawn of: a `ByLabels` or a `ByTexts`."""
        return ByTexts(self) if self.text else ByLabels(self)

    @property
    def inputs(self):
        return self.rules.inputs

    @property
    def targets(self):
        return self.rules.targets

    def check(self, recipe=None):
        super().check(recipe)
        if recipe is None:
            return
        self.rules.check(recipe)
        checks.options("model", recipe.model, self.arguments)
        if "image_size" not in recipe.model:
            raise ValueError(f"Generate needs model.image_size. Received: model={checks.shown(recipe.model)}")
        if self.autoencoder and "channels" not in recipe.model:
            shown = checks.shown(recipe.model)
            raise ValueError(f"A model of latents needs model.channels, those of the latents. Received: model={shown}")
        if not self.label_drop and self.guidance != 1:
            raise ValueError(
                "A model that always sees the class has no guidance: with label_drop=0, guidance must be 1. "
                f"Received: guidance={self.guidance}"
            )

    def on(self, source, arguments=None):
        if self.autoencoder and arguments is not None:
            sizes = self._sizes()
            if arguments["channels"] != sizes.latent_channels:
                raise ValueError(
                    f"model.channels must be {sizes.latent_channels}, those of the autoencoder's latents. "
                    f"Received: {arguments['channels']} with autoencoder={self.autoencoder!r}"
                )
        return self.rules.on(source, arguments)

    def size_of(self, arguments):
        """Returns `(height, width, channels)` of the images, by a model's arguments; `None` if they are not known."""
        if arguments is None:
            return None
        return self.data_shape((*checks.pair("image_size", arguments["image_size"]), arguments["channels"]))

    def settled(self, source):
        return self.rules.settled(source)

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
        return self.rules.classes_for(arguments)

    def read(self, source, training=False):
        return self.rules.read(source, training)

    def of_model(self, model):
        known = self.rules.of_model(model)
        if self.autoencoder:  # where it was found, whatever the folder is now
            known = {**known, "autoencoder": metadata_of(model).get(AUTOENCODER, self.autoencoder)}
        return replace(self, **known)

    def fits(self, model):
        """Returns whether the model is a DiT of the task's classes, or of its words."""
        return self.rules.fits(model)

    def model(self, *, weights=None, **arguments):
        """Builds the DiT: from images, times and labels or texts to velocities, as in the class docstring."""
        model = self.rules.model(**arguments)
        kinds.note(model, self.gives)
        if weights is not None:
            from keras_vit.checkpoints import load_weights
            from keras_vit.checkpoints.pretrained import location

            self.rules.check_weights(location(weights) or weights)
            load_weights(model, location(weights) or weights)
        note(self, metadata_of(model))
        return model

    def teacher_for(self, model, given=None):
        """Returns the encoder of the autoencoder, or `None`."""
        if given is not None or not self.autoencoder:
            return super().teacher_for(model, given)
        from keras_vit.checkpoints.pretrained import from_pretrained

        metadata_of(model)[SCALE] = [*self._sizes().scale]  # by which it is known if another one is there later
        return from_pretrained(self.autoencoder, part="encoder", latent_size=image_shape(model)[:2], dtype="float32")

    def learner(self, model, teacher=None):
        return model if teacher is None else LatentLearner(model, teacher)

    def compiled(self, source):
        return {"loss": VelocityLoss(), "weighted_metrics": []}

    def prepare(self, examples, seed):
        """Replaces `"images"` by normal noise, and adds `"originals"` and `"times"`.

        Args:
            examples: `"images"`, float32 `(batch, height, width, channels)`, 0..255, and `"labels"`, `(batch,)`, or
                `"texts"`, ids, `(batch, length)`, or `(batch, most, length)`, of which one is drawn.
            seed: Integer tensor, `(2,)`.

        Returns:
            `"images"`, noise of the same shape, or of that of the latents; `"originals"`, the images, 0..255;
            `"times"`, zeros, `(batch,)`; and `"labels"` or `"texts"`.
        """
        from keras_vit.data.augment.flow import from_noise

        sizes = self._sizes() if self.autoencoder else None
        return from_noise(self.rules.prepare(examples, seed), seed, sizes and (sizes.factor, sizes.latent_channels))

    def batch(self, examples, augment, seed):
        """Returns the model's inputs, and velocities, float32 `(batch, height, width, channels)`.

        Images are mixed with noise at random times, and some labels become `classes`, the index for no class, or some
        texts the text without words.
        """
        from keras_vit.data.augment.flow import before_encoding, on_the_way

        share = 0.0 if augment is None else self.label_drop
        made = before_encoding if self.autoencoder else on_the_way
        return made(examples, seed, self.times, self.shift, share, self.inputs[-1], self.rules.none())

    def callbacks(self, run):
        names = self.rules.scores if self.judge else self.rules.scores[-1:]
        return [Measured(run, self.tally, names, self.every, self.samples)]

    def tally(self, keep=False):
        return self.rules.tally()

    def answering(self, model):
        """Returns the function that generates images.

        Args:
            model: The model, or a function of an exported file with the same inputs and output.

        Returns:
            Function from a dictionary of arrays, `"images"`, noise, and `"labels"`, `(batch,)`, or `"texts"`, ids, to
            images, float32 `(batch, height, width, channels)`, whole numbers from 0 to 255. Latents are decoded.
        """

        def images(examples):
            noise, asked = (np.asarray(examples[name]) for name in ("images", self.inputs[-1]))
            if self.judge:
                self.rules.check_judge(self.data_shape(noise.shape[1:]))
            if isinstance(model, keras.Model):
                check_scale(model, self.autoencoder)
                pictures = drawn(model, noise, asked, self.steps, self.guidance, batch_size=BATCH)
            else:
                pictures = by_steps(model, self.rules.none(), noise, asked, self.steps, self.guidance, self.shift)
            if self.autoencoder:
                pictures = decoded(decoder_at(self.autoencoder, noise.shape[1:3]), pictures)
            return as_bytes(pictures).astype("float32")

        return images

    def answer(self, output):
        """Returns an empty dictionary: the output is an image, `(height, width, channels)`."""
        return {}

    def caption(self, output, example):
        """Returns what an image was asked to be: the name of the class in `"labels"`, or the text in `"texts"`."""
        return self.rules.caption(example)

    def picture(self, image, output, example=None):
        """Returns `output`, an image, `(height, width, channels)`, 0..255, as uint8 `(height, width, 3)`."""
        return super().picture(output, output)
