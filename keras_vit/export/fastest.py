"""Long predictions: as they begin, until a predictor proves faster on this machine and gives the same outputs."""

import time

import numpy as np

from keras_vit.export.predictor import choose

WORTH = 60.0  # seconds still needed, from which on a predictor is tried: to build one takes some
TIMED = 3  # the batch that is timed: before it, graphs are traced and memory is taken
FASTER = 0.8  # of the time
SAME = 1e-5  # largest difference, as a share of the outputs' range


class Fastest:
    """A function from many batches of pixels, all of one size, to a model's outputs.

    Args:
        model: A Keras model of one output.
        run: Function from a batch to its outputs by Keras.
        count: Number of all images.
        say: Function that is called with a line of text when the engine changes.
    """

    def __init__(self, model, run, count, say):
        self.model = model
        self.run = run
        self.left = count
        self.say = say
        self.calls = 0
        self.fast = None

    def __call__(self, images):
        if self.fast is not None:
            try:
                return self.fast(images)
            except Exception:  # of its engine, whatever it is
                self.fast = None
                self.say("The faster engine failed: Keras computes again.")
        outputs, seconds = _timed(self.run, images)
        self.calls += 1
        self.left -= len(images)
        if self.calls == TIMED and seconds * self.left / len(images) > WORTH:
            self.fast = self._proved(images, outputs, seconds)
        return outputs

    def _proved(self, images, outputs, seconds):
        """Returns a predictor if it is faster on these images with the same outputs, else `None`."""
        try:
            fast, _ = choose(self.model, batch_size=len(images))
            found, taken = _timed(fast, images)
        except Exception:  # it cannot take this model
            return None
        same = np.abs(found - outputs).max() <= SAME * np.ptp(outputs)  # false for NaN
        if not same or taken > FASTER * seconds:
            return None
        name = {"openvino": "OpenVINO", "tflite": "TFLite", "keras": "XLA"}[fast.engine]
        self.say(f"From here on {name} computes, {seconds / taken:.1f} times as fast.")
        return fast


def _timed(function, images):
    """Returns what a function makes of images, and the seconds that it took."""
    before = time.perf_counter()
    outputs = np.asarray(function(images))
    return outputs, time.perf_counter() - before
