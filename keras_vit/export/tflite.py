"""TFLite (LiteRT), for phones and small boards."""

import dataclasses
import re

from keras_vit import checks
from keras_vit.export import check, gpu, prepare, ranks, runtimes, saved_model
from keras_vit.export import quantize as formats
from keras_vit.export.forms import export_copy


def export_tflite(
    model,
    path,
    *,
    quantize=None,
    calibration=None,
    target="cpu",
    batch_size=1,
    input_dtype="float32",
    probabilities=False,
    labels=None,
    images=None,
    classes=None,
    overwrite=False,
):
    """Writes a TFLite file that takes raw pixels, runs it in LiteRT and compares it with the model.

    It is tried on LiteRT's GPU accelerator too, where there is a Vulkan driver; the report says how that went.

    With LiteRT's own operators only and static shapes. Its signature `serve` goes from `images` (0..255) to `logits`,
    or `probabilities`. Beside it `PATH.json` holds the report, the labels and how images are brought to size.

    Args:
        model: A Keras model from pixels to logits, under any precision policy.
        path: File to write, ending in `.tflite`; must not exist.
        quantize: `None` for float32; `"float16"`, half the size; `"dynamic"`, a quarter of the size and twice as fast;
            `"int8"`, likewise with scales from calibration; `"int16x8"`. See `docs/export.md` for which to choose.
        calibration: For `"int8"` and `"int16x8"`: pixels such as the model will see, `(images, height, width,
            channels)`, 0..255, a hundred or more; or a `tf.data.Dataset` of such images, or of `(images, labels)`, in
            batches or one by one, of which the first 256 images are taken.
        target: `"cpu"`; or `"integer"` for `"int8"`, for chips that have no floats: slower on a CPU, less exact.
        batch_size: Number of images of one call; 1 for `"int8"` and `"int16x8"`.
        input_dtype: `"float32"` or `"uint8"`, of the pixels that the file takes.
        probabilities: Whether it gives the soft-max of the logits.
        labels: Names of the classes in order, for the JSON; those that travel with the model if `None`.
        images: Pixels to compare on, an array as `calibration`. If `None`: those of calibration for the formats that
            use it, random ones for the others.
        classes: Right classes of `images`, integers; the report then tells top-1 accuracy.
        overwrite: Whether to replace what is at `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        ValueError: If `path` does not end in `.tflite`, for an unknown format, calibration that is missing or of
            another shape, a number of labels that is not the model's, or a model of 2 GB and more.
        ImportError: If a format's converter is not installed.
        RuntimeError: If the backend is not TensorFlow, the model needs operators that LiteRT lacks, or the written
            model gives something else, on the CPU or, where a Vulkan driver is found, on LiteRT's GPU accelerator;
            nothing is kept then.
    """
    prepare.need_tensorflow_backend("A TFLite file")
    if not str(path).endswith(".tflite"):
        raise ValueError(f"A TFLite file ends in .tflite. Received: path={str(path)!r}")
    checks.positive(batch_size=batch_size)
    checks.one_of("input_dtype", input_dtype, ("float32", "uint8"))
    prepare.check_model(model)
    prepare.check_labels(model, labels)
    calibration = formats.check(quantize, target, calibration, model.input_shape[1:])
    check.check_classes(model, images, classes)
    if batch_size > 1 and calibration is not None:
        raise ValueError(f"A calibrated file takes one image a call. Received: batch_size={batch_size}")
    images = check.sample(model, calibration if images is None else images)
    if input_dtype == "uint8":
        images, calibration = images.round(), None if calibration is None else calibration.round()
    prepare.check_free(f"{path}.json", overwrite)
    with prepare.destination(path, overwrite) as temporary:
        plain = export_copy(model, fold=calibration is None)
        _convert(plain, temporary, quantize, target, calibration, batch_size, input_dtype, probabilities)
        if quantize == "int8" and target == "cpu":
            formats.products_in_int8(temporary, calibration.astype(input_dtype))
        ranks.align(temporary)
        run, operators = runtimes.tflite(temporary)
        report = check.report(
            temporary,
            model,
            images,
            run,
            operators,
            quantize=quantize,
            probabilities=probabilities,
            classes=classes,
            cost=runtimes.profile(temporary),
        )
        on_gpu = gpu.check(temporary, images, run, report, batch_size)
    report = dataclasses.replace(report, path=str(path), **on_gpu)
    facts = {**prepare.facts(model, labels), "dtype": input_dtype, "target": target}
    check.write_json(f"{path}.json", report, **facts)
    return report


def _convert(model, path, quantize, target, calibration, batch_size, input_dtype, probabilities):
    import tensorflow as tf

    graph = path.with_suffix(".graph")
    saved_model.write(model, graph, batch_size, input_dtype, probabilities)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(graph), signature_keys=["serve"])
    given = calibration if calibration is None else calibration.astype(input_dtype)
    formats.tell(converter, quantize, target, given)
    try:
        path.write_bytes(converter.convert())
    except Exception as error:  # the converter's own class is not public
        operators = sorted(set(re.findall(r"\btf\.(\w+)\(", str(error)))) or [str(error).strip().splitlines()[0]]
        raise RuntimeError(f"LiteRT has no operators of its own for: {', '.join(operators[:10])}.") from None
