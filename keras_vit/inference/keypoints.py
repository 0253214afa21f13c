"""Which of a model's keypoints are left and right of each other, by their names."""

import re

from keras_vit.models.metadata import stated_labels

COCO = (0, *(place for left in range(1, 17, 2) for place in (left + 1, left)))  # the nose, then left before right
OTHER = {"left": "right", "right": "left", "l": "r", "r": "l"}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")  # in capitals, or of letters; or a number


def mirrored(model):
    """Returns for each keypoint of a model the number of the one that it is in a mirror, a tuple.

    The partner of a name has the other side in it: left, right, l or r, such as `"left_eye"`, `"L_Eye"`, `"LeftEye"`.
    Without names, 17 keypoints are COCO's.

    Raises:
        ValueError: If no name has a side, or one has no partner; or for a number in a name without a side, such as
            `"face-0"`: nothing says whether it is in the middle.
    """
    names, count = stated_labels(model), model.output_shape[-1]
    if names is None and count == len(COCO):
        return COCO
    words = [_words(name) for name in names or ()]
    places = {word: i for i, word in enumerate(words)}
    partners = [tuple(OTHER.get(part, part) for part in word) for word in words]
    unclear = [
        name
        for name, word, partner in zip(names or (), words, partners)
        if partner not in places or (partner == word and any(map(str.isdigit, word)))
    ]
    if unclear or partners == words or len(places) < count:
        received = f"{unclear[0]!r}" if unclear else f"{count} keypoints, {', '.join(names or ['without names']):.60}"
        raise ValueError(
            "A flip test needs the names of keypoints, which say what is left and right, such as 'left_eye' and "
            f"'right_eye': keras_vit.class_names(model, names). Received: {received}"
        )
    return tuple(places[partner] for partner in partners)


def _words(name):
    """Returns the words and numbers of a name in lower case, such as left, eye and 1 of `"LeftEye_1"`."""
    return tuple(map(str.lower, WORD.findall(re.sub("(?i)(left|right)", lambda side: f" {side[0].lower()} ", name))))
