"""Folders of images: with a folder for each class, with masks, depth or boxes, or images alone."""

import pathlib

import numpy as np

from keras_vit.data import inspection, mask_frames
from keras_vit.data.memory import Source, lacks
from keras_vit.data.readers import (
    box_folder,
    depth_folder,
    groups,
    instance_folder,
    mask_folder,
    reference_folder,
    split_folders,
    table,
    table_file,
    yolo_dataset,
    yolo_labels,
)
from keras_vit.data.readers.box_arrays import padded
from keras_vit.data.readers.split_folders import image_files
from keras_vit.utils import checks
from keras_vit.utils.folders import IMAGE_ENDINGS, files_in, is_hidden, is_image, shown
from keras_vit.utils.images import warn_if_shallow
from keras_vit.utils.names import Written
from keras_vit.utils.warned import left_out, refuse_or_leave_out


def read(path, split, data, targets, extras=()):
    """Reads a split of a folder.

    Args:
        path: A folder for splits of `"all"`; or of folders, one for each split. With labels it contains class folders;
            with segmentation masks the folders `images` and `masks`; with bounding boxes what `box_folder.read` takes,
            with instance masks what `instance_folder.read` takes; or, with any of these, what `yolo_dataset.find`
            finds; without targets anything: all images are read. Or YOLO's YAML file.
        split: Such as `"all[:80%]"` or `"train"`.
        data: A `keras_vit.config.Data`; `bad_images` is read.
        targets: Names of the targets to read with the images.
        extras: Names of targets to read where the folder has them.

    Returns:
        A `memory.Source` of the files. Classes are in alphabetical order, or in that of COCO's or YOLO's file.
    """
    root = pathlib.Path(Written().path(pathlib.Path(path).expanduser()))
    base = split.partition("[")[0]
    by_column = "splits" in (data.columns or {})
    folder = root if base == "all" or by_column else split_folders.below(root, base)
    if (file := _yolo_of(folder, root, targets)) is not None:
        return _with_yolo(file, split, data, targets)
    targets = [*targets, *(name for name in ("references",) if name in extras and name in (data.columns or {}))]
    split_folders.place_of(root, split, "class folders" if "labels" in targets else "images", by_column)
    if (file := _table_of(folder, root, data.columns or {}, targets)) is not None:
        return _with_table(file, folder, data, targets, base if by_column and base != "all" else None).part(split, base)
    paired = mask_folder.is_paired(folder)
    referred = "references" in extras and reference_folder.is_paired(folder)
    masked = "segmentation_masks" in targets or (paired and "segmentation_masks" in extras)
    if "labels" in targets and (
        masked or "instance_masks" in targets or (paired and len(split_folders.class_folders(folder)) == 2)
    ):
        raise lacks(str(folder), "labels", ["images", "segmentation masks"])
    if "bounding_boxes" in targets or ("bounding_boxes" in extras and box_folder.has_boxes(folder)):
        whole = _with_boxes(folder, root, data)
    elif "instance_masks" in targets:
        whole = _with_objects(folder, root, data)
    elif referred or "depths" in targets:
        whole = _with_pairs(folder, data, reference_folder if referred else depth_folder)
    elif masked:
        whole = _with_masks(folder, data)
    elif "labels" in targets:
        whole = _labeled(folder, split_folders.class_folders(folder), data)
    else:
        whole = _images_alone(folder / "images" if paired else folder, data, "labels" in extras and not paired)
    return groups.added(whole, [root], data).part(split, base)


def _yolo_of(folder, root, targets):
    """Returns the file of a dataset in YOLO's layout, a path, or `None` if the split has its targets in another."""
    others = {
        "bounding_boxes": box_folder.has_boxes,
        "segmentation_masks": mask_folder.is_paired,
        "instance_masks": instance_folder.has_objects,
    }
    asked = root.is_dir() and any(name in targets and not has(folder) for name, has in others.items())
    return yolo_dataset.find(root) if asked or root.is_file() else None


def _table_of(folder, root, columns, targets):
    """Returns the table that has the targets of a folder's images, a path, or `None` if other files have them."""
    names = {"images", *table.CELLS, *(["classes"] if "multilabels" in targets else [])}
    unknown = sorted({*columns} - names)
    if unknown:
        raise ValueError(
            f"`data.columns` may name the columns of images, {', '.join(table.CELLS)}. Received: {unknown[0]!r}"
        )
    above = [folder, *(place for place in folder.parents if root in (place, *place.parents))]
    file = next(filter(None, map(table_file.find, above)), None)
    wanted_targets = [name for name in targets if name in table.CELLS]
    if "texts" not in targets and "segmentation_masks" not in columns:  # masks are files next to the images then
        wanted_targets = [name for name in wanted_targets if name != "segmentation_masks"]
    apart = groups.alone(columns)  # their table need not have the targets, see `groups.added`
    if file is None:
        stated_columns = () if apart else columns
        beyond = [name for name in (*wanted_targets, *stated_columns) if name != "labels" or name in columns]
        if beyond:
            raise ValueError(
                f"{str(root)!r} must have a table, {' or '.join(table_file.NAMES)}, with {beyond[0]} for each image. "
                "Received: none"
            )
        return None
    header = table_file.columns_of(file)
    if wanted_targets and (
        wanted_targets != ["labels"] or all(table.column_of(name, columns, header) for name in ("images", "labels"))
    ):
        return file
    if columns and not apart:
        raise ValueError(
            f"`data.columns` is for labels or numbers that {file.name} has. "
            f"Received: {checks.shown(columns)}, and its columns "
            f"{', '.join(map(repr, header[: table_file.SHOWN]))}"
        )
    if wanted_targets and len(split_folders.inside(folder)) < 2:
        raise ValueError(
            f"{str(file)!r} must begin with the names of its columns, among them 'file_name' and 'label', or "
            f"data.columns={{'images': 'COLUMN', 'labels': 'COLUMN'}} must name them. Received: "
            f"{', '.join(map(repr, header[: table_file.SHOWN]))}, and {str(folder)!r} has no class folders either"
        )
    return None


