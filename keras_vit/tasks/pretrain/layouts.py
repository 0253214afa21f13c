"""The differences between masked autoencoders of images and of clips: masks, patches and targets."""

import math

from keras import ops

from keras_vit.checkpoints.tables import grid
from keras_vit.layers import Frames, Patches, Tubelets
from keras_vit.tasks.pretrain import patch_pixels
from keras_vit.tasks.pretrain.encoder import SHARE, SHARE_OF_TUBES, visible_patches
from keras_vit.utils import checks, clip_files
from keras_vit.utils.value_range import ends


class ImageLayout:
    """Images: patches are masked independently, and normalized over all their values.

    He et al. 2021 (arXiv:2111.06377). Every layout has the same attributes and methods.

    Args:
        arguments: Arguments of the model, as `arguments_of` returns them.
        ratio: Share of the patches that are masked; `None` for the paper's.

    Raises:
        ValueError: If no patch would be visible, or none masked.
    """

    share = SHARE
    tubes = False
    layers = ("rescale", "patches", "encoder")  # layers of the model before the blocks
    computed = ()  # variables of the decoder that are computed, and not in published files
    checked = staticmethod(checks.pixels)

    def __init__(self, arguments, ratio=None):
        self.arguments = arguments
        self.grid = grid(arguments)  # ([steps], rows, columns)
        self.steps, rows, columns = (1, *self.grid)[-3:]
        self.columns = rows * columns  # columns of the noise
        self.patches = self.steps * self.columns
        self.ratio = self.share if ratio is None else ratio
        self.visible = self.steps * visible_patches(self.columns, self.ratio, self.tubes)
        self.values = math.prod(arguments["patch_size"]) * arguments["channels"]
        self.alike = self.values  # number of values that are normalized together
        self.cut = Patches(arguments["patch_size"], name="cut", dtype="float32")

    @property
    def decoder(self):
        """Arguments of the `PixelDecoder`."""
        return {"grid": self.grid}

    def noise(self, noise):
        """Returns a number for each patch, `(batch, patches)`, from noise, `(batch, patches or more)`."""
        return noise[:, : self.patches]

    def patches_of(self, model, images):
        """Returns float32 targets before normalization, `(batch, patches, values)`, from images, 0..255."""
        return self.cut(ops.cast(model.get_layer("rescale")(images), "float32"))

    def statistics(self, patches):
        """Returns mean and standard deviation, `(batch, patches, 1)` each, of patches, `(batch, patches, values)`."""
        return patch_pixels.statistics(patches)

    def joined(self, patches, shape):
        """Returns images of the shape `(batch, height, width, channels)` from patches, `(batch, patches, values)`."""
        return patch_pixels.joined(patches, self.arguments["patch_size"], shape)

    def shares(self, images, mean, std):
        """Returns joined patches, `(batch, height, width, channels)`, as shares of the range of pixels, 0..1."""
        return images * std + mean


class ClipLayout(ImageLayout):
    """Clips: a place is masked at all time steps or none, and each channel of a tubelet is normalized separately.

    Tong et al. 2022 (arXiv:2203.12602), section 3.3, "Tube masking", with the target of its authors' code.
    """

    share = SHARE_OF_TUBES
    tubes = True
    layers = ("frames", "rescale", "patches", "tubelets", "encoder")
    computed = ("decoder/position",)
    checked = staticmethod(clip_files.checked)

    def __init__(self, arguments, ratio=None):
        super().__init__(arguments, ratio)
        self.alike = self.values * arguments["tubelet"] // arguments["channels"]
        self.values = self.values * arguments["tubelet"]
        self.on_top = Frames(arguments["frames"], name="on_top", dtype="float32")
        self.tubelets = Tubelets(arguments["frames"], arguments["tubelet"], name="cut_tubelets", dtype="float32")

    @property
    def decoder(self):
        """Arguments of the `PixelDecoder`, as in VideoMAE."""
        steps, rows, columns = self.grid
        return {
            "grid": (steps * rows, columns),
            "positions": "sincos1d",
            "embed_bias": False,
            "last_epsilon": 1e-5,
            "key_bias": self.arguments["block"]["key_bias"],
        }

    def noise(self, noise):
        """Returns the rank of each place, repeated for all time steps, `(batch, tubelets)`: ties split no tube."""
        ranks = ops.argsort(ops.argsort(noise[:, : self.columns], axis=1), axis=1)
        return ops.tile(ranks, (1, self.steps))

    def patches_of(self, model, images):
        """Returns float32 tubelets, `(batch, tubelets, values)`, 0..1, from clips in the model's range of pixels."""
        low, high = ends(model.get_layer("rescale").limits)
        return self.tubelets(self.cut(self.on_top((ops.cast(images, "float32") - low) / (high - low))))

    def statistics(self, patches):
        """Returns mean and standard deviation, each like tubelets, `(batch, tubelets, values)`."""
        mean, deviation = patch_pixels.statistics_of_channels(patches, self.arguments["channels"])
        repeats = (1, 1, patches.shape[-1] // self.arguments["channels"])
        return ops.tile(mean, repeats), ops.tile(deviation, repeats)

    def joined(self, patches, shape):
        """Returns clips, `(batch, frames, height, width, channels)`, from tubelets, `(batch, tubelets, values)`."""
        return patch_pixels.joined_tubelets(patches, self.arguments["tubelet"], self.arguments["patch_size"], shape)

    def shares(self, images, mean, std):
        """Returns joined tubelets unchanged: they are shares of the range of pixels already."""
        return images


def layout_of(arguments, ratio=None):
    """Returns the layout of a model with these arguments; `ratio` is the share of masked patches, or `None`."""
    return (ClipLayout if "tubelet" in arguments else ImageLayout)(arguments, ratio)
