"""The family of detectors of what texts name: their heads, brought together with an image and a text tower."""

from keras_vit.models.open_detector import heads_for, open_detector

WHOLE = {"pooling": "none", "num_classes": 0, "final_norm": "before"}  # heads take all tokens


def joined(files, text, request, load):
    """Returns the detector in some files.

    Args:
        files: Open `Files`.
        text: A model from `text_tower`.
        request: What the caller asks for of the image tower, a `Request`.
        load: `load.load`, which fills a part.

    Raises:
        ValueError: As `from_checkpoint`; for image towers that do not return all tokens.
    """
    overrides = request.overrides
    if wrong := [f"{name}={overrides[name]!r}" for name, value in WHOLE.items() if overrides.get(name, value) != value]:
        raise ValueError(
            f"Of a detector, {', '.join(WHOLE)} are fixed: for its image tower alone, pass part='image'. "
            f"Received: {', '.join(wrong)}"
        )
    image, _ = load(files, "image", request._replace(overrides=overrides | WHOLE, head=None))
    dtype = {"dtype": overrides["dtype"]} if "dtype" in overrides else {}
    options = heads_for(image, text, **dtype)
    heads, _ = load(files, "heads", request._replace(overrides=options, metadata=None))
    return open_detector(image, text, heads)
