"""Scores that several floors need, and how scores are written."""

import re

import numpy as np

SENSITIVITY = 0.8  # the partial area is above this


def partial_auc(logits, labels):
    """Area under the ROC curve where sensitivity is above 80 %: 0 to 0.2, by chance 0.02.

    The metric of the ISIC 2024 challenge (skin lesions, few of them malignant). The second of the two classes is the
    positive one.
    """
    from sklearn.metrics import roc_auc_score

    if logits.shape[-1] != 2 or set(labels.tolist()) != {0, 1}:
        raise ValueError(
            f"`partial_auc` must have images of both of two classes. Received: {logits.shape[-1]} classes, images of "
            f"{len(set(labels.tolist()))}"
        )
    most = 1 - SENSITIVITY
    # scikit-learn limits false positives, to `most`, and scales to 0.5 .. 1: exchange the classes, and scale back.
    scaled = roc_auc_score(1 - labels, logits[:, 0] - logits[:, 1], max_fpr=most)
    least = most**2 / 2
    return least + (most - least) * (scaled - 0.5) / 0.5


def iou(matrix):
    """Returns the intersection over union of each class, NaN for a class that is in no mask and no prediction."""
    right = np.diag(matrix).astype("float64")
    union = matrix.sum(0) + matrix.sum(1) - right
    return np.divide(right, union, out=np.full(len(right), np.nan), where=union > 0)


def written(name, value):
    """Returns a score as text: accuracies, overlaps and other shares in percent, any other with four decimals.

    Args:
        name: The score's, such as `"accuracy"`, or a recipe's words for it, such as `"mean IoU on val"`. What follows a
            score of one class or of one number is that class's or number's name, and says nothing of the score.
        value: A number.
    """
    score = (_parts(name) or (name,))[0]
    return f"{value:.2%}" if any(word in score.lower() for word in SHARES) else f"{value:.4f}"


def titled(name):
    """Returns a score's words for people, and the unit of its values, `""` for none.

    Args:
        name: As a tally or `history.csv` has it, such as `"ap zero"` or `"mae_age"`, without `"val_"`.
    """
    if name in WORDS:
        words, unit = WORDS[name]
        return words, "" if unit == OWN else unit  # of a number whose name is not told
    if recall := re.fullmatch(r"(image|text)_to_(image|text)_(recall|chance)_at_(\d+)", name):
        given, found, score, places = recall.groups()
        return f"{'recall' if score == 'recall' else 'chance of recall'} at {places}, {given} to {found}", ""
    if parts := _parts(name):
        (words, unit), (of, own) = WORDS[parts[0]], measured(parts[1])
        return f"{words} of {of}", own if unit == OWN else unit
    return name.replace("_", " "), ""


def measured(name):
    """Returns a number's name and its unit, where the name ends with one: `"ink (%)"`, `"age [years]"`, `"age_years"`.

    Text in brackets is a unit; without brackets those of `UNITS` are.
    """
    bracket = re.fullmatch(r"(.+?)[\s_]*[(\[]([^()\[\]]+)[)\]]", name)
    named, unit = bracket.groups() if bracket else (name, "")
    known = None if bracket else re.fullmatch(r"(.+?)(?:[\s_]in)?[\s_](\w+|%)", name)
    if known and known[2] in UNITS:
        named, unit = known.groups()
    return named.replace("_", " ").strip(), "percent" if unit == "%" else unit.replace("_", " ")


def worded(title):
    """Returns what `titled` returned as one text, for the head of a column: `"mean error of ink, in percent"`."""
    words, unit = title
    return f"{words}, in {unit}" if unit else words


def told(title, text):
    """Returns what `titled` returned with a written value, for a sentence: `"mean error of ink 2.5 percent"`."""
    words, unit = title
    return f"{words} {text} {unit}" if unit else f"{words} {text}"


def _parts(name):
    """Returns a score and the class or number that it is of, or `None`: of `"iou sky"`, `"ap zero"`, `"mae_age"`."""
    score, _, of = name.partition(" ")
    if score in ("iou", "ap", "ap50", "pq", "psnr", "ssim", "input_psnr") and of:
        return score, of
    score, _, of = name.partition("_")
    return (score, of) if score in ("mae", "rmse", "r2") and of else None


SHARES = (
    *("accuracy", "iou", "top-1", "calibration", "exact_match", "exact match", "error_rate", "error rate"),
    *("false_alarms", "unknown_found"),
    *("recall_at", "recall at", "chance_at", "chance of recall", "r@", "delta1", "share of"),
)  # in the names of scores, and in recipes' words for them
OWN = "its own"  # the unit of the number itself
UNITS = {
    *("percent", "%", "years", "months", "weeks", "days", "hours", "minutes", "seconds", "degrees", "pixels"),
    *("mm", "cm", "km", "kg", "mg", "meters", "grams"),
}
WORDS = {
    "loss": ("loss", ""),
    "top_5_accuracy": ("top-5 accuracy", ""),
    "f1": ("F1", ""),
    "weighted_f1": ("weighted F1", ""),
    "macro_f1": ("macro F1", ""),
    "micro_f1": ("micro F1", ""),
    "kappa": ("Cohen's kappa", ""),
    "quadratic_kappa": ("quadratic kappa", ""),
    "matthews": ("Matthews correlation", ""),
    "auc": ("area under the ROC curve", ""),
    "partial_auc": ("area above 80 % sensitivity, of 0.2", ""),
    "map": ("mAP", ""),
    "map50": ("mAP50", ""),
    "mask_ap": ("mask AP", ""),
    "mask_ap50": ("mask AP50", ""),
    "pq": ("panoptic quality", ""),
    "sq": ("segmentation quality", ""),
    "rq": ("recognition quality", ""),
    "ap": ("average precision", ""),
    "ap50": ("AP50", ""),
    "mean_iou": ("mean IoU", ""),
    "iou": ("IoU", ""),
    "overall_iou": ("overall IoU", ""),
    "empty_accuracy": ("accuracy of empty masks", ""),
    "abs_rel": ("absolute relative error", ""),
    "delta1": ("share of pixels right within a factor of 1.25", ""),
    "mae": ("mean error", OWN),
    "rmse": ("root mean squared error", OWN),
    "r2": ("R2", ""),
    "psnr": ("PSNR", "dB"),
    "input_psnr": ("PSNR of the input", "dB"),
    "ssim": ("SSIM", ""),
    "frechet": ("Fréchet distance", ""),
    "thumbnail_frechet": ("Fréchet distance of thumbnails", ""),
    "knn_accuracy": ("20-NN accuracy", ""),
    "unknown_auroc": ("area under the ROC curve of unknown images", ""),
    "false_alarms": ('share of images called "none of these"', ""),
    "unknown_found": ("share of unknown images found", ""),
}  # a score's words and unit, by its name
