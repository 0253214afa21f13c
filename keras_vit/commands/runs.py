"""Commands for a trained model: evaluate, predict, calibrate, export, explain, report, demo."""

import sys
from typing import Annotated, Literal

from keras_vit.commands import lean
from keras_vit.commands.many import tiling_of
from keras_vit.commands.types import (
    Changes,
    Count,
    File,
    Flag,
    Folder,
    Images,
    Number,
    Run,
    Text,
    Texts,
    about,
    named,
)

Job = Annotated[Text, about('Of a model of several jobs: which one, such as "denoise25".', "NAME")]
Reference = Annotated[File, about("Of a model with references: a sharp picture, or a folder of them.", "PATH")]
DRAWN = 32  # images, at most: all are in one figure
Formats = Literal["float16", "dynamic", "int8", "int16x8"]


def measure(
    run: Run,
    changes: Changes = (),
    *,
    split: Text = None,
    tiles: Flag = False,
    tile_size: Count = None,
    overlap: Number = None,
    unknown: Folder = None,
) -> None:
    """Evaluate a trained model and its exports on the test split.

    Args:
        split: Such as "test" or "train[:10%]"; the recipe's test split by default.
        tiles: Of Segment and Detect: pictures at full size in overlapping tiles, not shrunk to the model.
        tile_size: Pixels of a picture along the longer side of a tile; those of the model's input by default.
        overlap: Share of a tile that the next one has too, 0 to 0.5; 0.25 by default.
        unknown: Folder of pictures of none of the classes: how many are found, of a model from calibrate --unknown.
    """
    from keras_vit import config
    from keras_vit.commands import scores
    from keras_vit.runs import results, trained
    from keras_vit.utils.tables import terminal

    model = trained.load_run(run)
    say(f"Measuring {model.file}, and what was exported of it")
    options = {"tiles": tiling_of(tiles, tile_size, overlap), "unknown": unknown}
    measured = results.evaluate(model, split, changes=config.parse(changes), **options)
    print("\n".join(scores.lines(measured, model.task, terminal())))


def apply(
    run: Run,
    images: Images = (),
    *,
    text: Text = None,
    job: Job = None,
    reference: Reference = None,
    top: Count = 3,
    to: Folder = None,
    tiles: Flag = False,
    tile_size: Count = None,
    overlap: Number = None,
    resume: Flag = False,
    json: File = None,
    csv: File = None,
    classes: Annotated[Texts, named("class", "Of models that draw images: their classes; all by default.")] = (),
    count: Count = None,
    guidance: Number = None,
    steps: Count = None,
    seed: Count = 0,
) -> None:
    """Apply a trained model to images: name their classes, draw their masks, find their objects, or restore them.

    A model that was trained to draw images takes none: it writes pictures of classes, or of a text. One that
    translates takes texts in place of images.

    Args:
        images: Image files, and folders, which are searched with all their subfolders; or texts to translate.
        text: Text for all images, of models that take one with each image; or what to draw.
        top: How many classes to name; of several labels at least all that hold, which are in [brackets].
        count: How many images to draw of each class, or of the text; 1 by default.
        guidance: How much the class or text counts in drawing; that of the recipe by default.
        steps: Steps from noise to an image; those of the recipe by default.
        seed: Seed of the noise that images are drawn from.
        to: Folder for PNG files: masks of class indices, maps of segments, restored images; or for YOLO's labels.
        tiles: Of Segment and Detect: pictures at full size in overlapping tiles, not shrunk to the model.
        tile_size: Pixels of a picture along the longer side of a tile; those of the model's input by default.
        overlap: Share of a tile that the next one has too, 0 to 0.5; 0.25 by default.
        resume: Continue an interrupted call of the same model and options: images whose files are in --to are left out.
        json: File for all answers, one entry for each; for objects as COCO's results, with names of images and classes.
        csv: File for the same as a table.
    """
    lean.import_keras()
    from keras_vit.runs import predictions, sampled, trained
    from keras_vit.utils.folders import shown

    model = trained.load_run(run, job=job)
    drawing = {"classes": classes or None, "count": count, "guidance": guidance, "steps": steps, "seed": seed or None}
    drawing = {name: value for name, value in drawing.items() if value is not None}
    if sampled.draws_images(model):
        if model.task.text:
            drawing["texts"] = () if text is None else (text,)
        inputs = {"images": images or None, "--json": json, "--csv": csv}
        inputs |= {} if model.task.text else {"--text": text}
        _draw_images(model, to, drawing, {name: value for name, value in inputs.items() if value is not None})
        return
    if drawing:
        options = ", ".join(f"--{'class' if name == 'classes' else name}" for name in drawing)
        raise ValueError(
            f"{options}: only models that draw images, as of Generate, take this. Received: {type(model.task).__name__}"
        )
    files, bad = predictions.given(model, images), 0
    options = {"tiles": tiling_of(tiles, tile_size, overlap), "resume": resume, "json": json, "csv": csv}
    answers = predictions.predictions(model, files, top, to, texts=text, reference=reference, **options)
    for file, answer, error in predictions.followed(answers, len(files)):
        if error and len(files) == 1:
            raise error
        bad += bool(error)
        if error:
            print(f"left out: {error}", file=sys.stderr, flush=True)
        elif answer is None:
            print(f"{shown(file)}: done before", flush=True)
        else:
            print(f"{shown(file)}: {model.task.said(dict(answer))}", flush=True)
    if bad:
        print(f"error: {bad} of {len(files)} images cannot be read.", file=sys.stderr)
        sys.exit(1)