def _with_table(file, folder, data, targets, split):
    rows = table.read(file, folder, data.columns or {}, targets, split, skip=data.bad_images == "skip")
    unnamed = sum(map(is_image, files_in(folder))) - rows.below
    if unnamed > 0:
        left_out(f"{unnamed} images that {file.name} does not name")
    masks, checked = rows.targets.get("segmentation_masks"), None
    if (others := rows.targets.get("references", masks)) is not None:
        checked = reference_folder.seen(others) if masks is None else mask_folder.seen(rows.paths, masks, data)
    digests, readable = _readable(rows.paths, data, checked)
    held = {name: values[readable] for name, values in rows.targets.items()}
    if checked is not None:
        checked, what = [checked[i] for i in readable], reference_folder.WHAT if masks is None else "mask"
        mask_folder.check_sizes([(rows.paths[i], others[i]) for i in readable], checked, data, what)
    if masks is not None:
        held["segmentation_masks"] = mask_folder.items(masks[readable], checked, data)
    of_rows = None if rows.groups is None else rows.groups[readable]
    paths = np.array(rows.paths, object)[readable]
    return Source(paths, held, rows.class_names, files=True, groups=of_rows, digests=digests)


def _labeled(folder, names, data):
    paths, labels = image_files(folder, names)
    class_names, numbers = split_folders.names_of(names)
    labels = np.array(numbers, "int32")[labels]
    digests, readable = _readable(paths, data)
    paths, labels = np.array(paths, object)[readable], labels[readable]
    _check_filled(folder, class_names, {*labels.tolist()})
    return Source(paths, {"labels": labels}, tuple(class_names), files=True, digests=digests)


def _images_alone(folder, data, with_labels):
    """Returns all images under a folder; with labels, if it consists of two class folders with images or more."""
    if with_labels and not any(is_image(path.name) for path in folder.iterdir() if not is_hidden(path.name)):
        names = split_folders.class_folders(folder)
        _, labels = image_files(folder, names, report=False)
        if len({*labels.tolist()}) == len(names) > 1:
            return _labeled(folder, names, data)
    paths, _ = image_files(folder, ["."])
    if not paths:
        raise ValueError(f"{str(folder)!r} must contain images ({', '.join(IMAGE_ENDINGS)}). Received: none")
    digests, readable = _readable(paths, data)
    return Source(np.array(paths, object)[readable], {}, (), files=True, digests=digests)


def _with_masks(folder, data):
    if not mask_folder.is_paired(folder):
        raise ValueError(
            f"{str(folder)!r} must contain the folders 'images' and 'masks'. Received: "
            f"{', '.join(sorted(entry.name for entry in folder.iterdir())[:10]) or 'an empty folder'}"
        )
    images, _ = image_files(folder / "images", ["."])
    pairs = mask_folder.pairs(images, folder)
    return _masked(pairs, mask_folder.seen(images, [mask for _, mask in pairs], data), data)


def _with_objects(folder, root, data):
    pairs, checked, *of_classes = instance_folder.read(folder, root, data.bad_images == "skip")
    return _masked(pairs, checked, data, *of_classes, target="instance_masks")


def _masked(pairs, checked, data, class_names=(), stuff=(), target="segmentation_masks"):
    """Returns the source of pairs of an image and what its mask is from, with the `masks.Mask` of each."""
    digests, readable = _readable([path for path, _ in pairs], data, checked)
    pairs, checked = [pairs[i] for i in readable], [checked[i] for i in readable]
    mask_folder.check_sizes(pairs, checked, data)
    masks = {target: mask_folder.items([mask for _, mask in pairs], checked, data)}
    images = np.array([path for path, _ in pairs], object)
    return Source(images, masks, class_names, files=True, digests=digests, stuff=stuff)


def _with_pairs(folder, data, reader):
    pairs, checked = reader.inspected(image_files(folder / "images", ["."])[0], folder)
    digests, readable = _readable([path for path, _ in pairs], data, checked)
    pairs = [pairs[i] for i in readable]
    mask_folder.check_sizes(pairs, [checked[i] for i in readable], data, reader.WHAT)
    images, others = np.array(pairs, object).T
    return Source(images, {reader.TARGET: others}, files=True, digests=digests)


