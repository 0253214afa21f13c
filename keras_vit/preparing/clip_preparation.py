"""Prepares clips as the evaluation of a model's source did: which frames, and how they are resized."""

import os

import numpy as np

from keras_vit.models.backbone import input_shape_of
from keras_vit.models.by_frames import is_by_frames
from keras_vit.models.metadata import metadata
from keras_vit.utils import checks, clip_files
from keras_vit.utils.sampling import frame_indices

RULE = {"stride": 1, "segments": False, "centered": False}  # see `frame_indices`; by frames alone, `segments` is set


def frames_rule(model):
    """Returns how the frames of a model's clips are sampled, from the metadata of its first layer.

    Without them, a model that sees each frame alone has one of each of as many parts; any other, neighbors.

    Raises:
        ValueError: For an invalid rule, such as one from a damaged file.
    """
    about = metadata(model)
    stated = about.get("frames") or (about.get("evaluation") or {}).get("frames") or {}
    rule = {**RULE, "segments": is_by_frames(model), **stated}
    switches = all(isinstance(rule[name], bool) for name in ("segments", "centered"))
    if type(rule["stride"]) is not int or rule["stride"] < 1 or not switches:
        raise ValueError(f"`frames` of the metadata must have a stride and segments. Received: {checks.shown(rule)}")
    return {name: rule[name] for name in RULE}


def prepared(model, clips, prepare, value_range):
    """Returns clips as `keras_vit.preprocess` returns them.

    Args:
        model: A model of clips.
        clips: Clip files, or arrays `(frames, height, width, channels)`, in any sizes; or a single one.
        prepare: Function from the pixels of a frame, `(height, width, channels)`, to those for the model.
        value_range: The lowest and the highest pixel.

    Returns:
        float32 array, `(batch, frames, height, width, channels)`.
    """
    _, frames, *_, channels = input_shape_of(model)
    rule = frames_rule(model)
    single = isinstance(clips, (str, os.PathLike)) or getattr(clips, "ndim", 5) < 5
    if isinstance(clips, (bytes, dict)) or (not hasattr(clips, "__iter__") and not single):
        raise TypeError(f"Clips must be files or arrays, or a list of them. Received: {type(clips).__name__}")
    clips = [clips] if single else list(clips)
    if not clips:
        raise ValueError("`images` must contain a clip. Received: an empty list")

    def one(clip):
        def choose(count):
            return frame_indices(count, frames, **rule)

        if isinstance(clip, (str, os.PathLike)):
            return clip_files.read_clip(clip, channels, choose, centered=rule["centered"])
        clip = clip_files.checked(np.asarray(clip)[None], (None, None, None, channels), value_range=value_range)[0]
        return clip[choose(len(clip))]

    return np.stack([np.stack([prepare(frame) for frame in one(clip)]) for clip in clips])
