"""Pre-training on clips without labels: masked autoencoders of tubelets."""

from dataclasses import dataclass

import numpy as np

from keras_vit.tasks.clip_task import ClipTask
from keras_vit.tasks.pretrain.encoder import SHARE_OF_TUBES
from keras_vit.tasks.pretrain.pretrain import Pretrain
from keras_vit.utils.checked import number


@dataclass(frozen=True, repr=False)
class PretrainClips(ClipTask, Pretrain):
    """Pre-training on clips without labels: places are masked at every time or never; see `MaskedAutoencoder`.

    Tong et al. 2022 (arXiv:2203.12602). `model` is arguments of `keras_vit.video_vit`, of one encoder of space and
    time. The model that is kept returns the embedding of a clip. Options and scores are `Pretrain`'s.

    Args:
        frames: As in `ClassifyClips`.
        stride: As in `ClassifyClips`.
        sampling: As in `ClassifyClips`.
        mask_ratio: Share of the places that are masked.
    """

    tubes = True

    mask_ratio: float = number(SHARE_OF_TUBES, low=0.01, below=1)

    def model(self, **arguments):
        return super().model(**{**arguments, "num_classes": 0})

    def shows(self, output):
        caption = self.caption(output, {})
        return f"{ClipTask.shows(self, output)}{f', from top to bottom: {caption}' if caption else ''}"

    def caption(self, output, example):
        return "clip, masked, reconstruction" if np.ndim(output) == 5 else ""

    def picture(self, image, output, example=None):
        """Returns frames of the clip; below them the masked ones and their reconstruction, if `reconstruct` gave them.

        Args:
            image: float32 `(frames, height, width, channels)`, 0..255.
            output: The embedding, or `(2, frames, height, width, channels)`: the clip masked and reconstructed.
            example: Ignored.
        """
        from keras_vit.plots.canvas import side_by_side

        views = [image, *output] if np.ndim(output) == 5 else [image]
        return side_by_side([super(PretrainClips, self).picture(one, output) for one in views], axis=0)
