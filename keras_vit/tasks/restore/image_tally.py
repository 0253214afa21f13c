"""How alike images are: peak signal-to-noise ratio and structural similarity, by scikit-image."""

import numpy as np

from keras_vit.tasks.restore.luma import BLACK, WEIGHTS
from keras_vit.utils import extras

# Wang et al. 2004, section III.C: a Gaussian window of 11 pixels.
SSIM = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
SMALLEST = 11  # pixels of a side: SSIM is not defined for smaller images


class ImageTally:
    """The mean over images of PSNR in dB and of SSIM, after outputs are rounded as in a file, and borders cut off.

    Args:
        border: Pixels that are left out on each side.
        of_luma: Whether brightness alone is compared, as is usual for enlarged images.

    Raises:
        ImportError: If scikit-image is not installed.
    """

    def __init__(self, border=0, of_luma=True):
        extras.need("The score of restored images", "restoration", "skimage")
        self.border = border
        self.of_luma = of_luma
        self.psnr = []
        self.ssim = []

    def add(self, examples, outputs):
        from skimage.metrics import peak_signal_noise_ratio, structural_similarity

        found = []
        for original, output in zip(examples["originals"], outputs):
            pair = [self._compared(image) for image in (original, np.rint(np.clip(output, 0, 255)))]
            with np.errstate(divide="ignore"):  # of equal images
                found.append(min(peak_signal_noise_ratio(*pair, data_range=255), 100.0))
            if min(pair[0].shape[:2]) >= SMALLEST:
                self.ssim.append(structural_similarity(*pair, channel_axis=-1, **SSIM))
        self.psnr += found
        return np.asarray(found)

    def _compared(self, image):
        border = np.s_[self.border : -self.border or None]
        image = np.asarray(image, "float64")[border, border]
        return _luma(image) if self.of_luma else image

    def result(self):
        found = {"psnr": self.psnr, "ssim": self.ssim}
        return {name: float(np.mean(values)) for name, values in found.items() if values}

    def figures(self):
        return {}


def _luma(image):
    weights = np.asarray(WEIGHTS if image.shape[-1] == 3 else [sum(WEIGHTS)])
    return image @ weights[:, None] + BLACK
