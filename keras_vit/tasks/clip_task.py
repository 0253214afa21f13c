"""What tasks of clips have in common: how frames are sampled, and batches of them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from keras_vit.models import video
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.images import colored

MODEL = tuple(name for name in video.ARGUMENTS if name not in ("frames", "metadata"))
SHOWN = 4  # frames in a picture


def averaged_views(task):
    """Returns the number of views per input over which a task averages its predictions: 1 without clips."""
    return 1 if task.clips is None else task.clips.count


@dataclass(frozen=True, repr=False)
class ClipTask:
    """A part of a task, before its class of images. `model` is arguments of `keras_vit.video_vit`.

    Args:
        frames: Frames that the model takes.
        stride: Step from one to the next in a clip. In training the first is drawn, in evaluation they are from the
            middle; of a clip that is too short, the last frame is repeated.
        sampling: `"dense"`, or `"segments"` for one frame of each of as many equal parts of a clip, as for
            Something-Something; then `stride` must be 1.
    """

    arguments: ClassVar[tuple[str, ...]] = video.ARGUMENTS
    refuses: ClassVar[dict[str, str]] = {
        name: f"{name} is for images, not for clips." for name in ("augment.randaugment", "augment.layers")
    }

    frames: int = number(16, low=1)
    stride: int = number(1, low=1)
    sampling: Literal["dense", "segments"] = "dense"

    @property
    def clips(self):
        from keras_vit.data.clip_source import Sampling

        return Sampling(self.frames, self.stride, self.sampling == "segments")

    def check(self, recipe):
        super().check(recipe)
        if self.sampling == "segments" and self.stride > 1:
            raise ValueError(f"Segments divide a whole clip: stride must be 1. Received: task.stride={self.stride}")
        if "frames" in recipe.model:
            raise ValueError(f"The frames are task.frames. Received: model.frames={recipe.model['frames']!r}")
        checks.options("model", recipe.model, (*MODEL, "weights", "head"))

    def data_shape(self, shape):
        *_, height, width, channels = shape
        return height, width, self.frames * channels

    def model(self, *, weights=None, **arguments):
        about = {"frames": {"stride": self.stride, "segments": self.sampling == "segments"}}
        if weights is not None:
            return started(weights, self.frames, about, arguments)
        return video.video_vit(frames=self.frames, metadata=about, **arguments)

    def prepare(self, examples, seed):
        from keras_vit.data.packing import unfolded_tensor

        return {**examples, "images": unfolded_tensor(examples["images"], self.frames)}

    def shows(self, output):
        return f"{min(self.frames, SHOWN)} of {self.frames} frames"

    def picture(self, image, output, example=None):
        """Returns the frames of a clip side by side, four at most, with white between."""
        from keras_vit.plots.canvas import side_by_side

        places = np.linspace(0, len(image) - 1, min(len(image), SHOWN)).round().astype(int)
        return side_by_side([np.clip(np.rint(colored(one)), 0, 255).astype("uint8") for one in image[places]])


def started(weights, frames, metadata, arguments):
    """Returns the model that a recipe of clips starts from: a trained one of clips, or of images, `inflated`.

    Args:
        weights: What `from_pretrained` takes.
        frames: Frames of a clip.
        metadata: Of the model.
        arguments: Of `from_pretrained`, and of `inflated` where the weights are of images.
    """
    from keras_vit.checkpoints.arguments import arguments_of
    from keras_vit.checkpoints.inflation import inflated
    from keras_vit.checkpoints.pretrained import from_pretrained

    options = {name: value for name, value in arguments.items() if name not in ("variant", "name")}
    own = {name: options.pop(name) for name in ("tubelet", "time_depth") if name in options}
    model = from_pretrained(weights, metadata=metadata, **options)
    if len(model.input_shape) == 4:
        clips = inflated(model, frames=frames, metadata=metadata, **own)
    else:
        wrong = {name: value for name, value in own.items() if arguments_of(model, words=True)[name] != value}
        if wrong:
            raise ValueError(f"`weights` must be of such a model. Received: weights={str(weights)!r} and {wrong}")
        clips = model if model.input_shape[1] == frames else None
    if clips is None:
        clips = from_pretrained(weights, frames=frames, metadata=metadata, **options)
    return clips