def _draw_images(model, to, drawing, others):
    """Writes images that a model draws; `others` are what it takes none of."""
    from keras_vit.runs import sampled

    if others:
        raise ValueError(f"{type(model.task).__name__} draws images from noise. Received: {', '.join(others)}")
    if to is None:
        raise ValueError("--to must be a folder for the images that are drawn. Received: none")
    for path in sampled.draw(model, folder=to, **drawing):
        print(path, flush=True)


def write_calibrated(
    run: Run, *, unknown: Number = None, unknown_pictures: Folder = None, to: File = None, overwrite: Flag = False
) -> None:
    """Calibrate a classifier on the validation split, by temperature scaling, and write the model.

    Args:
        unknown: Share of validation images that may be called "none of these", such as 0.05: sets that threshold.
        unknown_pictures: Folder of pictures of other things, by which the better of two rules is chosen.
        to: File to write, which ends in .keras; calibrated.keras in the run's directory by default.
        overwrite: Replace what is there.
    """
    from keras_vit.runs import calibration, trained
    from keras_vit.runs.unknown import vectors_file
    from keras_vit.utils.files import check_free

    model = trained.load_run(run)
    path = to or model.home / "calibrated.keras"
    if path.suffix != ".keras":
        raise ValueError(f"`to` must end in .keras. Received: to={str(path)!r}")
    check_free(path, overwrite)
    check_free(vectors_file(path), overwrite)
    say(f"Measuring {model.file} on the validation split")
    result = calibration.calibrate(model, unknown=unknown, unknown_pictures=unknown_pictures)
    path.parent.mkdir(parents=True, exist_ok=True)
    result.save(path)
    before, after = result.error
    print(f"{path}: temperature {result.temperature:.3f}")
    print(f"expected calibration error on the validation split: {before:.2%}, now {after:.2%}")
    if result.unknown is None:
        return
    for name, area in (result.areas or {}).items():
        print(f"area under the ROC curve on {unknown_pictures}, by {name}: {area:.4f}")
    rule = result.unknown
    how = "" if result.areas else "; --unknown-pictures FOLDER would compare it with neighbours"
    print(f'"none of these" by {rule["rule"]}, above {rule["threshold"]:.4g}, for {unknown:.1%} of known images{how}')
    if result.vectors is not None:
        print(f"{vectors_file(path)}: {len(result.vectors):,} vectors of training images, needed next to the model")


def write_exports(
    run: Run,
    *,
    quantize: Annotated[tuple[Formats, ...], about("Smaller TFLite formats to write too.")] = (),
    onnx: Flag = False,
    openvino: Flag = False,
    job: Job = None,
    tiles: Flag = False,
    tile_size: Count = None,
    overlap: Number = None,
    to: Folder = None,
    overwrite: Flag = False,
) -> None:
    """Export a trained model as SavedModel and TFLite, run all that is written and compare it with the model.

    Args:
        onnx: Write ONNX too.
        openvino: Write OpenVINO's IR too.
        tiles: Of Segment and Detect: say in the JSON files how large pictures are tiled, and tiles joined.
        tile_size: As for predict.
        overlap: As for predict.
        to: Folder to write to; the run's directory by default.
        overwrite: Replace what is there.
    """
    from keras_vit.runs import results, trained

    model = trained.load_run(run, job=job)
    others = {"onnx": onnx, "openvino": openvino}
    tiling = tiling_of(tiles, tile_size, overlap)
    named = [{"onnx": "ONNX", "openvino": "OpenVINO's IR"}[name] for name, chosen in others.items() if chosen]
    say(f"Exporting {model.file} as {', '.join(['SavedModel, TFLite', *quantize, *named])}")
    for report in results.export(model, to, quantize=quantize, tiles=tiling, overwrite=overwrite, **others):
        print(report)


def draw(run: Run, images: Images = (), *, text: Text = None, job: Job = None, to: Folder = None) -> None:
    """Draw what a trained model attends to, and the run's training curves.

    Args:
        images: Image files, and folders of them, or texts to translate; the first 32 are drawn. Test images by default.
        text: As for predict.
        to: Folder to write to; the run's directory by default.
    """
    from keras_vit.runs import looking, predictions, trained

    model = trained.load_run(run, job=job)
    files = predictions.given(model, images) if images else []
    of = f" in the first {DRAWN} of {len(files):,} images" if len(files) > DRAWN else ""
    say(f"Drawing what {model.file} attends to{of}")
    for path in looking.explain(model, files[:DRAWN], to, texts=text):
        print(path)


def write_report(run: Run, *, to: File = None, most: Count = 10_000) -> None:
    """Write a report on a trained model into one HTML file.

    Args:
        to: File to write, which ends in .html; report.html in the run's directory by default.
        most: Images of the test split to measure on.
    """
    from keras_vit import reporting
    from keras_vit.runs import trained

    model = trained.load_run(run)
    say(f"Measuring {model.file}")
    print(reporting.report(model, to, most=most))


def open_demo(run: Run, *, host: str = "127.0.0.1", port: Count = 7860, job: Job = None) -> None:
    """Open a page on this machine to classify images and see what the model attends to. Ctrl-C ends it.

    Args:
        host: Address to listen on; any other than the default opens the page to other machines.
        port: Port to listen on; 0 takes a free one.
    """
    say(f"Starting the page of {run}")
    from keras_vit.demo import launch
    from keras_vit.runs import trained

    launch(trained.load_run(run, job=job), host, port)


def say(step):
    """Prints a step that takes long to the error stream; results go to the output."""
    print(f"{step} ...", file=sys.stderr, flush=True)
