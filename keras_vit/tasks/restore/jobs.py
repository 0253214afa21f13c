"""Several jobs of restoration in one model: what their names say, the model, and the model of a single job."""

import dataclasses
import math
import re

import keras

from keras_vit.models.backbone import fill
from keras_vit.models.between import between
from keras_vit.models.inputs import image_shape
from keras_vit.tasks import dense

OPTIONS = ("scale", "gray", "noise", "jpeg", "mask")  # which say what is undone
PARTS = {"x": ("scale", int), "denoise": ("noise", float), "jpeg": ("jpeg", int), "inpaint": ("mask", float)}
INPUTS = ("images", "labels")


def settings_of(job):
    """Returns what a job's name says, options of `Restore`: of `"x2+jpeg40"` a scale of 2 and a quality of 40.

    Raises:
        ValueError: For any other name.
    """
    found = [re.fullmatch(r"(x|jpeg)(\d+)|(denoise|inpaint)(\d+(?:\.\d+)?)", part) for part in job.split("+")]
    pairs = [(each[1] or each[3], each[2] or each[4]) for each in found if each]
    settings = {PARTS[word][0]: _value(word, number) for word, number in pairs}
    if len(settings) < len(found):
        raise ValueError(
            "A job must be 'xN', 'denoiseN', 'jpegN' or 'inpaintN' with a number, or several joined by '+', each once. "
            f"Received: {job!r}"
        )
    return settings


def _value(word, number):
    return float(number) / 100 if word == "inpaint" else PARTS[word][1](number)


def check(task):
    """Raises ValueError unless the jobs of a `Restore` are several, each once, and nothing else says what is undone."""
    options = {item.name: item.default for item in dataclasses.fields(task) if item.name in OPTIONS and task.jobs}
    given = [f"{name}={getattr(task, name)}" for name, usual in options.items() if getattr(task, name) != usual]
    if given or len(task.jobs) == 1 or len({*task.jobs}) < len(task.jobs):
        raise ValueError(
            "Restore.jobs must be two names or more, each once, in place of scale, gray, noise, jpeg and mask. "
            f"Received: jobs={task.jobs}{''.join(f', {each}' for each in given)}"
        )


def step_of(tasks):
    """Returns the number that the sides of an image must be multiples of, for the scales of all jobs."""
    return math.lcm(*(task.scale for task in tasks))


def by_job(encoder, features, task, channels):
    """Returns the inputs, a dictionary, and the changes of the image that a model of several jobs finds.

    Each job has a head, a residual branch on the feature map of the stem, and a tail, `head_depth` residual branches
    and the last convolution; the blocks between them are shared (Chen et al. 2021, arXiv:2012.00364, "IPT", section
    3.1).

    Args:
        encoder: Model from `dense.encoder`.
        features: Its symbolic feature map, `(batch, rows, columns, filters)`, of the size of the images.
        task: The `Restore`.
        channels: Channels of the changes.
    """
    from keras_vit.layers import JobConv2D

    labels, filters, dtype = keras.Input((), dtype="int32", name="labels"), features.shape[3], encoder.dtype_policy
    check_full_size(encoder, features, "jobs")

    def conv(x, name, filters=filters, zeros=False):
        return JobConv2D(filters, len(task.jobs), zeros=zeros, name=name, dtype=dtype)([x, labels])

    def branch(x, name):
        y = keras.layers.Activation("relu", name=f"{name}_relu", dtype=dtype)(conv(x, f"{name}_conv0"))
        return keras.layers.Add(name=f"{name}_add", dtype=dtype)([x, conv(y, f"{name}_conv1")])

    entry = branch(features, "job_head")
    tokens = dense.patches(encoder, between(features, encoder.output, entry, training=None))
    tokens = dense.feature_map(encoder, tokens, "map")
    patch = tuple(side // part for side, part in zip(features.shape[1:3], tokens.shape[1:3]))
    settings = {"data_format": "channels_last", "name": "job_tokens", "dtype": dtype}
    tokens = keras.layers.Conv2DTranspose(filters, patch, patch, **settings)(tokens)
    x = keras.layers.Add(name="job_sum", dtype=dtype)([entry, tokens])
    for i in range(task.head_depth):
        x = branch(x, f"job_tail{i}")
    return {"images": encoder.input, "labels": labels}, conv(x, "job_pixels", channels, zeros=True)


def check_full_size(encoder, features, option):
    """Raises ValueError unless the feature map of a stem, as an option of `Restore` needs it, has the image's size."""
    if features.shape[1:3] != encoder.input_shape[1:3]:
        raise ValueError(
            f"Restore.{option} needs a stem whose feature map has the size of the image: strides of 1. "
            f"Received: a map of {features.shape[1]} x {features.shape[2]} of {encoder.input_shape[1]} x "
            f"{encoder.input_shape[2]} pixels"
        )


def single(model, jobs, job):
    """Returns the model of one job, with the same weights: it takes images as they are given, and no job.

    Args:
        model: A trained model of `Restore` with jobs.
        jobs: Names of its jobs.
        job: One of them.

    Returns:
        Model from images, `(batch, height / scale, width / scale, channels)`, 0..255, to `(batch, height, width,
        channels)`, where height and width are those that the model of all jobs takes.
    """
    from keras_vit.layers import JobInput
    from keras_vit.layers.functional import Model

    model = plain(model)  # the caller's layers get no other calls
    scale, (height, width, channels) = settings_of(job).get("scale", 1), image_shape(model)
    images = keras.Input((height // scale, width // scale, channels), name="images")
    pair = JobInput(job=jobs.index(job), scale=scale, name="job", dtype="float32")(images)
    starts = [model.input[name] for name in INPUTS]
    return plain(Model(images, between(starts, model.output, list(pair)), name=model.name))


def plain(model):
    """Returns a copy of a model, for layers that were called before: each is then called once, as `explain` needs."""
    return fill(keras.models.clone_model(model), model.get_weights())
