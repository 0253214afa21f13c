"""What is said of an output that is an image: its size."""

import numpy as np


class ReturnsImages:
    """Answers of a task whose output for an image is an image, `(rows, columns, channels)`, 0..255."""

    def answer(self, output):
        """Returns width and height in pixels of an image, `(rows, columns, channels)`."""
        height, width = np.shape(output)[:2]
        return {"width": width, "height": height}

    def said(self, answer):
        """Returns text such as `"640 x 480 pixels"` from an answer."""
        return f"{answer['width']} x {answer['height']} pixels"

    def listed(self, output, top):
        """Returns both pairs of the answer, from an image, `(rows, columns, channels)`."""
        return [*self.answer(output).items()]

    def result(self, output, size=None):
        """Returns the image, `(rows, columns, channels)`, rounded and clipped to uint8; `size` is not used."""
        return np.clip(np.rint(output), 0, 255).astype("uint8")
