"""Models of clips that start from trained models of images."""

import keras
import numpy as np

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.inputs import POSITION, PROJECTION
from keras_vit.models.backbone import check_plain, variables_of
from keras_vit.models.options import unusual
from keras_vit.models.video import ARGUMENTS, video_vit
from keras_vit.utils import checks

KERNELS = ("central", "uniform")


def inflated(
    model: keras.Model,
    *,
    frames: int = 16,
    tubelet: int = 2,
    kernel: str = "central",
    time_depth: int = 0,
    num_classes: int | None = None,
    metadata: dict | None = None,
) -> keras.Model:
    """Builds a model of clips that starts from a trained model of images.

    Arnab et al. 2021 (arXiv:2103.15691), section 3.4. Positions are repeated for each time step. With central frames, a
    clip of one frame that is repeated gives the same tokens before the first block as the image does, at each step.

    Args:
        model: A model from `keras_vit.vit` or `keras_vit.from_checkpoint`, with learned positions or none, and without
            a stem.
        frames: As in `video_vit`. Defaults to `16`.
        tubelet: As in `video_vit`. Defaults to `2`.
        kernel: `"central"`: of a tubelet only the frame at index `tubelet // 2` is seen at first; `"uniform"`: the mean
            of all its frames. Defaults to `"central"`.
        time_depth: As in `video_vit`; these blocks are new, and the paper's model 2. Defaults to `0`.
        num_classes: As in `video_vit`: the head is new, of zeros. `None` keeps the model's. Defaults to `None`.
        metadata: Dictionary to add to the model's metadata. Defaults to `None`.

    Returns:
        A model as from `keras_vit.video_vit`.

    Raises:
        ValueError: For a model of another kind, or another kernel.

    Example:

    >>> images = keras_vit.vit("Ti/8", image_size=32, num_classes=10)
    >>> inflated(images, frames=8).input_shape
    (None, 8, 32, 32, 3)
    """
    checks.model(model)
    checks.one_of("kernel", kernel, KERNELS)
    if not isinstance(metadata, (dict, type(None))):
        raise ValueError(f"`metadata` must be a dictionary. Received: metadata={checks.shown(metadata)}")
    checks.whole(time_depth=time_depth)
    check_plain(model, "A model of clips from one of images", lora=False)
    arguments = arguments_of(model)
    _check(model, arguments)
    own, about = variables_of(model), model.get_layer("rescale").metadata
    same_head = num_classes is None and not time_depth
    classes = arguments["num_classes"] if num_classes is None else num_classes
    labels = {} if same_head else {"labels": None}
    notes = {name: value for name, value in {**about, **labels, **(metadata or {})}.items() if value is not None}
    options = {name: arguments[name] for name in ARGUMENTS if name in arguments} | {"num_classes": classes}
    clips = video_vit(None, frames=frames, tubelet=tubelet, time_depth=time_depth, metadata=notes, **options)
    for path, variable in variables_of(clips).items():
        if path in own and not (path.startswith("head/") and not same_head):
            value = keras.ops.convert_to_numpy(own[path])
            variable.assign(CONVERSIONS.get(path, lambda value, *_: value)(value, clips, kernel))
    return clips


def _check(model, arguments):
    """Raises ValueError for what a model of clips does not have."""
    tokens, block = arguments["tokens"], arguments["block"]
    other = {
        "stem": arguments["stem"] is not None,
        "rotary": arguments["rotary"] is not None,
        "pre_logits": arguments["representation_size"] is not None,
        f"position={arguments['position']!r}": arguments["position"] not in ("learned", None),
        f"pooling={arguments['pooling']!r}": arguments["pooling"] not in ("token", "gap", "first", "none"),
        **{name: name not in ("class_token", "class_position") for name in unusual("tokens", tokens)},
        "merging": block is None,
    }
    extras = [name for name, has in other.items() if has]
    if extras:
        raise ValueError(f"A model of clips starts from a plain ViT. Received: {model.name!r} with {', '.join(extras)}")


def _tubelets(kernel, clips, how):
    length = clips.get_layer("tubelets").length
    shares = np.full(length, 1 / length) if how == "uniform" else np.eye(length)[length // 2]
    return np.concatenate([kernel * share for share in shares.astype(kernel.dtype)])


def _positions(table, clips, how):
    tubelets, encoder = clips.get_layer("tubelets"), clips.get_layer("encoder")
    prefix = encoder.num_prefix * encoder.class_position
    steps = 1 if tubelets.fold else tubelets.steps
    return np.concatenate([table[:, :prefix], np.tile(table[:, prefix:], (1, steps, 1))], axis=1)


CONVERSIONS = {PROJECTION: _tubelets, POSITION: _positions}
