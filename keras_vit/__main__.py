"""The command line: python -m keras_vit COMMAND."""

import pathlib
import sys
import warnings
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional, arg

Target = Annotated[Positional[str], arg(help="Directory of a run, or name of a recipe with trained weights.")]
Changes = Annotated[
    Positional[tuple[str, ...]], arg(metavar="[NAME=VALUE ...]", help="Changes, such as optim.epochs=3 model.depth=6.")
]


def list_() -> None:
    """List recipes and variants."""
    import keras_vit
    from keras_vit import cookbook

    print(f"{'recipe':<27}{'data':<24}{'parameters':>12}  reached")
    for name in keras_vit.list_recipes():
        recipe = keras_vit.load_recipe(name)
        reached = recipe.reached
        told = f"{reached.test_accuracy:.2%} test accuracy in {reached.minutes:.0f} min" if reached else "-"
        print(f"{name:<27}{recipe.data.source:<24}{cookbook.plan(recipe).count_params():>12,}  {told}")
    print(f"\n{'variant':<10}{'width':>7}{'depth':>7}{'heads':>7}{'parameters':>16}{'GMACs at 224':>15}")
    for size in keras_vit.list_variants():
        print(
            f"{size.name:<10}{size.width:>7}{size.depth:>7}{size.num_heads:>7}{size.parameters:>16,}{size.gmacs:>15.2f}"
        )


def show(recipe: Positional[str], changes: Changes = ()) -> None:
    """Print a recipe with all its settings, and its model."""
    import keras_vit
    from keras_vit import config, cookbook

    loaded = keras_vit.load_recipe(recipe, config.parse(changes))
    for part, values in config.to_dict(loaded).items():
        lines = values.items() if isinstance(values, dict) else [("", values)]
        for name, value in lines:
            print(f"{part}{'.' if name else ''}{name} = {value!r}")
    model = cookbook.plan(loaded)
    print(f"\n{model.count_params():,} parameters, {keras_vit.count_macs(model) / 1e9:.4f} GMACs an image")


def copy(recipe: Positional[str], to: Positional[pathlib.Path]) -> None:
    """Copy a recipe's file, to edit it and fit your own."""
    from keras_vit import cookbook

    source = cookbook.recipe_path(recipe)
    target = to / source.name if to.is_dir() else to
    if target.suffix != ".py":
        raise ValueError(f"A recipe is a Python file. Received: {str(target)!r}")
    if target.exists():
        raise FileExistsError(f"{str(target)!r} exists. Choose another path.")
    target.write_text(cookbook.own_copy(source.read_text(), target.stem))
    print(f"{target}: edit it, then: python -m keras_vit fit {target}")


def fit(
    recipe: Positional[str],
    changes: Changes = (),
    *,
    workdir: pathlib.Path | None = None,
    tensorboard: bool = False,
    save_steps: int | None = None,
) -> None:
    """Train a recipe, or go on where the run in the directory stopped. Ctrl-C saves and leaves.

    Args:
        recipe: Name of a recipe, or path of your own.
        workdir: Directory of the run; runs/NAME by default.
        tensorboard: Write logs for TensorBoard too.
        save_steps: Steps between saved states inside an epoch, in place of ten minutes.
    """
    import keras_vit
    from keras_vit import config

    loaded = keras_vit.load_recipe(recipe, config.parse(changes))
    workdir = workdir or pathlib.Path("runs", loaded.name)
    _, history = keras_vit.fit(loaded, workdir, tensorboard=tensorboard, save_steps=save_steps)
    print(f"{workdir}: {len(history['loss'])} epochs, validation accuracy {history['val_accuracy'][-1]:.2%}")


def evaluate(target: Target, *, split: str | None = None) -> None:
    """Measure a trained model, and what was exported beside it, on the test split.

    Args:
        split: Such as "test" or "train[:10%]"; the recipe's test split by default.
    """
    import keras_vit

    found = keras_vit.evaluate(target, split)
    width = max(map(len, found))
    names = list(next(iter(found.values())))
    print(f"{'file':<{width}}" + "".join(f"  {name}" for name in names))
    for file, values in found.items():
        told = [f"{v:.2%}" if "accuracy" in name else f"{v:.4f}" for name, v in values.items()]
        print(f"{file:<{width}}" + "".join(f"  {text:>{len(name)}}" for name, text in zip(names, told)))


def predict(target: Target, images: Positional[tuple[str, ...]], *, top: int = 3) -> None:
    """Classify image files.

    Args:
        images: Image files.
        top: How many classes to name.
    """
    from keras_vit import results
    from keras_vit.images import shown

    if not images:
        raise ValueError("No image file was given.")
    if top < 1:
        raise ValueError(f"At least one class is named. Received: top={top}")
    for file, classes in zip(images, results.predict(target, images, top)):
        print(f"{shown(file)}: " + ", ".join(f"{name} {probability:.1%}" for name, probability in classes))


def export(
    target: Target,
    *,
    quantize: tuple[Literal["float16", "dynamic", "int8", "int16x8"], ...] = (),
    onnx: bool = False,
    to: pathlib.Path | None = None,
    overwrite: bool = False,
) -> None:
    """Export a trained model as SavedModel and TFLite, run all that is written and compare it with the model.

    Args:
        quantize: Smaller TFLite formats to write besides.
        onnx: Write ONNX too.
        to: Folder to write to; the run's directory by default.
        overwrite: Replace what is there.
    """
    from keras_vit import results

    for report in results.export(target, to, quantize=quantize, onnx=onnx, overwrite=overwrite):
        print(report)


