"""Data sets of tensorflow-datasets: held in memory if they fit, else streamed from their files."""

import math
import os
import pathlib
import re
import sys
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np
import tensorflow as tf

from keras_vit.data import memory
from keras_vit.data.augment import masks
from keras_vit.data.augment.boxes import EMPTY
from keras_vit.data.memory import Source
from keras_vit.data.orientation import orientations
from keras_vit.data.readers import records, texts
from keras_vit.data.readers.box_arrays import have_area
from keras_vit.data.readers.decoding import decode, error_reason
from keras_vit.data.targets import KINDS
from keras_vit.models.outputs import ignored
from keras_vit.utils import checks
from keras_vit.utils import extras as packages
from keras_vit.utils.warned import left_out

BOXES, SEVERAL, TEXTS = "bounding_boxes", "multilabels", "texts"
CAPTIONS = ("captions", "caption", "text", "question")  # names of features of texts, the first that is there
BETWEEN = "\0"  # several texts of an image
IGNORED = {"is_crowd", "is_difficult", "is_group_of"}  # features of what is no object to find


def read(name, split, data, targets, extras=()):
    """Reads a split of a data set of images, which is downloaded and prepared if necessary.

    Args:
        name: Its name in tensorflow-datasets.
        split: Any that tensorflow-datasets takes.
        data: A `keras_vit.config.Data`; not used.
        targets: Names of the targets to read with the images.
        extras: Names of targets to read if the data set has them.

    Returns:
        A `memory.Source`, or a `records.Stream` if the images do not fit into memory.
    """
    builder, pieces = opened(name, split)
    import tensorflow_datasets as tfds

    features, keys = builder.info.features, feature_keys(builder.info.features, name, targets, extras)
    class_names = tuple(features[keys["labels"]].names) if "labels" in keys else ()
    if SEVERAL in keys:
        class_names = tuple(features[keys[SEVERAL]].feature.names)
    if BOXES in keys:
        class_names = tuple(_parts(features[keys[BOXES]])[tfds.features.ClassLabel][1].names)
    placed = [item for item in keys if item not in ("labels", SEVERAL, TEXTS)]
    places = [keys[item] for item in placed if item != BOXES]
    fixed_size = all(None not in features[key].shape for key in places)
    count = sum(p.take for p in pieces)
    encoded = sum(tf.io.gfile.stat(p.filename).length * p.take / p.examples_in_shard for p in pieces)
    pixels = sum(math.prod(features[key].shape) for key in places) * count if fixed_size else 0
    if memory.fits(max(encoded, pixels)):
        held = _held(builder, split, keys, places if fixed_size else ())
        empty = {item: tf.constant(-1.0) if item == BOXES else None for item in (*keys, "orientations")}  # or 0
        columns = held.padded_batch(count, padding_values=empty).get_single_element()
        targets = {name: column.numpy() for name, column in columns.items()}
        turned = int((targets.pop("orientations") > 1).sum())
        if turned and len(placed) > 1:
            raise ValueError(
                "Images with masks or boxes must have no EXIF orientation, since nothing says whether these belong to "
                f"the pixels as they are stored or as they are seen. Received: {name!r}, with {turned} such images"
            )
        if TEXTS in targets:
            targets[TEXTS] = texts.of_array(
                [found.decode().split(BETWEEN) for found in targets[TEXTS]], targets["images"]
            )
        if "labels" in targets:
            targets["labels"] = targets["labels"].astype("int32")
        if BOXES in targets:
            empty, flat = targets[BOXES][..., 4] == -1, ~have_area(targets[BOXES][..., :4])
            if lost := np.sum(flat & ~empty):
                left_out(f"{lost} boxes of {name!r}, which have no area in their image")
            targets[BOXES] = np.where((empty | flat)[..., None], np.float32(EMPTY), targets[BOXES])
        return Source(targets.pop("images"), targets, class_names)
    whole = next((item.replace("_", " ") for item in keys if KINDS[item].record is None), None)
    if whole:
        raise ValueError(f"A data set with {whole} must fit into memory. Received: {name!r} of {encoded / 1e9:.1f} GB")
    if builder.info.file_format.value != "tfrecord":
        raise ValueError(
            f"A data set that does not fit into memory must be prepared as TFRecord files. Received: {name!r}, "
            f"prepared as {builder.info.file_format.value!r}"
        )
    files = [(p.filename, p.skip, p.take) for p in pieces]
    return records.Stream.of(files, class_names, encoded, features=tuple(keys.items()), labeled="labels" in targets)


