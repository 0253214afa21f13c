"""The base class of all tallies, which score a model batch by batch."""

from typing import Any

import numpy as np


class Tally:
    """Scores a model batch by batch.

    Args:
        keep: Whether it keeps the data that its figures need; its memory then grows with the images.
    """

    def __init__(self, keep: bool = False):
        self.keep = keep
        self.kept = []  # for each batch a tuple of arrays, `(batch, ...)` each
        self.values = {}  # by name: lists of one number per image, for scores that are means

    def add(self, examples: dict[str, np.ndarray], outputs: np.ndarray) -> np.ndarray | None:
        """Counts a batch.

        Args:
            examples: `"images"`, float32 `(batch, height, width, channels)`, 0..255, as the model takes them, and the
                targets as the data have them: `"labels"`, integers, `(batch,)`; `"multilabels"`, int8
                `(batch, classes)`, 1, 0 or -1; `"numbers"`, float32 `(batch, numbers)`; `"texts"`, int32 ids
                `(batch, length)`; `"bounding_boxes"`, float32 `(batch, most, 5)`, as in `docs/tasks/detect.md`;
                `"segmentation_masks"`, encoded PNG files, `(batch,)`, or uint8 `(batch, rows, columns, 1)`,
                `"depths"`, encoded files, `(batch,)`, or float32 `(batch, rows, columns, 1)`, and `"instance_masks"`,
                maps of objects, encoded PNG files, `(batch,)`, or int32 `(batch, rows, columns, 1)`, all at their own
                size.
            outputs: Array of outputs, `(batch, ...)`, from the function of `Task.answering`.

        Returns:
            A score for each image, `(batch,)`, higher for better, or `None`.
        """
        raise NotImplementedError

    def result(self) -> dict[str, float]:
        """Returns the scores by name: by default, the means of the numbers from `note`."""
        return {name: float(np.mean(values)) for name, values in self.values.items() if values}

    def figures(self) -> dict[str, Any]:
        """Returns matplotlib figures by caption."""
        return {}

    def note(self, name: str, value: float):
        """Adds a score of one image, of which `result` returns the mean by `name`."""
        self.values.setdefault(name, []).append(float(value))

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Returns the kept arrays of all images, `(images, ...)` each; joined once, since they may be large."""
        self.kept = [tuple(map(np.concatenate, zip(*self.kept)))]
        return self.kept[0]
