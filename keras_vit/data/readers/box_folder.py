"""Folders of images with boxes: which belong to which image, and what is wrong with them."""

import math
import pathlib

from keras_vit.data.readers import box_files, coco_files, split_folders
from keras_vit.data.readers.box_arrays import has_area, padded
from keras_vit.data.readers.mask_folder import more
from keras_vit.models.outputs import ignored
from keras_vit.utils.folders import ending, files_in, in_folder, shown
from keras_vit.utils.names import composed
from keras_vit.utils.warned import left_out, named


def has_boxes(folder):
    """Returns whether a folder contains boxes: COCO's JSON, or the folders `images` and `annotations`."""
    return coco_files.file_of(folder) is not None or all((folder / name).is_dir() for name in ("images", "annotations"))


def read(folder, root):
    """Reads the objects of each image of a folder.

    Args:
        folder: Contains `annotations.json` (COCO) and the images that it names, directly or in `images`; or `images`,
            and for `images/NAME.jpg` the file `annotations/NAME.xml` (Pascal VOC).
        root: The folder of all splits, from which classes of XML files are taken.

    Returns:
        The names of the classes, the paths of the images, and the `box_files.Objects` of each.

    Raises:
        ValueError: If there is no such file, or images and boxes do not belong together.
    """
    file = coco_files.file_of(folder)
    if file is not None:
        return _coco(folder, file)
    images = in_folder(folder / "images")
    written = {}  # .xml or .XML, in either form of Unicode
    for path in _xml_files(folder):
        if written.setdefault(_name(path), path) != path:
            raise ValueError(f"An image must have one file of boxes. Received: {path.name!r} in two writings of .xml")
    names = [folder / "annotations" / path.relative_to(folder / "images") for path in images]
    files = [written.get(_name(name), name.with_suffix(".xml")) for name in names]
    lone = sorted(set(written.values()) - set(files))
    if lone:
        raise ValueError(f"Every file of boxes must have an image. Received: {str(lone[0])!r} without{more(lone)}")
    if len(set(files)) < len(files):
        twice = next(path for i, path in enumerate(images) if files[i] in files[:i])
        raise ValueError(f"Each image must have a name of its own, since boxes have the same. Received: {str(twice)!r}")
    objects = {path: box_files.voc(path) for path in [*files, *_other_xml(root, folder)]}
    everywhere = {name for file_objects in objects.values() for name in file_objects.names}
    return tuple(sorted(everywhere)), [str(path) for path in images], [objects[path] for path in files]


def array(objects, sizes, paths, class_names, skip=False):
    """Returns the boxes of all images, `(images, most, 5)`, as in `boxes`.

    Args:
        objects: The `box_files.Objects` of each image.
        sizes: `(width, height)` of each image.
        paths: Of the images, for errors.
        class_names: Names of the classes.
        skip: Whether boxes without area, outside the image, or in an image of another size are left out, and printed,
            instead of an error.

    Raises:
        ValueError: For such boxes, boxes in an image of another size, an unknown class, or boxes in shares of images.
    """
    highest = max((max(edges) for each in objects for edges in each.edges), default=math.inf)
    if highest <= 1:
        raise ValueError(
            f"Boxes must be in pixels. Received: numbers up to {highest:g} for {shown(paths[0])!r} and others, which "
            "look like shares of the image"
        )
    bad, rows, indices = [], [], {name: index for index, name in enumerate(class_names)}
    for file_objects, size, path in zip(objects, sizes, paths):
        rows.append([])
        if file_objects.size not in (None, tuple(size)):
            of = f"{file_objects.size[0]} x {file_objects.size[1]} pixels, and the image has {size[0]} x {size[1]}"
            bad.append(f"{shown(path)}: its boxes are in {of}")
            continue
        for name, edges, ignore in zip(file_objects.names, file_objects.edges, file_objects.ignored):
            if name not in indices:
                raise ValueError(f"An object must be of a class of {class_names}. Received: {name!r} in {shown(path)}")
            fault = box_files.fault_of(edges, size)
            shares = [] if fault else [edge / side for edge, side in zip(edges, (size[1], size[0]) * 2)]
            if fault or not has_area(shares):
                bad.append(f"{shown(path)}, {name}: {fault or box_files.flat(edges)}")
                continue
            shares = (min(max(share, 0.0), 1.0) for share in shares)
            rows[-1].append([*shares, ignored(indices[name]) if ignore else indices[name]])
    if bad:
        if not skip:
            raise ValueError(
                f"{len(bad)} boxes are wrong. Repair them, or leave them out with data.bad_images=skip:\n  {named(bad)}"
            )
        left_out(f"{len(bad)} boxes, which are wrong", bad)
    return padded(rows)


def _coco(folder, file):
    names, files = box_files.coco(file)
    return tuple(dict.fromkeys(names.values())), coco_files.images_of(folder, file, files), list(files.values())


def _name(path):
    return composed(str(path.with_suffix("")))


def _other_xml(root, folder):
    """Returns the XML files of the other splits: all splits have the classes of all."""
    splits = [] if root == folder else [root / name for name in split_folders.inside(root) if root / name != folder]
    return [path for split in splits for path in _xml_files(split)]


def _xml_files(split):
    """Returns the files of boxes of a split, sorted; hidden ones are left out, as among the images."""
    return [pathlib.Path(path) for path in files_in(split / "annotations") if ending(path) == ".xml"]
