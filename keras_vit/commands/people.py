"""The command for keypoints of people: poses."""

from typing import Annotated

from keras_vit.commands.many import files_of, needed, show, shown, tables_of
from keras_vit.commands.types import MODEL, File, Flag, Folder, Images, Text, about
from keras_vit.utils import checks

PERSON = "person"  # the category of boxes that are used, where they have several


def print_poses(
    images: Images = (),
    *,
    model: Annotated[Text, about(f"{MODEL}, such as hf://usyd-community/vitpose-base-simple; required.")] = None,
    boxes: Annotated[File, about("JSON file of a box for each person: COCO's results, as predict writes.")] = None,
    json: Annotated[File, about("File for all keypoints, as COCO's results.")] = None,
    csv: Annotated[File, about("File for the same as a table, a column for each number.")] = None,
    to: Annotated[Folder, about("Folder for pictures with the skeletons.")] = None,
    flip_test: Flag = False,
) -> None:
    """Find the keypoints of people in boxes, with ViTPose.

    Args:
        images: Image files, and folders of them.
        flip_test: Average the heat maps with those of the mirrored person, in twice the time.
    """
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.inference.poses import estimate_poses
    from keras_vit.models.metadata import stated_labels
    from keras_vit.plots.poses import draw_poses
    from keras_vit.runs import tables
    from keras_vit.utils.files import check_free, replacing
    from keras_vit.utils.images import read_pixels

    files = files_of(images)
    if boxes is None:
        raise ValueError("--boxes must name a file of boxes, as a detector's predict --json writes. Received: none")
    boxes_of, paths = of_images(boxes), tables_of(json, csv)
    for file in files if to is not None else ():
        check_free(to / f"{file.stem}.png", False)
    built = from_pretrained(needed(model))

    def found():
        for file in files:
            try:
                pixels = read_pixels(file, 3)
            except ValueError as error:
                yield file, None, error
                continue
            poses = estimate_poses(built, pixels, boxes_of.get(file.name, ()), flip_test=flip_test)
            if to is not None:
                from PIL import Image

                to.mkdir(parents=True, exist_ok=True)
                with replacing(to / f"{file.stem}.png") as temporary:
                    Image.fromarray(draw_poses(pixels, poses)).save(temporary, "PNG")
            yield file, poses, None

    def line(file, poses):
        scores = ", ".join(f"{pose['score']:.2f}" for pose in poses)
        people = "1 person" if len(poses) == 1 else f"{len(poses)} people"
        return f"{shown(file)}: {people}{f', scores {scores}' if poses else ''}"

    def rows(file, poses):
        return [{"image_id": file.name, "category": PERSON, **pose} for pose in poses]

    names = stated_labels(built) or range(built.output_shape[-1])
    columns = ("image_id", "category", "x", "y", "width", "height", "score", *tables.of_points(names))
    show(found(), len(files), line, paths, rows, columns)


def of_images(path):
    """Returns the boxes in a file of COCO's results: a dictionary from the names of images to lists of entries.

    Raises:
        ValueError: If it is another file.
    """
    import json

    from keras_vit.utils import files

    try:
        entries = json.loads(files.read(path))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} must be a JSON file of boxes: {error}") from None
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("image_id"), str) and "bbox" in entry for entry in entries
    ):
        raise ValueError(
            f"{str(path)!r} must be a list of boxes, each with the image's file name as 'image_id', and a 'bbox'. "
            f"Received: {checks.shown(entries):.80}"
        )
    found = {}
    for entry in entries:
        if entry.get("category", PERSON) == PERSON:
            found.setdefault(entry["image_id"], []).append(entry)
    return found
