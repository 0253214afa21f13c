"""Weights of models of clips: tubelets of a file, and image models that start one."""

import keras
import numpy as np

from keras_vit.checkpoints import adapt
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.models.backbone import check_plain, variables_of
from keras_vit.models.video import ARGUMENTS, video_vit
from keras_vit.utils import checks

PROJECTION, POSITION = "encoder/projection/kernel", "encoder/position_embedding"
KERNELS = ("central", "uniform")


def projection(step, model, arguments, checkpoint, options):
    """Returns the step of `inputs._projection` for tubelets: the kernel, flat, and for the model's channels."""
    shape = tuple(step.form.read([np.broadcast_to(np.float32(0), checkpoint.shape(step.places[0]))], None)[0].shape)
    *tubelet, channels, width = shape
    wanted, own = model.get_layer("patches").input.shape[-1], [arguments["tubelet"], *arguments["patch_size"]]
    if tubelet != own or width != arguments["width"]:
        raise ValueError(
            f"{str(checkpoint.path)!r} has tubelets of {' x '.join(map(str, tubelet))} for a width of {width}, and the "
            f"model of {' x '.join(map(str, own))} for {arguments['width']}."
        )
    adapt.channels(np.broadcast_to(np.float32(0), (1, 1, channels, 1)), wanted)  # raises if they cannot be adapted

    def read():
        kernel = step.read()[0]
        kernel = adapt.channels(kernel.reshape(-1, 1, channels, width), wanted)  # (time * height * width, 1, c, width)
        return [kernel.reshape(-1, width)]

    return step._replace(read=read)


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
    kept = num_classes is None and not time_depth
    classes = arguments["num_classes"] if num_classes is None else num_classes
    labels = {} if kept else {"labels": None}
    known = {name: value for name, value in {**about, **labels, **(metadata or {})}.items() if value is not None}
    given = {name: arguments[name] for name in ARGUMENTS if name in arguments} | {"num_classes": classes}
    clips = video_vit(None, frames=frames, tubelet=tubelet, time_depth=time_depth, metadata=known, **given)
    for path, variable in variables_of(clips).items():
        if path in own and not (path.startswith("head/") and not kept):
            value = keras.ops.convert_to_numpy(own[path])
            variable.assign(OF_PATH.get(path, lambda value, *_: value)(value, clips, kernel))
    return clips


def _check(model, arguments):
    """Raises ValueError for what a model of clips has not."""
    tokens, block = arguments["tokens"], arguments["block"]
    other = {
        "stem": arguments["stem"] is not None,
        "rotary": arguments["rotary"] is not None,
        "pre_logits": arguments["representation_size"] is not None,
        f"position={arguments['position']!r}": arguments["position"] not in ("learned", None),
        f"pooling={arguments['pooling']!r}": arguments["pooling"] not in ("token", "gap", "first", "none"),
        **{name: bool(tokens[name]) for name in tokens if name not in ("class_token", "class_position")},
        "merging": block is None,
    }
    found = [name for name, has in other.items() if has]
    if found:
        raise ValueError(
            f"A model of clips starts from a plain Vision Transformer. Received: {model.name!r} with {', '.join(found)}"
        )


def _tubelets(kernel, clips, how):
    length = clips.get_layer("tubelets").length
    shares = np.full(length, 1 / length) if how == "uniform" else np.eye(length)[length // 2]
    return np.concatenate([kernel * share for share in shares.astype(kernel.dtype)])


def _positions(table, clips, how):
    tubelets, encoder = clips.get_layer("tubelets"), clips.get_layer("encoder")
    prefix = encoder.num_prefix * encoder.class_position
    steps = 1 if tubelets.fold else tubelets.steps
    return np.concatenate([table[:, :prefix], np.tile(table[:, prefix:], (1, steps, 1))], axis=1)


OF_PATH = {PROJECTION: _tubelets, POSITION: _positions}


def started(weights, frames, metadata, arguments):
    """Returns the model that a recipe of clips starts from: a trained one of clips, or of images, `inflated`.

    Args:
        weights: What `from_pretrained` takes.
        frames: Frames of a clip.
        metadata: Of the model.
        arguments: Of `from_pretrained`, and of `inflated` where the weights are of images.
    """
    from keras_vit.checkpoints.pretrained import from_pretrained

    given = {name: value for name, value in arguments.items() if name not in ("variant", "name")}
    own = {name: given.pop(name) for name in ("tubelet", "time_depth") if name in given}
    model = from_pretrained(weights, metadata=metadata, **given)
    if len(model.input_shape) == 4:
        clips = inflated(model, frames=frames, metadata=metadata, **own)
    else:
        wrong = {name: value for name, value in own.items() if arguments_of(model, words=True)[name] != value}
        if wrong:
            raise ValueError(f"`weights` must be of such a model. Received: weights={str(weights)!r} and {wrong}")
        clips = model if model.input_shape[1] == frames else None
    if clips is None:
        clips = from_pretrained(weights, frames=frames, metadata=metadata, **given)
    return clips
