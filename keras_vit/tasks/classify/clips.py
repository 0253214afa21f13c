"""Classification of clips: one label for several frames."""

from dataclasses import dataclass

from keras_vit.models.clip_preparation import frames_rule
from keras_vit.tasks.classify.classify import Classify
from keras_vit.tasks.of_clips import OfClips

OF_IMAGES = ("distill", "teacher")  # options of `Classify` for models of images


@dataclass(frozen=True, repr=False)
class ClassifyClips(OfClips, Classify):
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

    @classmethod
    def of_clips(cls, model):
        """Returns the task of a model from a file: with its frames, and how its metadata say that they are sampled."""
        rule = frames_rule(model)
        sampling = "segments" if rule["segments"] else "dense"
        return cls(frames=model.input_shape[1], stride=rule["stride"], sampling=sampling)

    def check(self, recipe):
        super().check(recipe)
        for name in OF_IMAGES:
            if getattr(self, name):
                raise ValueError(f"ClassifyClips has no teacher. Received: task.{name}={getattr(self, name)!r}")

    def batch(self, examples, augment, seed):
        from keras_vit.data.packing import folded_tensor, unfolded_tensor

        if augment is None or not (augment.mixup or augment.cutmix):
            return super().batch(examples, augment, seed)
        folded = {**examples, "images": folded_tensor(examples["images"])}  # one box for all frames
        images, labels = super().batch(folded, augment, seed)
        return unfolded_tensor(images, self.frames), labels
