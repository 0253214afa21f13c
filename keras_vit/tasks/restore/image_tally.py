"""Peak signal-to-noise ratio and structural similarity of images, by scikit-image."""

import numpy as np

from keras_vit.tasks.restore.luma import BLACK, WEIGHTS
from keras_vit.tasks.tally import Tally
from keras_vit.utils import extras

# Wang et al. 2004, section III.C: a Gaussian window of 11 pixels.
SSIM = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
SMALLEST = 11  # pixels of a side: SSIM is not defined for smaller images


class ImageTally(Tally):
    """PSNR in dB and SSIM, averaged over images; `input_psnr` is the PSNR without the model.

    Outputs are rounded as in an image file, and borders are cut off.

    Args:
        border: Number of pixels to cut off on each side.
        of_luma: Whether to compare the luma only, as is usual for super-resolution.
        enlarged: Function from a degraded image, `(height, width, channels)`, to the shape of the output; `None` for no
            `input_psnr`.

    Raises:
        ImportError: If scikit-image is not installed.
    """

    def __init__(self, border=0, of_luma=True, enlarged=None):
        super().__init__()
        extras.need("The score of restored images", "restoration", "skimage")
        self.border = border
        self.of_luma = of_luma
        self.enlarged = enlarged

    def add(self, examples, outputs):
        """Counts a batch, and returns the PSNR of each image in dB, `(batch,)`, at most 100.

        Args:
            examples: `"originals"`, `(batch, rows, columns, channels)`, and `"images"`, the degraded ones, both 0..255.
            outputs: Restored images, `(batch, rows, columns, channels)`.
        """
        from skimage.metrics import structural_similarity

        scores = []
        for i, (original, output) in enumerate(zip(examples["originals"], outputs)):
            pair = self._compared(original), self._compared(_rounded(output))
            scores.append(_psnr(*pair))
            self.note("psnr", scores[-1])
            if min(pair[0].shape[:2]) >= SMALLEST:
                self.note("ssim", structural_similarity(*pair, channel_axis=-1, **SSIM))
            if self.enlarged is not None:
                enlarged = _rounded(self.enlarged(examples["images"][i]))
                self.note("input_psnr", _psnr(pair[0], self._compared(enlarged)))
        return np.asarray(scores)

    def _compared(self, image):
        border = np.s_[self.border : -self.border or None]
        image = np.asarray(image, "float64")[border, border]
        return _luma(image) if self.of_luma else image


def _rounded(image):
    return np.rint(np.clip(image, 0, 255))


def _psnr(original, image):
    from skimage.metrics import peak_signal_noise_ratio

    with np.errstate(divide="ignore"):  # equal images
        return min(peak_signal_noise_ratio(original, image, data_range=255), 100.0)


def _luma(image):
    weights = np.asarray(WEIGHTS if image.shape[-1] == 3 else [sum(WEIGHTS)])
    return image @ weights[:, None] + BLACK
