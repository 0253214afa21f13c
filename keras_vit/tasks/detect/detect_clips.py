"""Detection in clips: a box and an action for every object in the middle frame."""

from dataclasses import dataclass

from keras_vit.preparing.clip_preparation import frames_rule
from keras_vit.tasks.clip_task import ClipTask
from keras_vit.tasks.dense import middle_of
from keras_vit.tasks.detect.detect import HEADS, Detect
from keras_vit.utils import checks

FLIPPED = (
    "A flip turns left into right: DetectClips flips clips by task.mirrored, which says what each class becomes, {} if "
    "none changes."
)


@dataclass(frozen=True, repr=False)
class DetectClips(ClipTask, Detect):
    """A box and a class for every object in the middle frame of a clip: the class is what it does, such as an action.

    What `Detect` is for images, with a Vision Transformer over space and time, as in Girdhar et al. 2019
    (arXiv:1812.02707, "Video Action Transformer Network"): boxes are of the middle frame, and what is seen there is
    recognized by the frames around it. The tokens of the middle time step, which attended to those of all others, are
    the map of the head. `model` of the recipe has arguments of `keras_vit.video_vit`, without `time_depth`. The model
    takes clips, `(batch, frames, height, width, channels)`, 0..255, and returns boxes and scores, `(batch, most, 4 +
    classes)`. Other options and scores are the same as in `Detect`.

    Args:
        frames: Number of frames that the model takes: they are around the middle frame of a clip, number `count // 2`
            of `count`, or of a file the one seen at half of its duration, in training too. Of a clip that is too short,
            its first and its last frame are repeated.
        stride: Step from one frame to the next.
        sampling: Always `"dense"`: segments of a clip have no middle frame.
        head: `"points"` or `"decoder"`, or a dictionary with its options, as in `Detect`.
        mirrored: If given, every other clip is flipped in training, at random, and its boxes with it. A dictionary from
            names of classes to what they are in a mirror, such as `{"left": "right"}`, which holds in both directions;
            `{}` if none changes.
    """

    refuses = {
        "augment.flip": FLIPPED,
        "task.tiles": "Clips are not predicted in tiles.",
        "model.time_depth": "Boxes are found in the tokens of each place: DetectClips has no temporal encoder.",
    }
    heads = {name: HEADS[name] for name in ("points", "decoder")}

    mirrored: dict[str, str] | None = None

    @property
    def clips(self):
        """The sampling of frames around the middle one, a `data.clip_source.Sampling`."""
        from keras_vit.data.clip_source import Sampling

        return Sampling(self.frames, self.stride, centered=True)

    @classmethod
    def from_checkpoint(cls, source, **arguments):
        """Raises ValueError: no published detector of clips is read."""
        raise ValueError(
            "No published weights of a detector of clips are read: start from those of an encoder, model.weights. "
            f"Received: {checks.shown(source)}"
        )

    @classmethod
    def of_clips(cls, model):
        """Returns the task for a model from a file, by its shapes and its metadata."""
        stride = frames_rule(model)["stride"]
        return cls(frames=model.input_shape[1], stride=stride, most=model.output_shape[1])

    def __post_init__(self):
        super().__post_init__()
        if self.sampling != "dense":
            raise ValueError(
                "DetectClips.sampling must be 'dense': boxes are of the middle frame, and segments have none. "
                f"Received: sampling={self.sampling!r}"
            )
        if any(self._pairs[other] != name for name, other in self._pairs.items()):
            raise ValueError(
                "DetectClips.mirrored must give each class one that it becomes in a mirror, and that becomes it. "
                f"Received: {checks.shown(self.mirrored)}"
            )

    def check(self, recipe=None):
        super().check(recipe)
        unknown = [name for name in self._pairs if self.classes and name not in self.classes]
        if unknown:
            raise ValueError(
                f"DetectClips.mirrored must name classes, {checks.shown(self.classes)}. Received: {unknown[0]!r}"
            )
        if recipe and self.mirrored is not None and recipe.data.resize == "pad":
            mirrored = checks.shown(self.mirrored)
            raise ValueError(
                f"Clips that are padded are not flipped. Received: data.resize='pad' with mirrored={mirrored}"
            )

    def model(self, **arguments):
        """Builds the model from clips, as in the class docstring, to boxes and scores, `(batch, most, 4 + classes)`."""
        return Detect.model(self, **arguments)

    def batch(self, examples, augment, seed):
        """Returns clips, float32 `(batch, frames, height, width, channels)`, 0..255, and boxes as in `Detect`."""
        clips, boxes = super().batch(examples, augment, seed)
        if augment is None or self.mirrored is None:
            return clips, boxes
        from keras_vit.data.augment.mirrored import mirrored

        names = self.classes
        partners = [names.index(self._pairs.get(name, name)) for name in names]
        return mirrored(clips, boxes, partners, seed)

    def shows(self, output):
        """Returns text such as `"the middle one of 16 frames"`; `output` is not used."""
        return f"the middle one of {self.frames} frames"

    def picture(self, image, output, example=None):
        """Returns the middle frame of a clip with predicted boxes, and next to it with true boxes; see `Detect`.

        Args:
            image: The clip, float32 `(frames, height, width, channels)`, 0..255.
            output: The model's output for the clip, `(most, 4 + classes)`.
            example: Dictionary with `"bounding_boxes"`, float32 `(most, 5)`, or `None`.
        """
        return Detect.picture(self, image[middle_of(len(image))], output, example)

    @property
    def _pairs(self):
        """What some classes are in a mirror, by their names, in both directions."""
        pairs = self.mirrored or {}
        return {**{other: name for name, other in pairs.items()}, **pairs}
