"""Contrastive training of a tower of clips and a text tower."""

from dataclasses import dataclass

from keras_vit.models.by_frames import by_frames
from keras_vit.models.inputs import IMAGES, image_shape, metadata_of
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
        start: Trained towers to start from, as in `Contrast`: a run of `ContrastClips` with as many frames; or towers
            of images, such as published CLIP, which then see each frame alone, as `by_frames` has it (CLIP4Clip).
    """

    def model(self, **arguments):
        """Builds the model from clips and ids, as in the class docstring, to pairs, `(batch, 2, width)` or wider."""
        model = Contrast.model(self, **arguments)
        if len(image_shape(model)) == IMAGES - 1:
            model = by_frames(model, self.frames)
            metadata_of(model)["frames"] = {"stride": self.stride, "segments": self.sampling == "segments"}
        return check_frames(self, model)
