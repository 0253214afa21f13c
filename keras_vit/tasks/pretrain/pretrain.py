"""Self-supervised pre-training: options of all methods, and the rules of each."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from keras_vit.tasks.base import Task
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.pretrain.distilling import Distilling
from keras_vit.tasks.pretrain.embedding_tally import EmbeddingTally
from keras_vit.tasks.pretrain.masking import Masking
from keras_vit.tasks.shown import INPUT
from keras_vit.utils.checked import number, only_with

EVERY, MEASURED = 5, 2000  # epochs between two measurements in training, and images of each
FINE = ("optim.freeze", "optim.lora", "optim.layer_decay")  # options of fine-tuning
METHODS = {"mae": Masking, "dino": Distilling}
MAE, DINO = (f"method={name!r}" for name in METHODS)


@dataclass(frozen=True, repr=False)
class Pretrain(Task):
    """Self-supervised pre-training: a model learns from images without labels, and returns embeddings.

    With `method="mae"` it learns to reconstruct masked patches, see `MaskedAutoencoder`; after He et al. 2021
    (arXiv:2111.06377). With `method="dino"` it learns to say the same of several crops of an image as a teacher, the
    average of its own earlier weights, says of two large ones; after Caron et al. 2021 (arXiv:2104.14294). The saved
    model returns embeddings, `(batch, width)`; with `"dino"` it is the teacher.

    Args:
        mask_ratio: Of `"mae"`, as the three below: share of the patches that are masked.
        decoder_width: Width of the decoder. The default width, depth and heads are the paper's for ImageNet; a small
            model on small images needs less, such as 128, 2 and 4.
        decoder_depth: Number of blocks in the decoder.
        decoder_heads: Number of attention heads in the decoder.
        normalize: Of `"mae"`, whether the decoder predicts pixels normalized in each patch.
        method: `"mae"` or `"dino"`.
        prototypes: Of `"dino"`, as all below: number of outputs of the projection head, of which student and teacher
            say shares; the paper has 65,536 for ImageNet.
        head_width: Hidden channels of the projection head.
        local_crops: Number of small crops, which only the student sees, next to the two global ones; 0 for none.
        local_size: Their size in pixels, an integer or `(height, width)`, with the proportions of the images; `None`
            for the nearest to 3/7 of the images, the paper's 96 of 224.
        global_area: Smallest share of an image's area that a global crop has, and the largest of a local one.
        colors: Whether each crop changes its colors: brightness, contrast, saturation, gray, blur and inversion of the
            light pixels, by the paper's probabilities.
        teacher_temperature: Temperature of the teacher, below the student's, 0.1. It grows to this value from 0.04.
        temperature_epochs: Epochs in which it grows.
        teacher_momentum: Share of itself that the teacher keeps in a step; it grows to 1 by a cosine.
        frozen_epochs: Epochs in which the last layer of the head is not trained.
    """

    extras = ("labels",)
    refuses = {
        "task.classes": "Pre-training has no classes.",
        "model.num_classes": "Pre-training has no classes: leave out model.num_classes.",
        **{name: f"{name} is for fine-tuning: pre-training takes none." for name in FINE},
    }
    tubes = False  # whether the same places are masked in all frames of a clip

    mask_ratio: float = only_with("reconstructs", number(0.75, low=0.01, below=1), MAE)
    decoder_width: int = only_with("reconstructs", number(512, low=8), MAE)
    decoder_depth: int = only_with("reconstructs", number(8, low=1), MAE)
    decoder_heads: int = only_with("reconstructs", number(16, low=1), MAE)
    normalize: bool = only_with("reconstructs", True, MAE)
    method: Literal["mae", "dino"] = only_with("distills", "mae")
    prototypes: int = only_with("distills", number(4096, low=2), DINO)
    head_width: int = only_with("distills", number(2048, low=1), DINO)
    local_crops: int = only_with("distills", number(8), DINO)
    local_size: int | tuple[int, int] | None = only_with("distills", number(None, low=1), DINO)
    global_area: float = only_with("distills", number(0.4, low=0.05, most=1), DINO)
    colors: bool = only_with("distills", True, DINO)
    teacher_temperature: float = only_with("distills", number(0.07, low=1e-3, below=0.1), DINO)
    temperature_epochs: float = only_with("distills", number(30.0), DINO)
    teacher_momentum: float = only_with("distills", number(0.996, below=1), DINO)
    frozen_epochs: float = only_with("distills", number(1.0), DINO)

    @property
    def distills(self):
        """Whether a student learns from a teacher."""
        return self.method == "dino"

    @property
    def reconstructs(self):
        """Whether masked patches are reconstructed."""
        return not self.distills

    @property
    def any_range(self):
        """Whether images may be numbers of any range: the crops of a student and its teacher change colors."""
        return self.reconstructs

    @property
    def rules(self):
        """The rules of the method: a `Masking` or a `Distilling`."""
        return METHODS[self.method](self)

    @property
    def compares(self):
        return self.rules.compares

    def check(self, recipe=None):
        super().check(recipe)
        self.rules.check(recipe)
        if recipe.model.get("pooling") == "none":
            raise ValueError("Pre-training needs one vector for each image. Received: model.pooling='none'")

    def on(self, source, arguments=None):
        return self.rules.on(arguments)

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to embeddings, `(batch, width)`."""
        model = self.vit(**{**arguments, "num_classes": 0})
        self.rules.check_model(model)  # what its weights say, no recipe does
        return model

    def learner(self, model, teacher=None):
        """Returns a `MaskedAutoencoder` or a `StudentTeacher` around the model."""
        return self.rules.learner(model)

    def compiled(self, source):
        return self.rules.compiled()

    def batch(self, examples, augment, seed):
        """Returns the inputs of the learner, and its targets.

        With `"mae"` the inputs are `"images"` and `"noise"`, float32 `(batch, patches or more)`, in [0, 1), and the
        targets the same images. With `"dino"` they are crops, see `StudentTeacher`, and the targets zeros.
        """
        return self.rules.batch(examples, augment, seed)

    def tally(self, keep=False):
        return EmbeddingTally()

    def callbacks(self, run):
        neighbors = Measured(run, EmbeddingTally, ("knn_accuracy",), EVERY, MEASURED)
        return [*([neighbors] if "labels" in run.validation.targets else []), *self.rules.callbacks(run)]

    def viewer(self, learner):
        """Returns the function from images, 0..255, to masked and reconstructed images, `(batch, 2, ...)`, 0..255."""
        return self.rules.viewer(learner)

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
