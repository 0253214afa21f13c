"""Helpers of commands for many images: find the files, and end with an error if some could not be read."""

import sys


def files_of(images):
    """Returns the paths of image files, and of those in folders."""
    from keras_vit.runs.predictions import image_files

    return image_files(images)


def if_bad(files):
    """Returns what to do about files that cannot be read: one alone is an error."""
    return "skip" if len(files) > 1 else "raise"


def end(answers):
    """Ends the command with status 1 if images have no answer; a warning has named them."""
    bad = sum(not answer for answer in answers)
    if bad:
        print(f"error: {bad} of {len(answers)} images cannot be read.", file=sys.stderr)
        sys.exit(1)


def needed(model):
    """Returns the name of a model; raises ValueError if it was not given."""
    if not model:
        raise ValueError("--model is missing: published weights, such as S/14-dinov2, or a run directory.")
    return model


def shown(path):
    """Returns a path, or a text, that can be printed."""
    from keras_vit.utils import folders

    return folders.shown(path)
