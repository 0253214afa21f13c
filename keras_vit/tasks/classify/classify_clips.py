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
    """One label for each clip. `model` is arguments of `keras_vit.video_vit`; options and scores are `Classify`'s.

    All frames of a clip get one crop, one flip and one change of colors. Leave `augment.flip` off where labels have a
    direction, such as left and right.

    Args:
        frames: Frames that the model takes.
        stride: Step from one to the next in a clip. In training the first is drawn, in evaluation they are from the
            middle; of a clip that is too short, the last frame is repeated.
        sampling: `"dense"`, or `"segments"` for one frame of each of as many equal parts of a clip, as for
            Something-Something; then `stride` must be 1.
        views: Parts of each video, evenly over its time, whose probabilities are averaged by `evaluate`, `report` and
            `predict`. Validation while training has the middle one.
        crops: 1, the center of the frames, or 3 along their longer side, averaged likewise; then `data.resize` must
            keep their shape.
    """

    measured = (*Classify.measured, "views", "crops")
    refuses = refusals.each(("task.distill", "task.teacher"), "ClassifyClips has no teacher.")

    views: int = number(1, low=1)
    crops: Literal[1, 3] = 1

    @property
    def clips(self):
        return dataclasses.replace(super().clips, views=self.views, crops=self.crops)

    @classmethod
    def of_clips(cls, model):
        """Returns the task of a model from a file: with its frames, and how its metadata say that they are sampled."""
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
        """Returns the logits of the mean probabilities of several views, `(batch, views, classes)`: as in VideoMAE."""
        return unbounded(self.loss or "softmax", self.probabilities(outputs).mean(axis=1))

    def batch(self, examples, augment, seed):
        from keras_vit.data.packing import folded_tensor, unfolded_tensor

        if augment is None or not (augment.mixup or augment.cutmix):
            return super().batch(examples, augment, seed)
        folded = {**examples, "images": folded_tensor(examples["images"])}  # one box for all frames
        images, labels = super().batch(folded, augment, seed)
        return unfolded_tensor(images, self.frames), labels
