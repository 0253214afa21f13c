"""Self-supervised pre-training on clips: masked autoencoders of tubelets."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from keras_vit.tasks.clip_task import ClipTask
from keras_vit.tasks.pretrain.encoder import SHARE_OF_TUBES
from keras_vit.tasks.pretrain.pretrain import Pretrain
from keras_vit.utils.checked import number, only_with


@dataclass(frozen=True, repr=False)
class PretrainClips(ClipTask, Pretrain):
    """Self-supervised pre-training on clips: a place is masked at all time steps or none; see `MaskedAutoencoder`.

    Tong et al. 2022 (arXiv:2203.12602). `model` of the recipe has arguments of `keras_vit.video_vit`, with one encoder
    over space and time. The saved model takes clips, `(batch, frames, height, width, channels)`, 0..255, and returns
    embeddings, `(batch, width)`. Options and scores are the same as in `Pretrain`.

    Args:
        frames: As in `ClassifyClips`.
        stride: As in `ClassifyClips`.
        sampling: As in `ClassifyClips`.
        mask_ratio: Share of masked places.
    """

    tubes = True

    mask_ratio: float = number(SHARE_OF_TUBES, low=0.01, below=1)
    method: Literal["mae"] = only_with("distills", "mae")

    def model(self, **arguments):
        """Builds the model from clips, as in the class docstring, to embeddings, `(batch, width)`."""
        return super().model(**{**arguments, "num_classes": 0})

    def shows(self, output):
        """Returns a description of `picture`, from `(width,)` or `(2, frames, height, width, channels)`."""
        caption = self.caption(output, {})
        return f"{ClipTask.shows(self, output)}{f', from top to bottom: {caption}' if caption else ''}"

    def caption(self, output, example):
        """Returns the names of the three rows if `output` is `(2, frames, height, width, channels)`; else `""`."""
        return "clip, masked, reconstruction" if np.ndim(output) == 5 else ""

    def picture(self, image, output, example=None):
        """Returns frames of the clip, and below them masked and reconstructed frames, uint8 `(rows, columns, 3)`.

        Args:
            image: The clip, float32 `(frames, height, width, channels)`, 0..255.
            output: Masked and reconstructed clip, `(2, frames, height, width, channels)`, 0..255; or an embedding,
                `(width,)`, of which nothing is drawn.
            example: Not used.
        """
        from keras_vit.plots.canvas import side_by_side

        views = [image, *output] if np.ndim(output) == 5 else [image]
        return side_by_side([super(PretrainClips, self).picture(one, output) for one in views], axis=0)
