"""Self-supervised pre-training: masked autoencoders."""

import math
from dataclasses import dataclass

import numpy as np

from keras_vit.models import variants
from keras_vit.models.options import merged
from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.pretrain.encoder import check_encoder, visible_patches
from keras_vit.tasks.pretrain.neighbors import knn_accuracy
from keras_vit.tasks.shown import INPUT
from keras_vit.tasks.tally import Tally
from keras_vit.utils import checks
from keras_vit.utils.checked import number

KEPT = 5000  # largest number of embeddings for the accuracy of neighbors
EVERY, MEASURED = 5, 2000  # epochs between two measurements in training, and images of each
SMALLEST = 2  # smallest side of a patch, in pixels
BLENDED = (*refusals.MIXES, "augment.erase")  # they change the pixels to reconstruct
FINE = ("optim.freeze", "optim.lora", "optim.layer_decay")  # options of fine-tuning


@dataclass(frozen=True, repr=False)
class Pretrain(Task):
    """Self-supervised pre-training: the model learns to reconstruct masked patches; see `MaskedAutoencoder`.

    He et al. 2021 (arXiv:2111.06377). The saved model returns embeddings, `(batch, width)`. The decoder's defaults are
    the paper's for ImageNet; a small model on small images needs less, such as width 128, depth 2 and 4 heads.
    """

    extras = ("labels",)
    refuses = {
        "task.classes": "Pre-training has no classes.",
        "model.num_classes": "Pre-training has no classes: leave out model.num_classes.",
        **{name: f"{name} changes the target: pre-training takes none." for name in BLENDED},
        **{name: f"{name} is for fine-tuning: pre-training takes none." for name in FINE},
    }
    tubes = False  # whether the same places are masked in all frames of a clip

    mask_ratio: float = number(0.75, low=0.01, below=1)  # share of masked patches
    decoder_width: int = number(512, low=8)
    decoder_depth: int = number(8, low=1)
    decoder_heads: int = number(16, low=1)
    normalize: bool = True  # whether to predict pixels normalized in each patch

    def check(self, recipe=None):
        from keras_vit.checkpoints.pretrained import DEFAULTS

        super().check(recipe)
        arguments = merged(DEFAULTS, recipe.model)
        if recipe.model.get("weights") and "variant" not in recipe.model:
            arguments["variant"] = None  # the variant of the weights
        _, number, hybrid = variants.parse(arguments["variant"])
        check_encoder({**arguments, "num_classes": 0, "stem": arguments["stem"] or (hybrid and arguments["variant"])})
        if arguments["pooling"] == "none":
            raise ValueError("Pre-training needs one vector for each image. Received: model.pooling='none'")
        patch = arguments["patch_size"] or number
        if patch is not None:  # else the patch size of the weights
            sides = zip(checks.pair("image_size", arguments["image_size"]), patch := checks.pair("patch_size", patch))
            visible_patches(math.prod(side // pixels for side, pixels in sides), self.mask_ratio, self.tubes)
            if min(patch) < SMALLEST:
                raise ValueError(f"Pre-training needs patches of {SMALLEST} x {SMALLEST} pixels. Received: {patch}")
        if self.decoder_width % 4 or self.decoder_width % self.decoder_heads:
            raise ValueError(
                "task.decoder_width must be a multiple of 4 and of task.decoder_heads. "
                f"Received: {self.decoder_width} and {self.decoder_heads}"
            )

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to embeddings, `(batch, width)`."""
        return self.vit(**{**arguments, "num_classes": 0})

    def learner(self, model, teacher=None):
        """Returns a `MaskedAutoencoder` around the model; its output is `(batch, patches, values + 1)`."""
        from keras_vit.tasks.pretrain.masked import MaskedAutoencoder

        decoder = {"width": self.decoder_width, "depth": self.decoder_depth, "num_heads": self.decoder_heads}
        return MaskedAutoencoder(model, self.mask_ratio, **decoder, normalize=self.normalize)

    def compiled(self, source):
        from keras_vit.tasks.pretrain.masked import MaskedLoss

        return {"loss": MaskedLoss(), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns the inputs of the `MaskedAutoencoder`, and the same images, float32, 0..255, as targets.

        The inputs are `"images"` and `"noise"`, float32 `(batch, patches or more)`, in [0, 1).
        """
        from keras_vit.data.augment.noise import noise

        images = examples["images"]
        patches = (images.shape[-3] // SMALLEST) * (images.shape[-2] // SMALLEST)  # at most: surplus noise is ignored
        return {"images": images, "noise": noise(seed, images, patches)}, images

    def tally(self, keep=False):
        return EmbeddingTally()

    def callbacks(self, run):
        if "labels" not in run.validation.targets:
            return []
        return [Measured(run, EmbeddingTally, ("knn_accuracy",), EVERY, MEASURED)]

    def viewer(self, learner):
        """Returns the function from images, 0..255, to masked and reconstructed images, `(batch, 2, ...)`, 0..255."""
        return lambda images: np.stack(
            learner.reconstruct(images), axis=1
        )  # (batch, 2, [frames,] height, width, channels)

    def answer(self, output):
        """Returns an empty dictionary: an embedding has no answer."""
        return {}

    def shows(self, output):
        """Returns a description of `picture`, from an embedding, `(width,)`, or `(2, height, width, channels)`."""
        caption = self.caption(output, {})
        return f"from left to right: {caption}" if caption else INPUT

    def caption(self, output, example):
        """Returns the names of the three pictures if `output` is `(2, height, width, channels)`; else `""`."""
        return "image, masked, reconstruction" if np.ndim(output) == 4 else ""

    def picture(self, image, output, example=None):
        """Returns the image, and next to it the masked and the reconstructed image, uint8 `(rows, columns, 3)`.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: Masked and reconstructed image, `(2, height, width, channels)`, 0..255; or an embedding, `(width,)`,
                of which nothing is drawn.
            example: Not used.
        """
        from keras_vit.plots.canvas import side_by_side

        views = [image, *output] if np.ndim(output) == 4 else [image]
        return side_by_side([super(Pretrain, self).picture(one, output) for one in views])


class EmbeddingTally(Tally):
    """Accuracy of nearest neighbors, each image among all others, if the data have labels.

    Images with a negative label are unlabeled, and do not count. Of more than 5,000 images, a random sample of 5,000 is
    kept, the same in each run.
    """

    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng(0)
        self.keys = np.zeros(0)
        self.vectors = None
        self.labels = np.zeros(0, "int64")

    def add(self, examples, outputs):
        """Counts a batch.

        Args:
            examples: Dictionary that may have `"labels"`, integers, `(batch,)`.
            outputs: Embeddings, `(batch, width)`.
        """
        if "labels" not in examples:
            return
        labeled = examples["labels"] >= 0  # some datasets have -1 for unlabeled images
        outputs = np.asarray(outputs, "float32")[labeled]
        self.keys = np.concatenate([self.keys, self.random.random(len(outputs))])
        self.labels = np.concatenate([self.labels, examples["labels"][labeled]])
        self.vectors = outputs if self.vectors is None else np.concatenate([self.vectors, outputs])
        if len(self.keys) > KEPT:
            best = np.sort(np.argpartition(self.keys, KEPT)[:KEPT])
            self.keys = self.keys[best]
            self.labels = self.labels[best]
            self.vectors = self.vectors[best]

    def result(self):
        if len(self.keys) < 2:
            return {}
        return {"knn_accuracy": knn_accuracy(self.vectors, self.labels)}

    def figures(self):
        from keras_vit import plots

        if len(self.keys) < 3:
            return {}
        return {"Embeddings, projected to two principal components": plots.plot_embedding(*self._points())}

    def _points(self):
        from keras_vit.explain import project

        return project(self.vectors), self.labels
