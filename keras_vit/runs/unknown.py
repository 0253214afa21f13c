"""Sets the rule by which a classifier says "none of these", keeps vectors for it, and measures it."""

import hashlib
import pathlib

import keras
import numpy as np

from keras_vit.models.metadata import metadata
from keras_vit.models.outputs import logits_by
from keras_vit.tasks import Classify
from keras_vit.tasks.classify import unknown as rules
from keras_vit.utils import checks, feeding
from keras_vit.utils.files import replacing

MOST = 5000  # vectors of training images that are kept, at most: 15 MB of a width of 768
BATCH = 64  # images at once
EVERY = 1000  # of so many kept vectors one neighbour counts: k = 50 for 50,000, as in Sun et al.
VECTORS = ".vectors.npz"  # ends the name of the file next to a model's
ONE_LABEL = "Unknown images are told by classifiers of images with one label for each."


def check(model, task, classes, what):
    """Raises ValueError for anything but a classifier of images with one label for each, of two logits or more."""
    if not isinstance(task, Classify) or task.multilabel or task.clips is not None or model.output_shape[-1] < 2:
        single = model.output_shape[-1] < 2
        kind = "one logit" if isinstance(task, Classify) and single else type(task).__name__
        kind = "several labels" if getattr(task, "multilabel", False) else kind
        raise ValueError(f"{ONE_LABEL} Received: {what!r}, of {kind}")
    rules.check_names(classes)


def check_rate(rate):
    """Raises ValueError unless a rate of false alarms is above 0 and below 1."""
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < 1:
        raise ValueError(
            f"`unknown` must be the share of known images that may be called {rules.NONE!r}, above 0 and below 1, such "
            f"as 0.05. Received: unknown={checks.shown(rate)}"
        )


def with_vectors(model):
    """Returns the function from images to a model's logits and to the vectors that its head gets, two arrays."""
    both = keras.Model(model.inputs, [model.outputs[0], head_of(model).input])
    classes, as_logits = model.output_shape[-1], logits_by(model)

    def beside(images):
        outputs = both.predict_on_batch(images)
        return np.concatenate([keras.ops.convert_to_numpy(each).astype("float32") for each in outputs], axis=-1)

    def run(images):
        found = feeding.run(beside, images)
        return as_logits(found[:, :classes]), found[:, classes:]

    return run


def head_of(model):
    """Returns the layer whose input is a classifier's vector: `head`, else the last dense one."""
    named = [layer for layer in model.layers if layer.name == "head"]
    return (named or [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)])[-1]


def kept_of(source, bound, size, run):
    """Returns vectors of training images to keep, float32 of length 1: of `MOST` images at most, always the same."""
    from keras_vit.data import pipeline

    some = np.sort(np.random.default_rng(0).permutation(len(source))[:MOST])
    parts = [run(batch["images"])[1] for batch in pipeline.evaluation_arrays(source.take(some), bound, size)]
    return rules.unit(np.concatenate(parts)).astype("float32")


def chosen(trained, logits, rate, folder):
    """Chooses between the two rules by pictures of unknown things, and sets the threshold of the better one.

    Args:
        trained: A `Trained` with data.
        logits: Of the validation split, `(n, classes)`.
        rate: Of false alarms on it.
        folder: Of the pictures.

    Returns:
        A rule, the vectors that it needs or `None`, and the area under the ROC curve of each rule, a dictionary.
    """
    from keras_vit.data import pipeline
    from keras_vit.runs import passage, results
    from keras_vit.runs.predictions import image_files

    bound, size, run, read = trained.bound, trained.size, with_vectors(trained.model), passage.reader(trained)
    files = image_files([folder])
    others = [run(np.stack([read(file) for file in files[i : i + BATCH]])) for i in range(0, len(files), BATCH)]
    train, known = (results.source_of(trained, split, None) for split in (bound.data.train, bound.data.validation))
    kept = kept_of(train, bound, size, run)
    k = neighbour(len(kept))
    vectors = np.concatenate([run(each["images"])[1] for each in pipeline.evaluation_arrays(known, bound, size)])
    temperature = inverse_temperature(trained.model)
    values = {
        rules.ENERGY: (
            rules.energies(logits, temperature),
            np.concatenate([rules.energies(z, temperature) for z, _ in others]),
        ),
        rules.NEIGHBOURS: (
            rules.distances(vectors, kept, k),
            np.concatenate([rules.distances(v, kept, k) for _, v in others]),
        ),
    }
    areas = {name: area(*pair) for name, pair in values.items()}
    if areas[rules.NEIGHBOURS] <= areas[rules.ENERGY]:
        return by_energy(trained.model, logits, rate), None, areas
    rule = {"rule": rules.NEIGHBOURS, "k": k, "sha256": digest(kept), **rules.fitted(values[rules.NEIGHBOURS][0], rate)}
    return rule, kept, areas


