"""Data sets of tensorflow-datasets: held in memory if they fit, else streamed from their files."""

import math
import os
import pathlib
import re
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np
import tensorflow as tf

from keras_vit import checks
from keras_vit.data import memory, records
from keras_vit.data.decoding import error_reason
from keras_vit.data.memory import Source


def read(name, split, data):
    """Reads a split of a data set of labelled images, which is downloaded and prepared if necessary.

    Args:
        name: Its name in tensorflow-datasets.
        split: Any that tensorflow-datasets takes.
        data: A `keras_vit.options.Data`; not used.

    Returns:
        A `memory.Source`, or a `records.Stream` if the images do not fit into memory.
    """
    import tensorflow_datasets as tfds

    builder = _prepared(name)
    image, class_names = _features(builder, name)
    known = sorted(builder.info.splits)
    if re.split(r"[\[+]", split)[0] not in known:
        raise ValueError(f"{name!r} has no split {split!r}. Known: {', '.join(known)}.")
    pieces = builder.info.splits[split].file_instructions
    fixed_size = None not in image.shape
    encoded = sum(tf.io.gfile.stat(p.filename).length * p.take / p.examples_in_shard for p in pieces)
    pixels = math.prod(image.shape) * sum(p.take for p in pieces) if fixed_size else 0
    if memory.fits(max(encoded, pixels)):
        decoders = None if fixed_size else {"image": tfds.decode.SkipDecoding()}
        dataset = builder.as_dataset(split=split, batch_size=-1, decoders=decoders)
        images, labels = dataset["image"].numpy(), dataset["label"].numpy()
        return Source(images, labels.astype("int32"), class_names)
    if builder.info.file_format.value != "tfrecord":
        raise ValueError(
            f"A data set that does not fit into memory must be prepared as TFRecord files. Received: {name!r}, "
            f"prepared as {builder.info.file_format.value!r}"
        )
    return records.Stream.of([(p.filename, p.skip, p.take) for p in pieces], class_names, encoded)


def _prepared(name):
    """Returns the builder of a data set, whose files are prepared."""
    import tensorflow_datasets as tfds

    try:
        builder = tfds.builder(name, data_dir=os.environ.get("TFDS_DATA_DIR"))
    except tfds.core.DatasetNotFoundError:
        raise ValueError(
            f"tensorflow-datasets has no data set {name!r}. {checks.near(name, tfds.list_builders())}"
        ) from None
    if not builder.is_prepared():
        (_prepare_from_files if builder.MANUAL_DOWNLOAD_INSTRUCTIONS else _download)(builder)
    return builder


def _features(builder, name):
    """Returns the feature of the images and the names of the classes."""
    import tensorflow_datasets as tfds

    features = builder.info.features
    if "image" not in features or not isinstance(dict(features).get("label"), tfds.features.ClassLabel):
        raise ValueError(
            f"A data set must have an image and a class label. Received: {name!r} of {', '.join(features)}"
        )
    image = features["image"]
    if image.np_dtype != np.uint8:
        raise ValueError(f"Images must be of type uint8. Received: {name!r}, whose images are of type {image.np_dtype}")
    return image, tuple(features["label"].names)


def _download(builder):
    """Downloads and prepares a data set. Fails at once without network: the builder's own retries take minutes."""
    url = next((u for u in builder.url_infos if u.startswith("http")), None)
    try:
        if url:
            urlopen(Request(url, method="HEAD"), timeout=10).close()
    except (URLError, TimeoutError, OSError) as error:
        raise FileNotFoundError(
            f"{builder.name!r} is not prepared in {builder.data_dir}, and cannot be downloaded from {url} ({error}). "
            f"Put a prepared copy there, or set TFDS_DATA_DIR to the folder that contains "
            f"{builder.name}/{builder.version}."
        ) from None
    print(f"Preparing {builder.name} in {builder.data_dir}")
    builder.download_and_prepare()


def _prepare_from_files(builder):
    """Prepares a data set whose files the user must fetch, such as ImageNet; raises with where to put them."""
    import tensorflow_datasets as tfds

    folder = pathlib.Path(builder.data_dir).parents[builder.info.full_name.count("/")] / "downloads" / "manual"
    reason = "it is empty"
    if folder.is_dir() and any(folder.iterdir()):
        print(f"Preparing {builder.name} in {builder.data_dir} from {folder}")
        try:
            settings = tfds.download.DownloadConfig(manual_dir=folder, try_download_gcs=False)
            return builder.download_and_prepare(download_config=settings)
        except (AssertionError, FileNotFoundError, tf.errors.NotFoundError) as error:
            reason = error_reason(error)
    raise FileNotFoundError(
        f"{builder.name!r} is not prepared in {builder.data_dir}, and is prepared from files in {folder} ({reason}): "
        f"{' '.join(builder.MANUAL_DOWNLOAD_INSTRUCTIONS.split())}"
    )