def _held(builder, split, keys, decoded):
    """Returns a split as a `tf.data.Dataset` of the features that are wanted; of images only the `decoded` are."""
    import tensorflow_datasets as tfds

    images = [key for key, feature in builder.info.features.items() if isinstance(feature, tfds.features.Image)]
    decoders = {key: tfds.decode.SkipDecoding() for key in images}
    dataset = builder.as_dataset(split=split, decoders=decoders)
    boxes = {key: _parts(builder.info.features[key]) for item, key in keys.items() if item == BOXES}

    def chosen(example, key, orientation):
        if key in decoded:
            shape = builder.info.features[key].shape
            item, is_mask = example[key], key != keys["images"]
            return tf.ensure_shape(masks.decode(item) if is_mask else decode(item, shape[-1], orientation), shape)
        if key == keys.get(SEVERAL):
            count = builder.info.features[key].feature.num_classes
            hot = tf.one_hot(example[key], count, dtype="int8")  # of the image's labels, however many
            return tf.reduce_max(tf.concat([tf.zeros((1, count), "int8"), hot], axis=0), axis=0)
        if key == keys.get(TEXTS):
            return tf.strings.reduce_join(_text(builder.info.features[key])(example[key]), separator=BETWEEN)
        if key not in boxes:
            return example[key]
        edges, classes = (
            example[key][boxes[key][kind][0]] for kind in (tfds.features.BBoxFeature, tfds.features.ClassLabel)
        )
        for flag in IGNORED & set(example[key]):
            classes = tf.where(tf.cast(example[key][flag], "bool"), ignored(classes), classes)
        return tf.concat([edges, tf.cast(classes, "float32")[:, None]], axis=1)  # as in `boxes`

    def items(example):
        orientation = orientations(example[keys["images"]][None])[0]
        return {item: chosen(example, key, orientation) for item, key in keys.items()} | {"orientations": orientation}

    return dataset.map(items)


def _text(feature):
    """Returns the function from a feature's value to its text or texts, a tensor; `None` for any other feature."""
    import tensorflow_datasets as tfds

    inside = getattr(feature, "feature", None) if isinstance(feature, tfds.features.Sequence) else feature
    if isinstance(inside, tfds.features.FeaturesDict):
        names = [name for name, part in inside.items() if isinstance(part, tfds.features.Text)]
        name = one_of(names, "text")
        return None if name is None or inside is feature else lambda value: value[name]
    return (lambda value: value) if isinstance(inside, tfds.features.Text) else None


def _parts(feature):
    """Returns, by their types, the names and features inside a sequence, such as a class and a box of each object."""
    import tensorflow_datasets as tfds

    inside = getattr(feature, "feature", None) if isinstance(feature, tfds.features.Sequence) else None
    parts = dict(inside) if isinstance(inside, tfds.features.FeaturesDict) else {}
    kinds = (tfds.features.BBoxFeature, tfds.features.ClassLabel)
    found = {kind: [(key, part) for key, part in parts.items() if isinstance(part, kind)] for kind in kinds}
    found = {kind: [pair for pair in pairs if pair[0] == "label"] or pairs for kind, pairs in found.items()}
    return {kind: pairs[0] for kind, pairs in found.items()} if all(len(p) == 1 for p in found.values()) else {}


def feature_keys(features, name, targets, extras=()):
    """Returns the keys of a data set's features: of `"images"`, and of each target.

    Args:
        features: A `tfds.features.FeaturesDict`.
        name: The data set's name, for errors.
        targets: Names of the targets to read with the images.
        extras: Names of what is read too, if there is a feature for it.

    Raises:
        ValueError: If there is no feature for one of them, or are several.
    """
    import tensorflow_datasets as tfds

    features = dict(features)
    pictures = {key: f for key, f in features.items() if isinstance(f, tfds.features.Image)}
    color = [key for key, f in pictures.items() if f.shape[-1] == 3]
    labels = [key for key, f in features.items() if isinstance(f, tfds.features.ClassLabel)]
    lists = [key for key, f in features.items() if isinstance(getattr(f, "feature", None), tfds.features.ClassLabel)]
    image = one_of(pictures, "image") or one_of(color) or one_of(pictures)
    videos = [key for key, f in features.items() if isinstance(f, tfds.features.Video)]
    if image is None and videos:
        raise ValueError(
            f"A data set of videos is for ClassifyClips and PretrainClips. Received: {name!r} of {videos[0]}"
        )
    if image is None or pictures[image].shape[-1] not in (1, 3):
        raise ValueError(
            f"A data set must have an image of one or three channels. Received: {name!r} of {', '.join(features)}"
        )
    if pictures[image].np_dtype != np.uint8:
        kind = pictures[image].np_dtype
        raise ValueError(f"Images must be of type uint8. Received: {name!r}, whose images are of type {kind}")
    masks = [k for k, f in pictures.items() if k != image and f.shape[-1] == 1 and f.np_dtype == np.uint8]
    found = {
        "labels": one_of(labels, "label"),
        SEVERAL: one_of(lists, "labels"),
        "segmentation_masks": one_of(masks, "segmentation_mask") or one_of([key for key in masks if "mask" in key]),
    }
    found["segmentation_masks"] = found["segmentation_masks"] or one_of(masks)
    found[BOXES] = one_of([key for key, feature in features.items() if _parts(feature)], "objects")
    written = [key for key, feature in features.items() if _text(feature)]
    found[TEXTS] = next((name for name in CAPTIONS if name in written), None) or one_of(written)
    missing = next((target for target in targets if not found.get(target)), None)
    if missing:
        raise memory.lacks(name, missing, features)
    return {"images": image, **{t: found[t] for t in (*targets, *extras) if found.get(t)}}


