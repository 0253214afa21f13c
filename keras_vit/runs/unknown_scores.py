"""How well a classifier tells images of none of its classes."""

import numpy as np

from keras_vit.runs import passage
from keras_vit.runs.predictions import image_files
from keras_vit.tasks.classify import unknown as rules


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
        "unknown_auroc": rules.area(known, others),
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


def outputs_of(trained, source):
    """Returns what a `Trained` answers to the images of a `Source`, `(n, classes)`, or with a column more."""
    from keras_vit.data import pipeline

    run = trained.viewer(eager=False)
    return np.concatenate(
        [run(each["images"]) for each in pipeline.evaluation_arrays(source, trained.bound, trained.size)]
    )


def outputs_of_files(trained, folder):
    """Returns the same for the image files of a folder; ValueError for one that cannot be read."""
    found = []
    for each in passage.outputs(trained, image_files([folder]), {}, None, None):
        if each.error:
            raise each.error
        found.append(each.output)
    return np.stack(found)