def _with_boxes(folder, root, data):
    if not box_folder.has_boxes(folder):
        names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:10]) or "an empty folder"
        raise ValueError(
            f"{str(folder)!r} must contain 'annotations.json' (COCO), or the folders 'images' and 'annotations' "
            f"(Pascal VOC), or {str(root)!r} 'data.yaml' (YOLO). Received: {names}"
        )
    class_names, paths, objects = box_folder.read(folder, root)
    if not paths:
        raise ValueError(f"{str(folder)!r} must contain images ({', '.join(IMAGE_ENDINGS)}). Received: none")
    inspected = inspection.inspect_all(paths, data.crops_per_image)
    objects = [mask_frames.seen_boxes(*pair) for pair in zip(objects, inspected)]
    digests, readable = _readable(paths, data, objects)
    paths, objects = [paths[i] for i in readable], [objects[i] for i in readable]
    sizes = (inspected[i].size for i in readable)
    boxes = box_folder.array(objects, sizes, paths, class_names, data.bad_images == "skip")
    return Source(np.array(paths, object), {"bounding_boxes": boxes}, class_names, files=True, digests=digests)


def _with_yolo(file, split, data, targets):
    base, dataset = split.partition("[")[0], yolo_dataset.read(file)
    known = ("bounding_boxes", "segmentation_masks", "instance_masks")
    other = [name for name in targets if name not in known]
    if other or (data.columns and not groups.alone(data.columns)):
        names = ["images", *(name.replace("_", " ") for name in known)]
        raise lacks(str(file), other[0] if other else "columns", names)
    paths, skip = yolo_dataset.images(dataset, base), data.bad_images == "skip"
    if "bounding_boxes" in targets:
        labels = yolo_labels.boxes(yolo_dataset.labels_of(paths), len(dataset.names), skip)
        digests, readable = _readable(paths, data, labels)
        boxes = {"bounding_boxes": padded([labels[i].rows for i in readable])}
        whole = Source(np.array(paths, object)[readable], boxes, dataset.names, files=True, digests=digests)
    elif "instance_masks" in targets:
        labels = yolo_dataset.labels_of(paths)
        checked = yolo_labels.instances(labels, paths, dataset.names, skip)
        whole = _masked([*zip(paths, labels)], checked, data, dataset.names, target="instance_masks")
    elif targets:
        labels = yolo_dataset.labels_of(paths)
        checked = yolo_labels.masks(labels, paths, dataset.names, skip)
        whole = _masked([*zip(paths, labels)], checked, data, (yolo_labels.BACKGROUND, *dataset.names))
    else:
        digests, readable = _readable(paths, data)
        whole = Source(np.array(paths, object)[readable], {}, (), files=True, digests=digests)
    return groups.added(whole, [file.parent, dataset.folder], data).part(split, base)


def _readable(paths, data, targets=None):
    """Decodes every image once. Unreadable ones are an error or a warning; so are those whose masks or boxes are.

    Args:
        paths: Image files.
        data: A `keras_vit.config.Data`.
        targets: A `masks.Mask` or the `box_files.Objects` of each image, if it has one.

    Returns:
        Hashes of the readable files, one row for each, and the positions of these files among `paths`.
    """
    checked = inspection.inspect_all(paths, data.crops_per_image)
    faults, why = checked.faults, "cannot be read"
    if targets:
        kind = getattr(targets[0], "what", "its boxes")
        wrong = {i: f"{kind}: {of.fault}" for i, of in enumerate(targets) if of.fault}
        faults, why = wrong | faults, "cannot be used" if wrong else why
    bad = [f"{shown(paths[i])} ({faults[i]})" for i in sorted(faults)]
    refuse_or_leave_out(bad, len(paths), "images", data.bad_images, why)
    readable = np.delete(np.arange(len(paths)), sorted(faults))
    records = checked.records[readable]
    digests, deep = records["digest"], records["highest"][records["highest"] >= 0]
    warn_if_shallow(deep.max(initial=-1), f"{len(deep)} of {len(paths)} images have 16 bits per channel and")
    if targets is not None:
        of_targets = np.frombuffer(b"".join(targets[i].digest for i in readable), "uint8")
        digests = np.hstack([digests, of_targets.reshape(len(readable), -1)])
    return digests, readable


def _check_filled(folder, class_names, labels):
    """Raises ValueError unless there are two classes, and every one has images; `labels` are those with images."""
    if len(labels) < 2:
        raise ValueError(
            f"{str(folder)!r} must contain at least two class folders with images ({', '.join(IMAGE_ENDINGS)}). "
            f"Received: {len(class_names)} folders, {len(labels)} with images"
        )
    if len(labels) < len(class_names):
        empty = [name for label, name in enumerate(class_names) if label not in labels]
        raise ValueError(f"{str(folder)!r} has class folders without images: {', '.join(empty[:10])}.")
