"""The common part of tasks on clips: how frames are sampled and made into batches."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from keras_vit.models import video
from keras_vit.models.inputs import CLIPS, image_shape
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.images import colored

MODEL = tuple(name for name in video.ARGUMENTS if name not in ("frames", "metadata"))
SHOWN = 4  # frames in a picture


def averaged_views(task):
    """Returns the number of views per clip over which a task averages its predictions: 1 without clips."""
    return 1 if task.clips is None else task.clips.count


@dataclass(frozen=True, repr=False)
class ClipTask:
    """Base class of a task on clips, listed before the task on images. `model` has arguments of `keras_vit.video_vit`.

    Args:
        frames: Number of frames that the model takes.
        stride: Step from one frame to the next in a clip. In training the first frame is drawn at random, in evaluation
            the frames are from the middle. If a clip is too short, its last frame is repeated.
        sampling: `"dense"`, or `"segments"`: one frame from each of `frames` equal parts of the clip, as for
            Something-Something; then `stride` must be 1.
    """

    arguments: ClassVar[tuple[str, ...]] = video.ARGUMENTS
    any_range: ClassVar[bool] = False
    refuses: ClassVar[dict[str, str]] = {
        name: f"{name} is for images, not for clips." for name in ("augment.randaugment", "augment.layers")
    }

    frames: int = number(16, low=1)
    stride: int = number(1, low=1)
    sampling: Literal["dense", "segments"] = "dense"

    @property
    def clips(self):
        """The sampling of frames, a `data.clip_source.Sampling`."""
        from keras_vit.data.clip_source import Sampling

        return Sampling(self.frames, self.stride, self.sampling == "segments")

    def check(self, recipe=None):
        super().check(recipe)
        if self.sampling == "segments" and self.stride > 1:
            raise ValueError(f"Segments divide a whole clip: stride must be 1. Received: task.stride={self.stride}")
        if recipe is None:
            return
        if "frames" in recipe.model:
            raise ValueError(f"The frames are task.frames. Received: model.frames={recipe.model['frames']!r}")
        checks.options("model", recipe.model, (*MODEL, "weights", "head"))

    def data_shape(self, shape):
        """Returns `(height, width, frames * channels)` from the model's `(frames, height, width, channels)`."""
        *_, height, width, channels = shape
        return height, width, self.frames * channels

    def model(self, **arguments):
        """Builds the model from clips, `(batch, frames, height, width, channels)`, 0..255, to one tensor."""
        return self.vit(**arguments)

    def vit(self, *, weights=None, **arguments):
        """Builds the Vision Transformer of clips that a recipe's `model` describes; see `Task.vit`."""
        about = {"frames": self.clips.rule}
        if weights is not None:
            return started(weights, self.frames, about, arguments)
        return video.video_vit(frames=self.frames, metadata=about, **arguments)

    def prepare(self, examples, seed):
        """Makes clips, `(batch, frames, height, width, channels)`, of images with frames in their channels."""
        from keras_vit.data.packing import unfolded_tensor

        examples = super().prepare(examples, seed)
        return {**examples, "images": unfolded_tensor(examples["images"], self.frames)}

    def shows(self, output):
        """Returns text such as `"4 of 16 frames"`; `output` is not used."""
        return f"{min(self.frames, SHOWN)} of {self.frames} frames"

    def picture(self, image, output, example=None):
        """Returns at most four frames of a clip side by side, with white between, uint8 `(rows, columns, 3)`.

        Args:
            image: The clip, float32 `(frames, height, width, channels)`, 0..255.
            output: Not used.
            example: Not used.
        """
        from keras_vit.plots.canvas import side_by_side

        places = np.linspace(0, len(image) - 1, min(len(image), SHOWN)).round().astype(int)
        return side_by_side([np.clip(np.rint(colored(one)), 0, 255).astype("uint8") for one in image[places]])


def check_frames(task, model):
    """Returns a model of clips and texts; raises ValueError unless it takes as many frames as the task samples."""
    shape = image_shape(model)
    if len(shape) != CLIPS - 1 or shape[0] != task.frames:
        received = f"{shape[0]} frames" if len(shape) == CLIPS - 1 else "a model of images"
        raise ValueError(
            f"task.start must be a model of clips of {task.frames} frames. Received: {task.start!r}, {received}"
        )
    return model


def started(weights, frames, metadata, arguments):
    """Returns the model that a recipe on clips starts from: a model of clips, or an `inflated` model of images.

    Args:
        weights: A source of `from_pretrained`.
        frames: Number of frames of a clip.
        metadata: Metadata of the model, a dictionary.
        arguments: Arguments of `from_pretrained`; with weights of an image model, of `inflated` too.

    Returns:
        Model on clips, `(batch, frames, height, width, channels)`, 0..255.
    """
    from keras_vit.checkpoints.arguments import arguments_of
    from keras_vit.checkpoints.inflation import inflated
    from keras_vit.checkpoints.pretrained import from_pretrained

    none = ("variant", "name", "representation_size")  # the last one no model of clips has
    options = {name: value for name, value in arguments.items() if name not in none}
    own = {name: options.pop(name) for name in ("tubelet", "time_depth") if name in options}
    options |= {"metadata": metadata, "part": "image"}
    model = from_pretrained(weights, **options)
    if len(model.input_shape) == 4:
        clips = inflated(model, frames=frames, metadata=metadata, **own)
    else:
        wrong = {name: value for name, value in own.items() if arguments_of(model, words=True)[name] != value}
        if wrong:
            raise ValueError(f"`weights` must be of such a model. Received: weights={str(weights)!r} and {wrong}")
        clips = model if model.input_shape[1] == frames else None
    if clips is None:
        clips = from_pretrained(weights, frames=frames, **options)
    return clips
