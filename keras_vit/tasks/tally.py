"""What scores a model batch by batch: the base of the tallies of all tasks."""

from typing import Any

import numpy as np


class Tally:
    """Scores a model batch by batch.

    Args:
        keep: Whether it keeps what its figures need, so that its memory grows.
    """

    def __init__(self, keep: bool = False):
        self.keep = keep
        self.kept = []  # of each batch a tuple of arrays, an entry an image
        self.values = {}  # of scores that are means over images: lists of numbers by name

    def add(self, examples: dict[str, np.ndarray], outputs: np.ndarray) -> np.ndarray | None:
        """Counts a batch.

        Args:
            examples: `"images"`, float32 `(batch, height, width, channels)`, 0..255, as the model sees them, and the
                targets as the data have them: `"labels"`, `(batch,)`; `"multilabels"`, `(batch, classes)`, 1, 0 or -1;
                `"segmentation_masks"`, encoded PNG files or uint8 `(batch, rows, columns, 1)`, at their own size;
                `"bounding_boxes"`, float32 `(batch, most, 5)`, as in `docs/tasks/detect.md`.
            outputs: The model's outputs, `(batch, ...)`.

        Returns:
            A score for each image, `(batch,)`, higher for better, or `None`.
        """
        raise NotImplementedError

    def result(self) -> dict[str, float]:
        """Returns the scores by name: by default the means of what was noted."""
        return {name: float(np.mean(values)) for name, values in self.values.items() if values}

    def figures(self) -> dict[str, Any]:
        """Returns matplotlib figures by caption."""
        return {}

    def note(self, name: str, value: float):
        """Notes a score of one image."""
        self.values.setdefault(name, []).append(float(value))

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Returns what was kept of all images, `(images, ...)` each, joined once, since it may be large."""
        self.kept = [tuple(map(np.concatenate, zip(*self.kept)))]
        return self.kept[0]
