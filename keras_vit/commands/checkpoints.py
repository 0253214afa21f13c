"""Commands for published checkpoints: checkpoints, convert."""

import pathlib
from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands.types import Flag, Text, about

Words = Annotated[
    Positional[tuple[str, ...]],
    about("Only checkpoints with all of these words in their names, such as B/16 augreg.", "[WORD ...]"),
]
Source = Annotated[
    Positional[str],
    about("A checkpoint's path or address, or a published name; see the command checkpoints.", "SOURCE"),
]
To = Annotated[
    Positional[pathlib.Path],
    about(
        "A file that ends in .keras or .npz, or a directory, which timm or transformers can load, or a .safetensors "
        "file, the weights alone.",
        "TO",
    ),
]
Arguments = Annotated[
    Positional[tuple[str, ...]],
    about("Arguments of the model, such as image_size=384 num_classes=10.", "[NAME=VALUE ...]"),
]


def print_checkpoints(words: Words = (), *, sources: Flag = False) -> None:
    """List published checkpoints, by the names that from_pretrained and convert take.

    Args:
        sources: Show the address of each.
    """
    import keras_vit

    rows = keras_vit.list_checkpoints(*words)
    if not rows:
        raise ValueError(f"No published checkpoint has {' and '.join(words)} in its name.")
    width = max(len(row.name) for row in rows)
    print(f"{'name':<{width}}{'size':>6}{'classes':>9}{'top-1 %':>9}  license{'       source' * sources}")
    for row in rows:
        top1 = "-" if row.top1 is None else f"{row.top1:.2f}"
        line = f"{row.name:<{width}}{row.image_size:>6}{row.num_classes or '-':>9}{top1:>9}  {row.license:<13} "
        print((line + row.source * sources).rstrip())


def convert_checkpoint(
    source: Source,
    to: To,
    changes: Arguments = (),
    *,
    format: Text = None,
    overwrite: Flag = False,
) -> None:
    """Read a checkpoint and write it as .keras, or in another library's format.

    Args:
        format: google, timm or huggingface; not needed for .keras and .npz.
        overwrite: Replace what is there.
    """
    import keras_vit
    from keras_vit import config
    from keras_vit.checkpoints.save import target
    from keras_vit.models.inputs import image_shape
    from keras_vit.utils.files import check_free, destination

    format = format or {".npz": "google", ".keras": "keras"}.get(to.suffix)
    if format not in ("keras", "google", "timm", "huggingface") or (format == "keras") != (to.suffix == ".keras"):
        raise ValueError(
            "Write to a name that ends in .keras or .npz, or pass --format timm or --format huggingface. "
            f"Received: {str(to)!r}"
        )
    if format == "keras":  # before anything is downloaded
        check_free(to, overwrite)
    else:
        target(to, format, overwrite)
    part = None if format == "keras" else "image"
    model = keras_vit.from_pretrained(source, part=part, **config.parse(changes))
    if format == "keras":
        with destination(to, overwrite) as temporary:
            model.save(temporary)
    else:
        keras_vit.save_checkpoint(model, to, format=format, overwrite=overwrite)
    *_, height, width, _ = image_shape(model)
    print(f"{to}: {model.count_params():,} parameters, images of {height} x {width}")
    if format == "keras":
        print(f"Load it with: import keras, keras_vit; model = keras.models.load_model({str(to)!r})")
