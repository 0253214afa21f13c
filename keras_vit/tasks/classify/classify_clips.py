"""Classification of clips: one label for several frames."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from keras_vit.models.outputs import unbounded
from keras_vit.preparing.clip_preparation import frames_rule
from keras_vit.tasks import refusals
from keras_vit.tasks.classify.classify import Classify
from keras_vit.tasks.clip_task import ClipTask
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.sampling import check_crops


@dataclass(frozen=True, repr=False)
class ClassifyClips(ClipTask, Classify):
    """One label for each clip. Options and scores are the same as in `Classify`.

    `model` of the recipe has arguments of `keras_vit.video_vit`. The model takes clips, `(batch, frames, height, width,
    channels)`, 0..255, and returns logits, `(batch, classes)`. All frames of a clip get the same crop, flip and change
    of colors. Leave `augment.flip` off if labels have a direction, such as left and right.

    Args:
        frames: Number of frames that the model takes.
        stride: Step from one frame to the next in a clip. In training the first frame is drawn at random, in evaluation
            the frames are from the middle. If a clip is too short, its last frame is repeated.
        sampling: `"dense"`, or `"segments"`: one frame from each of `frames` equal parts of the clip, as for
            Something-Something; then `stride` must be 1.
        views: Number of views of each video, evenly over its time. `evaluate`, `report` and `predict` average their
            probabilities. Validation during training uses the middle view.
        crops: 1 for the center of the frames, or 3 crops along the longer side, whose probabilities are averaged too;
            then `data.resize` must keep the aspect ratio.
    """

    measured = (*Classify.measured, "views", "crops")
    refuses = refusals.each(("task.distill", "task.teacher"), "ClassifyClips has no teacher.")

    views: int = number(1, low=1)
    crops: Literal[1, 3] = 1

    @property
    def clips(self):
        """The sampling of frames, views and crops, a `data.clip_source.Sampling`."""
        return dataclasses.replace(super().clips, views=self.views, crops=self.crops)

    @classmethod
    def of_clips(cls, model):
        """Returns the task for a model from a file: its input shape and metadata determine how frames are sampled."""
        rule = frames_rule(model)
        sampling = "segments" if rule["segments"] else "dense"
        return cls(frames=model.input_shape[1], stride=rule["stride"], sampling=sampling)

    def __post_init__(self):
        super().__post_init__()
        if self.multilabel:
            raise ValueError("A clip has one label. Received: ClassifyClips with multilabel=True")

    def check(self, recipe):
        super().check(recipe)
        size = recipe.model.get("image_size")
        check_crops(self.crops, recipe.data.resize, size and tuple(checks.pair("model.image_size", size)))

    def averaged(self, outputs):
        """Averages the probabilities of several views, as in VideoMAE.

        Args:
            outputs: Logits, `(batch, views, classes)`.

        Returns:
            Logits of the mean probabilities, float64 `(batch, classes)`.
        """
        return unbounded(self.loss or "softmax", self.probabilities(outputs).mean(axis=1))

    def batch(self, examples, augment, seed):
        """Returns clips, float32 `(batch, frames, height, width, channels)`, 0..255, and labels, `(batch, classes)`."""
        from keras_vit.data.packing import folded_tensor, unfolded_tensor

        if augment is None or not (augment.mixup or augment.cutmix):
            return super().batch(examples, augment, seed)
        folded = {**examples, "images": folded_tensor(examples["images"])}  # one box for all frames
        images, labels = super().batch(folded, augment, seed)
        return unfolded_tensor(images, self.frames), labels
