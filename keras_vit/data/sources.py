"""Where labelled images come from: one reader a kind of source."""

import math
import os
import pathlib
import re
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np
import tensorflow as tf

from keras_vit import checks
from keras_vit.data import crops, inspection, memory, records
from keras_vit.data.memory import Source
from keras_vit.images import shown

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")


def load(data, split):
    """Reads one split of a data set.

    Args:
        data: A `keras_vit.config.Data`.
        split: Such as `"train"`, `"train[:90%]"` or `"all[80%:]"`.

    Returns:
        A `memory.Source`; for tensorflow-datasets' sets that do not fit into memory, a `records.Stream`.

    Raises:
        ValueError: For an unknown source or split, a folder that is empty or holds one class only, an image that
            cannot be read (unless `data.bad_images` is `"skip"`).
        FileNotFoundError: For a folder that is not there, or data that is neither prepared nor downloadable.
    """
    kind, _, rest = data.source.partition(":")
    if kind not in READERS and _is_path(data.source):
        raise ValueError(
            f"A folder of images is 'folder:PATH'. Received: data.source={data.source!r}; did you mean "
            f"{'folder:' + data.source!r}?"
        )
    checks.one_of("data.source", kind, tuple(READERS))
    if (kind == "digits") == bool(rest):
        raise ValueError(f"A source is 'digits', 'tfds:NAME' or 'folder:PATH'. Received: data.source={data.source!r}")
    source = READERS[kind](rest, split, data)
    if not len(source):
        raise ValueError(f"Split {split!r} of {data.source!r} is empty.")
    return source if data.limit is None else source.take(slice(data.limit))


def _is_path(text):
    return "/" in text or os.sep in text or text.startswith(("~", ".")) or os.path.isdir(text)


def from_arrays(images, labels, shape, num_classes):
    """Returns the source of pixel and label arrays that the caller holds, once they are found to fit a model.

    Args:
        images: Array, `(images, height, width, channels)`, 0..255.
        labels: Array, `(images,)`, integers.
        shape: `(height, width, channels)` that the model takes.
        num_classes: Number of its classes.
    """
    images = checks.pixels(images, shape)
    labels = checks.class_indices(labels, num_classes, len(images))
    return Source(images, labels.astype("int32"), tuple(str(i) for i in range(num_classes)))


def check_fits(source, shape, num_classes):
    """Returns the source if a model of that image shape and class count can train on it, else raises ValueError."""
    if len(source.class_names) != num_classes:
        raise ValueError(f"The data has {len(source.class_names)} classes. Received: a model of {num_classes}")
    source.check_labels()
    if shape[-1] not in source.channels:
        raise ValueError(
            f"The images have {' or '.join(map(str, source.channels))} channels. Received: a model of {shape[-1]}"
        )
    return source


def same_classes(first, second):
    """Raises ValueError if two data sets do not have the same classes in the same order."""
    if tuple(first) != tuple(second):
        only = [f"{name} only in one of them" for name in sorted(set(first) ^ set(second))[:10]]
        raise ValueError(f"Two splits have other classes: {', '.join(only) or 'another order'}.")


def _digits(_, split, data):
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels.reshape(-1, 8, 8, 1) * (255 / 16)).astype("uint8")
    everything = Source(images, labels.astype("int32"), tuple("0123456789"))
    return _slice(everything, split, ("all",))


def _tfds(name, split, data):
    import tensorflow_datasets as tfds

    try:
        builder = tfds.builder(name, data_dir=os.environ.get("TFDS_DATA_DIR"))
    except tfds.core.DatasetNotFoundError:
        raise ValueError(
            f"tensorflow-datasets has no data set {name!r}. {checks.near(name, tfds.list_builders())}"
        ) from None
    if not builder.is_prepared():
        (_prepare_from_files if builder.MANUAL_DOWNLOAD_INSTRUCTIONS else _download)(builder)
    features = builder.info.features
    if "image" not in features or not isinstance(dict(features).get("label"), tfds.features.ClassLabel):
        raise ValueError(f"{name!r} is no set of labelled images: it holds {', '.join(features)}.")
    image, class_names = features["image"], tuple(features["label"].names)
    if image.np_dtype != np.uint8:
        raise ValueError(f"Images are of type uint8. Received: {name!r}, whose images are of type {image.np_dtype}")
    known = sorted(builder.info.splits)
    if re.split(r"[\[+]", split)[0] not in known:
        raise ValueError(f"{name!r} has no split {split!r}. Known: {', '.join(known)}.")
    pieces = builder.info.splits[split].file_instructions
    fixed_size = None not in image.shape
    encoded = sum(tf.io.gfile.stat(p.filename).length * p.take / p.examples_in_shard for p in pieces)
    pixels = math.prod(image.shape) * sum(p.take for p in pieces) if fixed_size else 0
    if not memory.fits(max(encoded, pixels)):
        if builder.info.file_format.value != "tfrecord":
            raise ValueError(
                f"A set that does not fit into memory is read from TFRecord files. Received: {name!r}, prepared as "
                f"{builder.info.file_format.value!r}"
            )
        return records.Stream.of([(p.filename, p.skip, p.take) for p in pieces], class_names, encoded)
    decoders = None if fixed_size else {"image": tfds.decode.SkipDecoding()}
    dataset = builder.as_dataset(split=split, batch_size=-1, decoders=decoders)
    images, labels = dataset["image"].numpy(), dataset["label"].numpy()
    return Source(images, labels.astype("int32"), class_names)


