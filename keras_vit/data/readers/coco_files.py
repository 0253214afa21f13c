"""JSON files of COCO: one for all images of a folder, with categories, and annotations of each image."""

import collections
import json
import pathlib
import posixpath

from keras_vit.data.readers.paired_files import more
from keras_vit.utils import files
from keras_vit.utils.clip_files import is_clip
from keras_vit.utils.folders import files_in, in_folder
from keras_vit.utils.names import Written, composed
from keras_vit.utils.warned import left_out

NAMES = ("annotations.json", "_annotations.coco.json")  # the second is what Roboflow exports
MOST_BYTES = 2**31  # that of LVIS has 1.1 GB
UNREADABLE = (OSError, ValueError, TypeError, LookupError, OverflowError, AttributeError)


def file_of(folder):
    """Returns the JSON file of a folder, or `None`."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def read(path, row, compact=None):
    """Reads a JSON file.

    Args:
        path: The file.
        row: Function of an annotation, and of the names of the classes by their ids, which returns what is kept of it;
            `None` leaves it out.
        compact: If given, called with each object of the JSON as it is parsed; its result takes the object's place.

    Returns:
        The entries of the categories by their ids, sorted by these, with names in one form of Unicode; and a dictionary
        from each image's `file_name` to a pair: its rows, a list, and its `(width, height)`, or `None`.

    Raises:
        ValueError: If it is no such file.
    """
    try:
        content = _parsed(files.read(path, MOST_BYTES), compact)
        categories, images = (_by_id(content[kind], kind) for kind in ("categories", "images"))
        categories = {
            key: {**categories[key], "name": _composed(categories[key]["name"])} for key in sorted(categories)
        }
        names = {key: entry["name"] for key, entry in categories.items()}
        rows = {key: [] for key in images}
        for entry in content["annotations"]:
            if (found := row(entry, names)) is not None:
                rows[entry["image_id"]].append(found)
        if not all(isinstance(name, str) for name in [*names.values(), *(one["file_name"] for one in images.values())]):
            raise ValueError("names of categories and files must be texts")
        named = {posixpath.normpath(one["file_name"]): (rows[key], _size(one)) for key, one in images.items()}
    except KeyError as error:
        raise ValueError(f"{str(path)!r} is no JSON of COCO: it has no {error.args[0]!r} where one must be.") from None
    except UNREADABLE as error:
        raise ValueError(f"{str(path)!r} is no JSON of COCO: {getattr(error, 'strerror', None) or error}.") from None
    if content["annotations"] and all(entry.get("iscrowd") == 1 for entry in content["annotations"]):
        raise ValueError(
            f"{str(path)!r} must have objects that are no crowds: of those with iscrowd 1 nothing is learned. CVAT "
            f"writes it for all masks: set it to 0. Received: {len(content['annotations'])} crowds"
        )
    if len(named) < len(images):
        raise ValueError(f"{str(path)!r} must name each image once. Received: {len(images)} images, {len(named)} names")
    return categories, named


def is_crowd(entry, what="annotation"):
    """Returns whether `iscrowd` of an annotation is 1; raises ValueError if it is neither 0 nor 1."""
    if entry.get("iscrowd", 0) not in (0, 1):
        raise ValueError(f"iscrowd of {what} {entry.get('id')} must be 0 or 1: {entry['iscrowd']!r}")
    return bool(entry.get("iscrowd"))


def images_of(folder, file, names, masks=None, what="images"):
    """Returns the paths of the images, or clips, that a JSON file names, texts; warns of others.

    Args:
        folder: Contains them, directly or in `images`; clips also in `clips`.
        file: The JSON file, for errors.
        names: Their `file_name`s.
        masks: A folder in `folder` whose pictures are none of them.
        what: `"images"` or `"clips"`.

    Raises:
        ValueError: If one does not exist, or is named twice; or if there is none.
    """
    base = next((folder / name for name in (what, "images") if (folder / name).is_dir()), folder)
    written = Written()
    paths = [pathlib.Path(written.path(base / name)) for name in names]
    missing = [str(path) for path in paths if ".." in path.parts or not path.is_file()]
    if missing:
        raise ValueError(f"{str(file)!r} must name {what} that exist. Received: {missing[0]!r}{more(missing)}")
    if len(set(paths)) < len(paths):
        twice = next(path for path, count in collections.Counter(paths).items() if count > 1)
        raise ValueError(f"{str(file)!r} must name each image once. Received: {twice.name!r} in two forms of Unicode")
    every = in_folder(base) if what == "images" else map(pathlib.Path, filter(is_clip, files_in(base)))
    unknown = len({path for path in every if masks not in path.parents} - set(paths))
    if unknown:
        left_out(f"{unknown} {what} that {file.name} does not name")
    return list(map(str, paths))


def _composed(name):
    return composed(name) if isinstance(name, str) else name


def _parsed(data, compact):
    try:
        return json.loads(data, object_hook=compact)
    except RecursionError:
        raise ValueError("its brackets are too deep") from None


def _size(image):
    """Returns the `(width, height)` that is said of an image, or `None`."""
    sides = tuple(image.get(side) for side in ("width", "height"))
    if not all(sides):
        return None
    if not all(type(side) in (int, float) and side > 0 for side in sides):
        raise ValueError(f"width and height of {image['file_name']!r} must be positive numbers: {sides}")
    return sides


def _by_id(entries, kind):
    """Returns entries by their ids, each with one of its own."""
    by_id = {}
    for entry in entries:
        if by_id.setdefault(entry["id"], entry) != entry:
            raise ValueError(
                f"two of its {kind} have the id {entry['id']}, as of two files put together. Give each an id of its own"
            )
    return by_id
