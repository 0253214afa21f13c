"""The detector that starts from one of words: a published OWL-ViT or OWLv2, with the task's classes."""

import keras

from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.checkpoints.own_models import opened, own_file
from keras_vit.checkpoints.pretrained import from_pretrained, location
from keras_vit.explain.class_vectors import SLOT, class_vectors
from keras_vit.explain.towers import Towers, own_words
from keras_vit.models.metadata import keep, metadata
from keras_vit.models.open_detector import PARTS, features_of, has_classes, is_open_detector, of_classes
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers

SOURCE = "an OWL-ViT or OWLv2, such as 'hf://google/owlv2-base-patch16-ensemble', or a run of this head"
FIXED = {"pooling": ("none",), "num_classes": (0,), "final_norm": ("before",), "channels": (3,)}  # of these weights


def check(task, arguments=None):
    """Raises ValueError for a model that does not start from such weights, or for words of other classes.

    Args:
        task: A `Detect` with the head `"open"`.
        arguments: `model` of a recipe, or `None`.
    """
    unknown = [name for name in task.head_options["words"] or () if task.classes and name not in task.classes]
    if unknown:
        raise ValueError(f"head.words must name classes. Received: {unknown[0]!r}, not among {task.classes!r}")
    options, names = task.head_options, task.classes or ()
    prompts = options["prompts"] or ()
    without = [prompt for prompt in ([prompts] if isinstance(prompts, str) else prompts) if SLOT not in prompt]
    if without:
        raise ValueError(f"Each of head.prompts must have {SLOT} instead of the name. Received: {without[0]!r}")
    words = [(options["words"] or {}).get(name, name) for name in names]
    twice = next((word for word in words if words.count(word) > 1), None)
    if twice is not None:
        raise ValueError(f"Each class needs words of its own. Received: {twice!r} for two classes")
    if arguments is None:
        return
    if arguments.get("weights") is None:
        raise ValueError(_refused(None))
    wrong = [f"{name}={arguments[name]!r}" for name in FIXED if arguments.get(name) not in (None, *FIXED[name])]
    wrong += [f"{name}={arguments[name]!r}" for name in ("variant", "head") if arguments.get(name) is not None]
    if wrong:
        raise ValueError(f"Of Detect(head='open'), model.weights determine the model. Received: {', '.join(wrong)}")


def built(task, arguments):
    """Builds the detector, with the boxes and scores of the weights: `zero_shot_detector`'s of these words.

    Args:
        task: As in `check`.
        arguments: `weights`, and arguments of `from_pretrained` for its image tower, such as `image_size`.

    Raises:
        ValueError: As `check`; for weights of another kind, or of other classes; for more boxes than patches; and as
            `class_vectors` and `from_pretrained`.
    """
    check(task, arguments)
    weights, free = arguments["weights"], (*FIXED, "weights", "variant", "head", "name")
    if location(weights) is None:  # a published name
        raise ValueError(_refused(weights))
    asked = {name: value for name, value in arguments.items() if name not in free and value is not None}
    path, name = own_file(weights), arguments.get("name") or "detector"
    model = opened(path) if path else from_pretrained(weights, **asked)
    found = _of_words(task, model, weights) if is_open_detector(model) else _of_classes(task, model, weights)
    images, features, boxes, old, vectors = found
    if path:
        _check_same(images, asked)
    if task.most > boxes.shape[1]:
        raise ValueError(f"Detect.most must be at most the patches, {boxes.shape[1]}. Received: most={task.most}")
    for layer in sublayers(model):  # a file keeps what was frozen
        layer.trainable = False
        layer.trainable = True
    model = of_classes(images, features, boxes, old, vectors, task.most, name)
    keep(model, (*HEAD_METADATA, "score"), labels=list(task.classes))  # the task has the score
    return model


def _of_words(task, model, weights):
    """Returns the parts of the detector of a model that finds what words name; see `of_classes`."""
    image, text, heads = map(model.get_layer, PARTS)
    features = features_of(heads, image.outputs[0])
    options, own = task.head_options, own_words(text) or own_file(weights)
    words = [(options["words"] or {}).get(name, name) for name in task.classes]
    tokens = options["tokens"] or (None if own else str(weights))
    towers = Towers(image, text, 1.0, 0.0)  # independent probabilities: one class will do
    _, vectors = class_vectors(towers, words, tokens, options["prompts"] or SLOT)
    return image.inputs[0], features, heads.get_layer("places")(features), heads.get_layer("logits"), vectors


def _of_classes(task, model, weights):
    """Returns the same of a detector that has the task's classes already."""
    if not has_classes(model):
        raise ValueError(_refused(weights))
    labels = list(metadata(model).get("labels") or ())
    missing = [name for name in task.classes if name not in labels]
    if missing:
        raise ValueError(
            "A detector without a text tower has no words for other classes: start from the published one. "
            f"Received: {missing[0]!r}, and weights of {', '.join(labels) or 'unnamed classes'}"
        )
    if any(task.head_options.values()):
        raise ValueError(
            f"head.words, head.prompts and head.tokens are for a model with a text tower. Received: head={task.head!r}"
        )
    old = model.get_layer("logits")
    vectors = keras.ops.convert_to_numpy(old.vectors).T[[labels.index(name) for name in task.classes]]
    return model.inputs[0], model.get_layer("features").output, model.get_layer("places").output, old, vectors


def _refused(weights):
    """Returns what is said of weights that are no start."""
    return f"Detect(head='open') starts from trained weights: model.weights must be {SOURCE}. Received: {weights!r}"


def _check_same(images, asked):
    """Raises ValueError if a file of ours is asked for with other sizes than its own."""
    size = asked.pop("image_size", images.shape[1:3])
    if checks.pair("image_size", size) != tuple(images.shape[1:3]) or asked:
        changed = {"image_size": size, **asked}
        raise ValueError(
            f"A detector in a run or a .keras file is as it was saved, of images {tuple(images.shape[1:3])}. Received: "
            + ", ".join(f"{name}={value!r}" for name, value in changed.items())
        )
