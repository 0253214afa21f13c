"""The command for boxes of what words name: find."""

from typing import Annotated

from keras_vit.commands.many import files_of, needed, show, shown, tables_of
from keras_vit.commands.types import MODEL, TOKENS, File, Flag, Images, Number, Text, Texts, about

COLUMNS = ("image_id", "category", "x", "y", "width", "height", "score")


def print_found(
    images: Images = (),
    *,
    classes: Annotated[Texts, about("Names of the classes, each in quotes; required.", "NAME ...")] = (),
    model: Annotated[
        Text, about(f"{MODEL} of OWL-ViT or OWLv2, such as hf://google/owlv2-base-patch16-ensemble; required.")
    ] = None,
    prompts: Annotated[Texts, about("Texts with {} for the name; the name alone by default.")] = (),
    tokens: Annotated[Text, about(TOKENS)] = None,
    threshold: Number = 0.1,
    suppression: Number = None,
    to: Annotated[File, about("File to write, which ends in .keras: a detector of these classes.")] = None,
    overwrite: Flag = False,
    json: File = None,
    csv: File = None,
) -> None:
    """Find boxes of what words name, without training, with OWL-ViT or OWLv2.

    Args:
        images: Image files, and folders of them.
        threshold: The score that a box must exceed.
        suppression: Overlap from which on the lower of two boxes of a class is left out.
        json: File for all boxes, as COCO's results.
        csv: File for the same as a table.
        overwrite: Replace the detector that is there.
    """
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.explain.towers import own_words
    from keras_vit.inference.open_detection import detect, zero_shot_detector
    from keras_vit.inference.queries import Eyes, queries_for
    from keras_vit.utils.files import check_free, destination

    if to and to.suffix != ".keras":
        raise ValueError(f"--to must end in .keras. Received: {str(to)!r}")
    if to:
        check_free(to, overwrite)
    files = files_of(images) if images or not to else []
    paths = tables_of(json, csv)
    eyes = Eyes(built := from_pretrained(needed(model)))
    tokens = tokens or (None if own_words(eyes.text) else model)
    queries = queries_for(eyes, classes, tokens, prompts or None)
    if to:
        with destination(to, overwrite) as temporary:
            zero_shot_detector(built, queries, threshold=threshold).save(temporary)
        print(to)
    if not files:
        return

    def found():
        for file in files:
            try:
                [one] = detect(built, file, queries, threshold=threshold, suppression=suppression)
            except ValueError as error:
                yield file, None, error
                continue
            yield file, one, None

    def line(file, one):
        counts = {name: one.classes.count(name) for name in dict.fromkeys(one.classes)}
        return f"{shown(file)}: {', '.join(f'{count} {name}' for name, count in counts.items()) or 'nothing'}"

    def rows(file, one):
        boxes = one.boxes.astype("float64")
        boxes[:, 2:] -= boxes[:, :2]
        each = zip(one.classes, boxes.round(2).tolist(), one.scores)
        return [
            {"image_id": file.name, "category": name, "bbox": b, "score": round(float(s), 4)} for name, b, s in each
        ]

    show(found(), len(files), line, paths, rows, COLUMNS)