def by_energy(model, logits, rate):
    """Returns the rule of energy, from the logits of images that were not trained on, as the model gives them."""
    temperature = inverse_temperature(model)
    fitted = rules.fitted(rules.energies(logits, temperature), rate)
    return {"rule": rules.ENERGY, "temperature": temperature, **fitted}


def inverse_temperature(model):
    """Returns the temperature by which energies are those of the logits before calibration, times a constant."""
    return 1 / float(metadata(model).get("temperature", 1.0))


def neighbour(count):
    """Returns which neighbour's distance counts among a number of kept vectors."""
    return max(1, round(count / EVERY))


def area(known, others):
    """Returns the area under the ROC curve of strangeness: how often an unknown image is stranger than a known one."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(np.repeat([0, 1], [len(known), len(others)]), np.concatenate([known, others])))


def vectors_file(path):
    """Returns the path of the vectors that a model's file has next to it."""
    return pathlib.Path(path).with_suffix(VECTORS)


def digest(vectors):
    """Returns the SHA-256 of kept vectors, by which a model knows its own."""
    return hashlib.sha256(np.ascontiguousarray(vectors, "float32").tobytes()).hexdigest()


def save(model, vectors, path):
    """Writes a model as a `.keras` file, and next to it the vectors that it tells unknown images by, if any."""
    with replacing(path, beside=(VECTORS,)) as temporary:
        model.save(temporary)
        if vectors is not None:
            np.savez(vectors_file(temporary), vectors=np.asarray(vectors, "float32"))


def read_vectors(file, rule):
    """Returns the vectors next to a model's file; ValueError or FileNotFoundError if they are not those of its rule."""
    path = vectors_file(file)
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(file)!r} tells unknown images by vectors of training images, which must be in {str(path)!r}: "
            "calibrate the model again, or save what `calibrate` returned with its `save`."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            vectors = file["vectors"]
    except Exception as error:
        raise ValueError(f"{str(path)!r} cannot be read: {str(error).splitlines()[0]}") from None
    if vectors.ndim != 2 or digest(vectors) != rule.get("sha256"):
        raise ValueError(f"{str(path)!r} has the vectors of another model. Calibrate the model again.")
    return vectors


def viewing(trained, rule):
    """Returns the function from images to logits with a column more, the distances to kept vectors."""
    kept = read_vectors(trained.file, rule)
    run = with_vectors(trained.model)

    def view(images):
        logits, vectors = run(images)
        return np.concatenate([logits, rules.distances(vectors, kept, rule["k"])[:, None]], axis=1)

    return view


def outputs_of(trained, source):
    """Returns what a `Trained` answers to the images of a `Source`, `(n, classes)`, or with a column more."""
    from keras_vit.data import pipeline

    run = trained.viewer(eager=False)
    return np.concatenate(
        [run(each["images"]) for each in pipeline.evaluation_arrays(source, trained.bound, trained.size)]
    )


def outputs_of_files(trained, folder):
    """Returns the same for the image files of a folder; ValueError for one that cannot be read."""
    from keras_vit.runs import passage
    from keras_vit.runs.predictions import image_files

    found = []
    for each in passage.outputs(trained, image_files([folder]), {}, None, None):
        if each.error:
            raise each.error
        found.append(each.output)
    return np.stack(found)


def measured(trained, source, folder):
    """Returns scores of a model's rule: of known images in a `Source`, and of unknown ones in a folder.

    Returns:
        `"unknown_auroc"`, the area under the ROC curve; `"false_alarms"`, the share of known images that are called
        unknown; `"unknown_found"`, the share of unknown images that are.

    Raises:
        ValueError, FileNotFoundError: For a model without a rule, and as `image_files`.
    """
    rule, count = trained.task.unknown, len(trained.task.classes)
    others = rules.strangeness(rule, outputs_of_files(trained, folder), count)
    known = rules.strangeness(rule, outputs_of(trained, source), count)
    return {
        "unknown_auroc": area(known, others),
        "false_alarms": float((known > rule["threshold"]).mean()),
        "unknown_found": float((others > rule["threshold"]).mean()),
    }


def check_rule(trained):
    """Raises ValueError for a model without a rule for unknown images."""
    if getattr(trained.task, "unknown", None) is None:
        raise ValueError(
            f"{trained.file!r} has no threshold for unknown images. Set it by python -m keras_vit calibrate RUN "
            "--unknown 0.05, and evaluate the file that it writes."
        )
