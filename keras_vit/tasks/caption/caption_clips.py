"""Captioning of clips, word by word."""

from dataclasses import dataclass

from keras_vit.tasks.caption.caption import Caption
from keras_vit.tasks.clip_task import ClipTask, check_frames


@dataclass(frozen=True, repr=False)
class CaptionClips(ClipTask, Caption):
    """Captioning of clips: an encoder over space and time, and a decoder that writes word by word.

    What `Caption` is for images. Sun et al. 2019 (arXiv:1904.01766, VideoBERT) write captions of features that were
    trained with words before; here encoder and decoder are trained at once. `model` of the recipe has arguments of
    `keras_vit.video_vit`, without `time_depth`: the decoder attends to all tubelets. The model takes a dictionary:
    `"images"`, clips, `(batch, frames, height, width, channels)`, 0..255, and `"texts"`, int32 ids, `(batch, words)`.
    Options and scores are the same as in `Caption`.

    Args:
        frames: As in `ClassifyClips`.
        stride: As in `ClassifyClips`.
        sampling: As in `ClassifyClips`.
        start: A model that writes about clips, to train further: a run of `CaptionClips` with as many frames.
    """

    def model(self, **arguments):
        """Builds the model from clips and ids to logits, `(batch, words, vocabulary)`."""
        return check_frames(self, Caption.model(self, **arguments))
