"""Clips with boxes, in COCO's file beside them: a row of its `images` names a clip, boxes are of its middle frame."""

import numpy as np

from keras_vit.data.clip_source import Clips, inspect_all, readable
from keras_vit.data.readers import box_files, box_folder, coco_files, groups, split_folders
from keras_vit.utils import checks, clip_files
from keras_vit.utils.folders import shown


def read(root, split, data, sampling):
    """Reads a split of a folder of clips with boxes.

    Args:
        root: The folder, a path; with folders of splits, each with a file of its own.
        split: Such as `"train"` or `"all[:80%]"`.
        data: A `keras_vit.config.Data`.
        sampling: A `clip_source.Sampling`.

    Returns:
        A `Clips` with `"bounding_boxes"`, of the middle frame of each clip.

    Raises:
        ValueError: If there is no such file, a clip that it names does not exist or cannot be read, or a box is wrong.
    """
    if data.columns and not groups.alone(data.columns):
        raise ValueError(
            "Of clips with boxes a table has groups alone, data.columns={'groups': 'COLUMN'}. "
            f"Received: data.columns={checks.shown(data.columns)}"
        )
    place = split_folders.place_of(root, split, "clips")
    file = coco_files.file_of(place)
    if file is None:
        names = ", ".join(sorted(entry.name for entry in place.iterdir())[:10]) or "an empty folder"
        raise ValueError(
            f"{str(place)!r} must contain {coco_files.NAMES[0]!r} (COCO), whose images are clips, with boxes of their "
            f"middle frames. Received: {names}"
        )
    names, written = box_files.coco(file)
    others = [name for name in written if not clip_files.is_clip(name)]
    if others or not written:
        received = f"{len(others)} other files, such as {shown(others[0])!r}" if others else "none"
        raise ValueError(f"{str(file)!r} must name clips ({', '.join(clip_files.ENDINGS)}). Received: {received}")
    class_names = tuple(dict.fromkeys(names.values()))
    paths, objects = coco_files.images_of(place, file, written, what="clips"), [*written.values()]
    faults = {i: f"its boxes: {each.fault}" for i, each in enumerate(objects) if each.fault}
    digests, kept = readable(paths, data.bad_images, faults, "boxes")
    paths, objects, checked = [paths[i] for i in kept], [objects[i] for i in kept], inspect_all(paths)
    if (checked.records["frames"][kept] == 1).all():
        raise ValueError(
            f"{str(file)!r} must name clips of several frames: images are for Detect. Received: {len(kept)} files of "
            "one frame"
        )
    skip = data.bad_images == "skip"
    boxes = box_folder.array(objects, [checked[i].size for i in kept], paths, class_names, skip=skip)
    digests = np.hstack([digests, np.frombuffer(b"".join(o.digest for o in objects), "uint8").reshape(len(kept), -1)])
    targets = {"bounding_boxes": boxes}
    whole = Clips(np.array(paths, object), targets, class_names, files=True, digests=digests, sampling=sampling)
    return groups.added(whole, [root], data).part(split, split.partition("[")[0])
