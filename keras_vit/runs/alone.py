"""Models without a recipe: the task that they do, and the names of their classes."""

from keras_vit import config
from keras_vit.models.inputs import CLIPS, IMAGES, NAMED, image_shape
from keras_vit.models.outputs import count_classes


def task_of(about):
    """Returns the task of a model that takes images alone, without its classes, by its `Traits`."""
    if len(image_shape(about.model)) == CLIPS - 1:
        kind = config.DetectClips if about.gives == "boxes" else config.ClassifyClips
        return kind.of_clips(about.model)
    if about.gives == "depth":
        return config.Depth()
    if is_segmenter(about):
        return config.Segment()
    if about.gives == "numbers":
        return config.Regress.of_numbers(about.model)
    if about.gives == "boxes":
        return config.Detect(most=about.model.output_shape[1])
    return config.Classify(multilabel=about.gives == "labels")


def is_segmenter(about):
    """Returns whether a model gives logits of classes for each pixel, by its `Traits`: at the size of its images."""
    model = about.model
    shapes = image_shape(model)[:2], getattr(model, "output_shape", None)
    return about.gives in ("classes", "masks") and len(shapes[1]) == 4 and shapes[1][1:3] == tuple(shapes[0])


def names_of(about, path, beside=lambda: None):
    """Returns the class names of a model without a recipe; raises ValueError for one of no images, or no known task."""
    model = about.model
    check_images(model, path)
    if len(model.inputs) > 1:
        raise ValueError(
            f"{str(path)!r} must take images alone: what a model does with more inputs is in its run directory. "
            f"Received: {len(model.inputs)} inputs"
        )
    if about.gives in ("depth", "numbers"):
        return ()
    if about.gives in ("instances", "segments"):
        raise ValueError(f"{str(path)!r} finds segments of photos: see keras_vit.segment. Received: {about.gives}")
    classes = about.classes if about.gives == "boxes" or is_segmenter(about) else _classes(about, path)
    names = about.labels or beside() or ()
    return names if len(names) == classes else tuple(map(str, range(classes)))


def check_images(model, path):
    """Raises ValueError unless a model takes images, or clips, of known size."""
    inputs = [each for each in getattr(model, "inputs", None) or () if each.name not in NAMED]
    shapes = [tuple(each.shape) for each in inputs]
    images = [shape for shape in shapes if len(shape) in (IMAGES, CLIPS)]
    if len(images) != 1 or None in images[0][1:]:
        received = (
            f"input shape {shapes[0] if len(shapes) == 1 else shapes}" if shapes else "a model without a known input"
        )
        raise ValueError(
            f"{str(path)!r} must be a model of images, (batch, height, width, channels) of known size. "
            f"Received: {received}"
        )


def _classes(about, path):
    """Returns the number of classes of a classifier; raises ValueError for any other model."""
    gives = about.model.output_shape
    if about.gives == "embeddings":
        raise ValueError(f"{str(path)!r} must be an image classifier: it returns embeddings. See zero_shot_classifier")
    if about.features:
        raise ValueError(f"{str(path)!r} must be an image classifier: it has no head. Received: output shape {gives}")
    if not (isinstance(gives, tuple) and len(gives) == 2 and gives[1]):
        raise ValueError(
            f"{str(path)!r} must be an image classifier: outside a run directory, its outputs must be (batch, "
            f"classes). Received: output shape {gives}"
        )
    return gives[1] if about.gives == "labels" else count_classes(about.model)
