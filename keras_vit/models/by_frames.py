"""Models of clips that see each frame alone, by a model of images."""

import keras

from keras_vit.layers import FrameMean, Frames
from keras_vit.layers.functional import Model
from keras_vit.models.backbone import TOWERS, has_towers, outputs_of
from keras_vit.models.inputs import CLIPS, IMAGES
from keras_vit.models.two_towers import two_towers
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.typed import Positive, typed

FRAMES = 12  # as in CLIP4Clip
MEAN = "frame_mean"  # name of the last layer


@typed
def by_frames(model: keras.Model, frames: Positive = FRAMES) -> keras.Model:
    """Builds a model of clips from one of images: a clip's vector is the mean of its frames' vectors.

    Luo et al. 2021 (CLIP4Clip, arXiv:2104.08860), section 3.3, mean pooling: each frame's vector has length 1 before.
    It needs no training. The order of the frames does not matter, so nothing is known of motion. Of a clip file, a
    frame from the middle of each of as many equal parts is taken. The model shares its layers and weights with
    the one that is passed.

    Args:
        model: A model from images to vectors; or one with an image tower and a text tower, such as CLIP from
            `from_pretrained(..., part="both")`.
        frames: Number of frames of a clip. Defaults to `12`.

    Returns:
        A functional `keras.Model` from clips, `(batch, frames, height, width, channels)`, to vectors, `(batch, width)`,
        float32. Of two towers, a model as from `two_towers` with such a tower of clips.

    Raises:
        ValueError: For a model of other inputs or outputs.

    Example:

    >>> images = keras_vit.vit("Ti/16", num_classes=64)
    >>> by_frames(images, frames=8).input_shape
    (None, 8, 224, 224, 3)
    """
    checks.model(model)
    if has_towers(model):
        image, text, similarity = map(model.get_layer, TOWERS)
        scale, bias = (getattr(similarity, name, None) for name in ("logit_scale", "logit_bias"))
        numbers = [None if each is None else float(keras.ops.convert_to_numpy(each)) for each in (scale, bias)]
        return two_towers(by_frames(image, frames), text, scale=numbers[0], bias=numbers[1], pairs=similarity.pairs)
    shapes = [tuple(x.shape) for x in (*(getattr(model, "inputs", None) or ()), *outputs_of(model))]
    if [*map(len, shapes)] != [IMAGES, 2] or None in shapes[0][1:]:
        received = "a model of clips" if shapes and len(shapes[0]) == CLIPS else f"shapes {shapes}"
        raise ValueError(
            "`model` must be a functional Keras model from images of known size to vectors, (batch, width), or have an "
            f"image tower and a text tower. Received: {model.name!r}, {received}"
        )
    clips = keras.Input((frames, *shapes[0][1:]), dtype=model.inputs[0].dtype, name="clips")
    x = Frames(frames, name="frames")(clips)
    x = model(Frames(frames, apart=True, name="apart")(x))  # (batch * frames, width)
    return Model(clips, FrameMean(frames, name=MEAN)(x), name=f"{model.name}_by_frames")


def is_by_frames(model):
    """Returns whether a model of clips sees each frame alone, as from `by_frames`."""
    return any(isinstance(layer, FrameMean) for layer in sublayers(model))
