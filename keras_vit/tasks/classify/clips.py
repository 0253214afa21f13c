"""Classification of clips: one label for several frames."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from keras_vit.models import video
from keras_vit.models.clip_preparation import frames_rule
from keras_vit.tasks.classify.classify import Classify
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.images import colored

MODEL = tuple(name for name in video.ARGUMENTS if name not in ("frames", "metadata"))
OF_IMAGES = ("distill", "teacher")  # options of `Classify` for models of images


@dataclass(frozen=True, repr=False)
class ClassifyClips(Classify):
    """One label for each clip. `model` is arguments of `keras_vit.video_vit`; options and scores are `Classify`'s.

    All frames of a clip get one crop, one flip and one change of colors. Leave `augment.flip` off where labels have a
    direction, such as left and right.

    Args:
        frames: Frames that the model takes.
        stride: Step from one to the next in a clip. In training the first is drawn, in evaluation they are from the
            middle; of a clip that is too short, the last frame is repeated.
        sampling: `"dense"`, or `"segments"` for one frame of each of as many equal parts of a clip, as for
            Something-Something; then `stride` must be 1.
    """

    draws = True
    arguments = (*MODEL, "weights", "head")

    frames: int = number(16, low=1)
    stride: int = number(1, low=1)
    sampling: Literal["dense", "segments"] = "dense"

    @classmethod
    def of_clips(cls, model):
        """Returns the task of a model from a file: with its frames, and how its metadata say that they are sampled."""
        rule = frames_rule(model)
        sampling = "segments" if rule["segments"] else "dense"
        return cls(frames=model.input_shape[1], stride=rule["stride"], sampling=sampling)

    @property
    def clips(self):
        from keras_vit.data.clips import Sampling

        return Sampling(self.frames, self.stride, self.sampling == "segments")

    def check(self, recipe):
        super().check(recipe)
        for name in OF_IMAGES:
            if getattr(self, name):
                raise ValueError(f"ClassifyClips has no teacher. Received: task.{name}={getattr(self, name)!r}")
        if self.sampling == "segments" and self.stride > 1:
            raise ValueError(f"Segments divide a whole clip: stride must be 1. Received: task.stride={self.stride}")
        if "frames" in recipe.model:
            raise ValueError(f"The frames are task.frames. Received: model.frames={recipe.model['frames']!r}")
        checks.options("model", recipe.model, self.arguments)
        for part, name in (("augment", "randaugment"), ("augment", "layers"), ("optim", "image_sizes")):
            value = getattr(getattr(recipe, part), name)
            if value:
                raise ValueError(f"{part}.{name} is for images, not for clips. Received: {part}.{name}={value!r}")

    def data_shape(self, shape):
        *_, height, width, channels = shape
        return height, width, self.frames * channels

    def model(self, *, weights=None, **arguments):
        about = {"frames": {"stride": self.stride, "segments": self.sampling == "segments"}}
        if weights is not None:
            from keras_vit.checkpoints.clips import started

            return started(weights, self.frames, about, arguments)
        return video.video_vit(frames=self.frames, metadata=about, **arguments)

    def prepare(self, examples, seed):
        from keras_vit.data.packing import unfolded_tensor

        return {**examples, "images": unfolded_tensor(examples["images"], self.frames)}

    def batch(self, examples, augment, seed):
        from keras_vit.data.packing import folded_tensor, unfolded_tensor

        if augment is None or not (augment.mixup or augment.cutmix):
            return super().batch(examples, augment, seed)
        folded = {**examples, "images": folded_tensor(examples["images"])}  # one box for all frames
        images, labels = super().batch(folded, augment, seed)
        return unfolded_tensor(images, self.frames), labels

    def picture(self, image, output, example=None):
        """Returns the frames of a clip side by side, four at most."""
        shown = np.linspace(0, len(image) - 1, min(len(image), SHOWN)).round().astype(int)
        return np.clip(np.rint(colored(np.concatenate([*image[shown]], axis=1))), 0, 255).astype("uint8")


SHOWN = 4  # frames in a picture
