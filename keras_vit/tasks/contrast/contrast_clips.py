"""Contrastive training of a tower of clips and a text tower."""

from dataclasses import dataclass

from keras_vit.tasks.clip_task import ClipTask, check_frames
from keras_vit.tasks.contrast.contrast import Contrast


@dataclass(frozen=True, repr=False)
class ContrastClips(ClipTask, Contrast):
    """Clips and texts in one embedding space: a tower of clips and a text tower, trained on pairs.

    What `Contrast` is for images, with a Vision Transformer over space and time, as in Xu et al. 2021
    (arXiv:2109.14084, VideoCLIP). `model` of the recipe has arguments of `keras_vit.video_vit`. The saved model takes a
    dictionary: `"images"`, clips, `(batch, frames, height, width, channels)`, 0..255, and `"texts"`, int32 ids,
    `(batch, length)`. Options and scores are the same as in `Contrast`. Leave `augment.flip` off if texts say left and
    right.

    Args:
        frames: As in `ClassifyClips`.
        stride: As in `ClassifyClips`.
        sampling: As in `ClassifyClips`.
        start: Trained towers to start from: a run of `ContrastClips` with as many frames.
    """

    def model(self, **arguments):
        """Builds the model from clips and ids, as in the class docstring, to pairs, `(batch, 2, width)` or wider."""
        return check_frames(self, Contrast.model(self, **arguments))