def one_of(keys, first=None):
    """Returns the key `first` if it is there, else the only one, or `None`."""
    return first if first in keys else next(iter(keys)) if len(keys) == 1 else None


def opened(name, split):
    """Returns the builder of a data set, whose files are prepared if necessary, and the parts of files of a split.

    Raises:
        ValueError: For an unknown data set or split.
        FileNotFoundError: For files that are not there and cannot be downloaded.
        ImportError: If tensorflow-datasets is not installed.
    """
    packages.need(f"'tfds:{name}'", "datasets", "tensorflow_datasets", "importlib_resources")
    builder = _prepared(name)
    known = sorted(builder.info.splits)
    if re.split(r"[\[+]", split)[0] not in known:
        raise ValueError(f"{name!r} has no split {split!r}. Known: {', '.join(known)}.")
    return builder, builder.info.splits[split].file_instructions


def _prepared(name):
    """Returns the builder of a data set, whose files are prepared."""
    import tensorflow_datasets as tfds

    try:
        builder = tfds.builder(name, data_dir=os.environ.get("TFDS_DATA_DIR"))
    except tfds.core.DatasetNotFoundError:
        raise ValueError(
            f"tensorflow-datasets has no data set {name!r}. {checks.near(name, tfds.list_builders())}"
        ) from None
    except Exception as error:  # those of Hugging Face's client among them, without a network
        raise ValueError(f"tensorflow-datasets cannot load {name!r}: {error_reason(error)}") from None
    if not builder.is_prepared():
        (_prepare_from_files if builder.MANUAL_DOWNLOAD_INSTRUCTIONS else _download)(builder)
    return builder


def _download(builder):
    """Downloads and prepares a data set. Fails at once without network: the builder's own retries take minutes."""
    url = next((u for u in builder.url_infos if u.startswith("http")), None)
    try:
        if url:
            urlopen(Request(url, method="HEAD"), timeout=10).close()
    except (URLError, TimeoutError, OSError) as error:
        raise FileNotFoundError(
            f"{builder.name!r} is not prepared in {builder.data_dir}, and cannot be downloaded from {url} ({error}). "
            f"Put a prepared copy there, or set TFDS_DATA_DIR to the folder that contains {builder.info.full_name}."
        ) from None
    print(f"Preparing {builder.name} in {builder.data_dir}", file=sys.stderr)
    builder.download_and_prepare()


def _prepare_from_files(builder):
    """Prepares a data set whose files the user must fetch, such as ImageNet; raises with where to put them."""
    import tensorflow_datasets as tfds

    folder = pathlib.Path(builder.data_dir).parents[builder.info.full_name.count("/")] / "downloads" / "manual"
    reason = "it is empty"
    if folder.is_dir() and any(folder.iterdir()):
        print(f"Preparing {builder.name} in {builder.data_dir} from {folder}", file=sys.stderr)
        try:
            settings = tfds.download.DownloadConfig(manual_dir=folder, try_download_gcs=False)
            return builder.download_and_prepare(download_config=settings)
        except (AssertionError, FileNotFoundError, tf.errors.NotFoundError) as error:
            reason = error_reason(error)
    raise FileNotFoundError(
        f"{builder.name!r} is not prepared in {builder.data_dir}, and is prepared from files in {folder} ({reason}): "
        f"{' '.join(builder.MANUAL_DOWNLOAD_INSTRUCTIONS.split())} "
        f"For a prepared copy, set TFDS_DATA_DIR to the folder that contains {builder.info.full_name}."
    )