def explain(target: Target, images: Positional[tuple[str, ...]] = (), *, to: pathlib.Path | None = None) -> None:
    """Draw what a trained model attends to, and the run's training curves.

    Args:
        images: Image files; test images by default.
        to: Folder to write to; the run's directory by default.
    """
    from keras_vit import results

    for path in results.explain(target, images, to):
        print(path)


def report(target: Target, *, to: pathlib.Path | None = None, most: int = 10_000) -> None:
    """Write all that can be told of a trained model into one HTML file.

    Args:
        to: File to write, which ends in .html; report.html in the run's directory by default.
        most: Images of the test split to measure on.
    """
    from keras_vit import report

    print(report.report(target, to, most=most))


def demo(target: Target, *, host: str = "127.0.0.1", port: int = 7860) -> None:
    """Open a page on this machine: give or draw an image, see the answer and what it looks at. Ctrl-C ends it.

    Args:
        host: Address to listen on; with another than the default one, other machines may reach the page.
        port: Port to listen on; 0 takes a free one.
    """
    from keras_vit.demo import launch

    launch(target, host, port)


def tour(recipe: Positional[str] = "digits", changes: Changes = (), *, workdir: pathlib.Path | None = None) -> None:
    """Do all of it once: fit, export, explain, evaluate.

    Args:
        recipe: Name of a recipe, or path of your own.
        workdir: Directory of the run; runs/NAME by default.
    """
    from keras_vit import config, cookbook

    workdir = workdir or pathlib.Path("runs", cookbook.load_recipe(recipe, config.parse(changes)).name)
    fit(recipe, changes, workdir=workdir)
    export(str(workdir), overwrite=True)
    explain(str(workdir))
    evaluate(str(workdir))


def checkpoints(words: Positional[tuple[str, ...]] = (), *, sources: bool = False) -> None:
    """List published checkpoints, by the names that from_pretrained and convert take.

    Args:
        words: Only those with all of these words in their names, such as B/16 augreg.
        sources: Show where each lies.
    """
    import keras_vit

    rows = keras_vit.list_checkpoints(*words)
    if not rows:
        raise ValueError(f"No published checkpoint has {' and '.join(words)} in its name.")
    width = max(len(row.name) for row in rows)
    print(f"{'name':<{width}}{'size':>6}{'classes':>9}{'top-1 %':>9}  licence{'       source' * sources}")
    for row in rows:
        top1 = "-" if row.top1 is None else f"{row.top1:.2f}"
        line = f"{row.name:<{width}}{row.image_size:>6}{row.num_classes or '-':>9}{top1:>9}  {row.licence:<13} "
        print((line + row.source * sources).rstrip())


def convert(
    source: Positional[str],
    to: Positional[pathlib.Path],
    changes: Annotated[
        Positional[tuple[str, ...]],
        arg(metavar="[NAME=VALUE ...]", help="Arguments of the model, such as image_size=384 num_classes=10."),
    ] = (),
    *,
    format: str | None = None,
    overwrite: bool = False,
) -> None:
    """Read a checkpoint and write it as .keras, or in another library's format.

    Args:
        source: A checkpoint's path or address, or a published name; see the command checkpoints.
        to: A file that ends in .keras or .npz, or a directory, which timm or transformers can load, or a
            .safetensors file, the weights alone.
        format: google, timm or huggingface; not needed for .keras and .npz.
        overwrite: Replace what is there.
    """
    import keras_vit
    from keras_vit import config
    from keras_vit.export.prepare import destination

    format = format or {".npz": "google", ".keras": "keras"}.get(to.suffix)
    if format not in ("keras", "google", "timm", "huggingface") or (format == "keras") != (to.suffix == ".keras"):
        raise ValueError(
            "Write to a name that ends in .keras or .npz, or pass --format timm or --format huggingface. "
            f"Received: {str(to)!r}"
        )
    model = keras_vit.from_pretrained(source, **config.parse(changes))
    if format == "keras":
        with destination(to, overwrite) as temporary:
            model.save(temporary)
    else:
        keras_vit.save_checkpoint(model, to, format=format, overwrite=overwrite)
    print(f"{to}: {model.count_params():,} parameters, images of {model.input_shape[1]} x {model.input_shape[2]}")
    if format == "keras":
        print(f"Load it with: import keras, keras_vit; model = keras.models.load_model({str(to)!r})")


COMMANDS = {
    "list": list_,
    "show": show,
    "copy": copy,
    "fit": fit,
    "evaluate": evaluate,
    "predict": predict,
    "export": export,
    "explain": explain,
    "report": report,
    "demo": demo,
    "checkpoints": checkpoints,
    "convert": convert,
    "tour": tour,
}


def main(words=None):
    """Runs one command; an error that its user can mend is one sentence and exit status 2."""
    warnings.formatwarning = lambda message, *where, **more: f"warning: {message}\n"
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="python -m keras_vit", description="Vision Transformers for Keras 3.", args=words
        )
    except (ValueError, TypeError, OSError, RuntimeError, ImportError) as error:
        print(f"error: {error}".replace("overwrite=True", "--overwrite"), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stopped:
        print(f"\n{stopped}" if str(stopped) else "\nInterrupted.", file=sys.stderr)
        sys.exit(128 + int(getattr(stopped, "signal", 2)))


if __name__ == "__main__":
    main()
