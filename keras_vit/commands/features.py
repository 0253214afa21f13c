"""Commands for features of frozen models: embed, nearest, knn, probe."""

import pathlib
from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands.many import files_of, needed, show, shown, tables_of
from keras_vit.commands.types import (
    FRAMES,
    MODEL,
    TOKENS,
    Count,
    File,
    Flag,
    Folder,
    Images,
    Text,
    Texts,
    about,
)

Source = Annotated[Positional[pathlib.Path], about("Folder of images, searched with all its subfolders.", "FOLDER")]
Index = Annotated[Positional[pathlib.Path], about("A file that the command embed wrote.", "INDEX")]


def write_vectors(
    folder: Source,
    *,
    model: Annotated[Text, about(f"{MODEL}; required.")] = None,
    to: Annotated[File, about("File to write, which ends in .npz; vectors.npz by default.")] = pathlib.Path(
        "vectors.npz"
    ),
    tokens: Flag = False,
    projected: Flag = False,
    frames: Annotated[Count, about(FRAMES)] = None,
    share: Annotated[Text, about('Such as "0/4": the first of four machines takes every fourth image.')] = "0/1",
    overwrite: Flag = False,
    tiles: Flag = False,
) -> None:
    """Write the vectors of a folder's images, or clips, into one file. The same command resumes after an interruption.

    Later, it adds new images to the file.

    Args:
        tokens: A vector for each patch instead of one for each image.
        projected: Vectors after CLIP's projection, which are compared with those of texts.
        overwrite: Compute all again, instead of keeping what is there, or unfinished work of another model or images.
        tiles: Refused: vectors are of images at the model's size. Of anomaly and pca.
    """
    from keras_vit import frozen
    from keras_vit.frozen.embed import embed

    if tiles:
        raise ValueError("embed does not see pictures in tiles; anomaly and pca do. Received: --tiles")
    parts = tuple(int(part) if part.isdecimal() else part for part in share.split("/"))
    out, changes = embed(
        folder, needed(model), to, tokens=tokens, projected=projected, share=parts, overwrite=overwrite, frames=frames
    )
    added = changes["kept"] or changes["changed"] or changes["dropped"]
    how = ", ".join(f"{count:,} {name}" for name, count in changes.items())
    print(f"{shown(out)}: {frozen.count(out):,} images{f' ({how})' if added else ''}")


def print_nearest(
    index: Index,
    images: Images = (),
    *,
    text: Texts = (),
    k: Count = 5,
    model: Annotated[Text, about(f"{MODEL}; the index's own by default.")] = None,
    tokens: Annotated[Text, about(TOKENS)] = None,
    folder: Annotated[Folder, about("Where the index's folder is now, if it was moved.")] = None,
    json: File = None,
    csv: File = None,
) -> None:
    """Find the images of an index that are most similar to others, or to texts.

    Args:
        images: Image files, and folders of them.
        text: Texts in place of images, each in quotes.
        k: How many to find for each.
        json: File for all answers, one entry for each image or text and what was found for it.
        csv: File for the same as a table.
    """
    from keras_vit import frozen
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.explain.towers import usual_tokens
    from keras_vit.frozen import neighbors

    if text and images:
        raise ValueError(f"Pass images or --text. Received: both, such as {images[0]!r} and {text[0]!r}")
    paths, opened = tables_of(json, csv), frozen.load_index(index, folder=folder)
    queries = list(text) or files_of(images)
    if text:
        name = neighbors.named(opened, model)
        model = from_pretrained(name, part="both")
        answers = frozen.nearest(opened, queries, k, model=model, tokens=tokens or usual_tokens(model, name))
        found = [(each, answer, None) for each, answer in zip(queries, answers)]
    else:
        found = neighbors.one_by_one(opened, queries, k, model)
    show(
        found,
        len(queries),
        lambda each, answers: "\n".join([f"{shown(each)}:", *(f"  {n:.3f}  {shown(path)}" for path, n in answers)]),
        paths,
        lambda each, answers: [
            {"image_id": str(each), "name": path, "value": round(similarity, 6)} for path, similarity in answers
        ],
    )


def print_votes(
    index: Index,
    images: Images = (),
    *,
    k: Count = 20,
    top: Count = 3,
    model: Annotated[Text, about(f"{MODEL}; the index's own by default.")] = None,
    json: File = None,
    csv: File = None,
) -> None:
    """Name the classes of images by the nearest ones of an index, whose folders are the classes.

    Args:
        images: Image files, and folders of them.
        k: How many neighbors vote.
        top: How many classes to name.
        json: File for all answers, one entry for each image and class that is named.
        csv: File for the same as a table.
    """
    from keras_vit.frozen import neighbors
    from keras_vit.utils import checks

    checks.positive(top=top)
    files, paths = files_of(images), tables_of(json, csv)

    def best(shares):
        return [*shares.items()][:top]

    show(
        neighbors.one_by_one(index, files, k, model, vote=True),
        len(files),
        lambda file, shares: f"{shown(file)}: {', '.join(f'{shown(name)} {n:.1%}' for name, n in best(shares))}",
        paths,
        lambda file, shares: [
            {"image_id": str(file), "name": name, "value": round(share, 6)} for name, share in best(shares)
        ],
    )


def write_probe(
    index: Index,
    *,
    to: Annotated[File, about("File to write, which ends in .keras; probe.keras by default.")] = pathlib.Path(
        "probe.keras"
    ),
    model: Annotated[Text, about(f"{MODEL}; the index's own by default.")] = None,
    overwrite: Flag = False,
) -> None:
    """Train a linear classifier on an index, whose folders are the classes, and write the model with this head.

    Args:
        overwrite: Replace what is there.
    """
    from keras_vit import frozen
    from keras_vit.utils.files import destination

    if to.suffix != ".keras":
        raise ValueError(f"--to must end in .keras. Received: {str(to)!r}")
    with destination(to, overwrite) as temporary:
        result = frozen.probe(index, model=model)
        result.model.save(temporary)
    print(
        f"{to}: {len(result.classes)} classes, top-1 {result.accuracy:.2%} on the fifth that chose the regularization"
    )