def _download(builder):
    """Prepares a tensorflow-datasets data set, or says at once why it cannot: its own retries take minutes."""
    url = next((u for u in builder.url_infos if u.startswith("http")), None)
    try:
        if url:
            urlopen(Request(url, method="HEAD"), timeout=10).close()
    except (URLError, TimeoutError, OSError) as error:
        raise FileNotFoundError(
            f"{builder.name!r} is not prepared in {builder.data_dir}, and cannot be downloaded from {url} ({error}). "
            f"Put a prepared copy there, or set TFDS_DATA_DIR to the folder that holds "
            f"{builder.name}/{builder.version}."
        ) from None
    print(f"Preparing {builder.name} in {builder.data_dir}")
    builder.download_and_prepare()


def _prepare_from_files(builder):
    """Prepares a data set whose files one fetches oneself, such as ImageNet, or says where they belong."""
    import tensorflow_datasets as tfds

    folder = pathlib.Path(builder.data_dir).parents[builder.info.full_name.count("/")] / "downloads" / "manual"
    reason = "it is empty"
    if folder.is_dir() and any(folder.iterdir()):
        print(f"Preparing {builder.name} in {builder.data_dir} from {folder}")
        try:
            settings = tfds.download.DownloadConfig(manual_dir=folder, try_download_gcs=False)
            return builder.download_and_prepare(download_config=settings)
        except (AssertionError, FileNotFoundError, tf.errors.NotFoundError) as error:
            reason = crops.reason(error)
    raise FileNotFoundError(
        f"{builder.name!r} is not prepared in {builder.data_dir}, and is prepared from files in {folder} ({reason}): "
        f"{' '.join(builder.MANUAL_DOWNLOAD_INSTRUCTIONS.split())}"
    )


def _folder(path, split, data):
    root = pathlib.Path(path).expanduser()
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {str(root)!r}.")
    base = split.partition("[")[0]
    folder = root if base == "all" else root / base
    if not folder.is_dir():
        raise ValueError(
            f"{str(root)!r} has no folder {base!r} for the split {split!r}. For class folders right inside it, write "
            "splits of 'all', such as 'all[:80%]'."
        )
    classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    for name in classes:
        if shown(name).splitlines() != [name]:  # they are written to a file, one a line
            raise ValueError(f"The name of a class folder is one line of UTF-8. Received: {name!r} in {str(folder)!r}")
    every = [
        (f, label) for label, name in enumerate(classes) for f in sorted((folder / name).rglob("*")) if not f.is_dir()
    ]
    files = [(str(file), label) for file, label in every if file.suffix.lower() in IMAGE_ENDINGS]
    if len(files) < len(every):
        others = sorted({file.suffix.lower() or file.name for file, _ in every} - set(IMAGE_ENDINGS))
        print(
            f"Passed over {len(every) - len(files)} files that are no images by their ending: "
            f"{', '.join(map(shown, others[:10]))}"
        )
    files, digests = _readable(files, data.bad_images)
    filled = len({label for _, label in files})
    if filled < 2:
        raise ValueError(
            f"{str(folder)!r} needs at least two class folders with images ({', '.join(IMAGE_ENDINGS)}). "
            f"Received: {len(classes)} folders, {filled} with images"
        )
    if filled < len(classes):
        empty = [name for label, name in enumerate(classes) if label not in {known for _, known in files}]
        raise ValueError(f"{str(folder)!r} has class folders without images: {', '.join(empty[:10])}.")
    paths, labels = zip(*files)
    everything = Source(np.array(paths), np.array(labels, "int32"), tuple(classes), files=True, digests=digests)
    return _slice(everything, split, (base,))


def _readable(files, on_bad):
    """Decodes every image once and returns those that can be read, and their hashes; others are an error, or listed."""
    found = inspection.inspect_all(path for path, _ in files)
    bad = [f"{shown(path)} ({reason})" for (path, _), (reason, _) in zip(files, found) if reason]
    if bad:
        listed = "\n  ".join(bad[:10] + [f"and {len(bad) - 10} more"] * (len(bad) > 10))
        if on_bad == "raise" or len(bad) == len(files):
            raise ValueError(
                f"{len(bad)} of {len(files)} images cannot be read; mend or remove them, or leave them out with "
                f"data.bad_images=skip:\n  {listed}"
            )
        print(f"Left out {len(bad)} of {len(files)} images, which cannot be read:\n  {listed}")
    digests = np.array([list(digest) for reason, digest in found if not reason], "uint8")
    return [item for item, (reason, _) in zip(files, found) if not reason], digests


def _slice(source, split, known):
    """Cuts `name[a%:b%]` out of a source, in an order that is shuffled but always the same."""
    match = re.fullmatch(r"([^\[\]]+)(?:\[(?:(\d+)%)?:(?:(\d+)%)?\])?", split)
    if not match or match[1] not in known:
        raise ValueError(
            f"A split is one of {', '.join(known)}, or a part of it such as '{known[0]}[:80%]'. Received: {split!r}"
        )
    order = np.random.default_rng(0).permutation(len(source))
    if int(match[2] or 0) > 100 or int(match[3] or 100) > 100:
        raise ValueError(f"A split ends at 100 %. Received: {split!r}")
    first, last = (round(len(source) * int(percent) / 100) for percent in (match[2] or 0, match[3] or 100))
    return source.take(order[first:last])


READERS = {"digits": _digits, "tfds": _tfds, "folder": _folder}
