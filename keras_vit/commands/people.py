"""The command for keypoints of people: poses."""

from typing import Annotated

from keras_vit.commands.many import end, files_of, needed, shown
from keras_vit.commands.types import MODEL, File, Flag, Folder, Images, Text, about
from keras_vit.utils import checks

PERSON = "person"  # the category of boxes that are used, where they have several


def print_poses(
    images: Images = (),
    *,
    model: Annotated[Text, about(f"{MODEL}, such as hf://usyd-community/vitpose-base-simple; required.")] = None,
    boxes: Annotated[File, about("JSON file of a box for each person: COCO's results, as predict writes.")] = None,
    json: Annotated[File, about("File for all keypoints, as COCO's results.")] = None,
    to: Annotated[Folder, about("Folder for pictures with the skeletons.")] = None,
    flip_test: Flag = False,
) -> None:
    """Find the keypoints of people in boxes, with ViTPose.

    Args:
        images: Image files, and folders of them.
        flip_test: Average the heat maps with those of the mirrored person, in twice the time.
    """
    from keras_vit import frozen
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.plots.poses import draw_poses
    from keras_vit.runs import tables
    from keras_vit.utils.files import check_free, replacing
    from keras_vit.utils.images import read_pixels

    files, fine = files_of(images), []
    if boxes is None:
        raise ValueError("--boxes must name a file of boxes, as a detector's predict --json writes. Received: none")
    known = of_images(boxes)
    if json is not None:
        check_free(json, False)
    places = [None if to is None else to / f"{file.stem}.png" for file in files]
    for place in filter(None, places):
        check_free(place, False)
    built = from_pretrained(needed(model))
    with tables.written({} if json is None else {"json": json}, ()) as add:
        for file, place in zip(files, places):
            try:
                pixels = read_pixels(file, 3)
            except ValueError as error:
                print(f"left out: {error}")
                fine.append(False)
                continue
            fine.append(True)
            poses = frozen.estimate_poses(built, pixels, known.get(file.name, ()), flip_test=flip_test)
            add([{"image_id": file.name, "category": PERSON, **pose} for pose in poses])
            if place is not None:
                from PIL import Image

                to.mkdir(parents=True, exist_ok=True)
                with replacing(place) as temporary:
                    Image.fromarray(draw_poses(pixels, poses)).save(temporary, "PNG")
            scores = ", ".join(f"{pose['score']:.2f}" for pose in poses)
            people = "1 person" if len(poses) == 1 else f"{len(poses)} people"
            print(f"{shown(file)}: {people}{f', scores {scores}' if poses else ''}", flush=True)
    end(fine)


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
