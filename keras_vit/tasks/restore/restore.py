"""Image restoration: super-resolution, colorization, denoising and inpainting."""

import dataclasses
import functools
from dataclasses import dataclass

import keras
import numpy as np

from keras_vit.models.inputs import fed, metadata_of
from keras_vit.tasks import dense, refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.images import ReturnsImages
from keras_vit.tasks.restore import jobs as several
from keras_vit.tasks.restore import reference as referring
from keras_vit.tasks.restore.image_tally import ImageTally
from keras_vit.tasks.restore.job_tally import JobTally
from keras_vit.tasks.restore.luma import PSNR, PixelDistance
from keras_vit.tasks.restore.windows import check_settings, check_sizes
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.resampling import resize_matrix


@dataclass(frozen=True, repr=False)
class Restore(ReturnsImages, Task):
    """Image restoration, trained on images without labels: super-resolution, colorization, denoising, inpainting.

    Training images are degraded by the options below, in this order. The model learns the difference to the original,
    by the mean absolute error: patch tokens and the stem's feature map become pixels, which are added to the image (see
    `PixelHead` and `AddToImage`). A stem of `(filters, stride)` pairs has no batch normalization here, as in Lim et al.
    2017 (arXiv:1707.02921, "EDSR"), section 3.1.

    The model takes degraded images, `(batch, height, width, channels)`, 0..255, and returns `(batch, scale * height,
    scale * width, channels)`, float32 pixels, which may leave 0..255; with `gray`, 1 channel becomes 3. `image_size` is
    the size of these training windows. Images of any size are restored in overlapping tiles. Recipes must set
    `augment.crop` and `data.resize` to `"window"`: images are never resized.

    With `jobs`, one model does several (Chen et al. 2021, arXiv:2012.00364, "IPT"): each has a head and a tail, and the
    blocks between are shared. The model takes a dictionary: `"images"`, each at the size of its original, enlarged by
    cubic convolution where the job enlarges, and `"labels"`, the index of each image's job, int32 `(batch,)`. In
    training the job of each image is drawn; in evaluation each image is given to all jobs. `load_run(run, job="x2")`
    has the model of a single job, which takes images alone, as they are given.

    Args:
        classes: Not used: the task has no classes.
        scale: Factor by which the model enlarges both sides. Training images are shrunk by antialiased cubic
            convolution, as MATLAB's `imresize` does.
        gray: Whether to colorize gray images: the model takes one channel and keeps its brightness.
        noise: Standard deviation of normal noise, for pixels from 0 to 255.
        jpeg: Quality of JPEG compression, 1 to 100; `None` for no compression.
        mask: Mean share of the image that is covered with black squares of 8 x 8 pixels.
        luma: Whether to learn the luma only: colors are enlarged by cubic convolution. Scores then compare the luma
            only; they also do if `scale` is above 1, as is usual for super-resolution.
        head_depth: Number of residual branches after tokens and feature map are added; see `PixelHead`. With `jobs`,
            each job has its own.
        jobs: Names of several jobs, in place of the options above: `"x2"` enlarges twice, `"denoise25"` undoes noise of
            this standard deviation, `"jpeg40"` compression of this quality, and `"inpaint20"` black squares over this
            share in percent. `"x2+jpeg40"` undoes both.
        reference: Whether the model also takes a sharp picture of the same thing, whose textures it finds by attention
            and joins to its own (Yang et al. 2020, arXiv:2006.04139, "TTSR"; see `TextureTransfer`). Its inputs are
            then a dictionary of `"images"` and `"references"`, `(batch, scale * height, scale * width, channels)`.
            References are read from the data, a folder `references` next to `images`, or a column of a table; without,
            each is made of its image, shifted by up to 8 pixels and turned by up to 5 degrees. In training, a quarter
            are those of another image, and an eighth the image itself, enlarged. A border of 12 pixels, or of the next
            multiple of `scale`, is cut off originals and references.
    """

    whole = True
    best = ("val_psnr", "max")
    gives = "image"
    parts = ("enlarged", "restored", "original")
    refuses = {"task.classes": "Restore has no classes.", **refusals.of_places("originals")}

    scale: int = number(1, low=1, most=8)
    gray: bool = False
    noise: float = number(0.0)
    jpeg: int | None = number(None, low=1, most=100)
    mask: float = number(0.0, below=1)
    luma: bool = False
    head_depth: int = number(0)
    jobs: tuple[str, ...] = ()
    reference: bool = False

    @property
    def inputs(self):
        return several.INPUTS if self.jobs else referring.INPUTS if self.reference else ("images",)

    @property
    def extras(self):
        return referring.INPUTS[1:] if self.reference else ()

    def check(self, recipe=None):
        from keras_vit.models.vit import DEFAULTS

        super().check(recipe)
        several.check(self)
        referring.check(self)
        if self.jobs and recipe is not None and "image_size" in recipe.model:
            self._check_sides(checks.pair("image_size", recipe.model["image_size"]))
        if not self.jobs and self.scale == 1 and not (self.gray or self.noise or self.jpeg or self.mask):
            raise ValueError("Restore needs what to undo: scale, gray, noise, jpeg or mask. Received: none of them")
        if self.gray and self.luma:
            raise ValueError("Restore.gray learns colors, Restore.luma brightness alone. Received: both")
        if recipe is None:
            return
        check_settings("Restore", recipe)
        self._check_channels(recipe.model.get("channels", DEFAULTS["channels"]))

    def _check_channels(self, channels):
        if channels not in ((1,) if self.gray else (1, 3)):
            rule = "1 with Restore.gray" if self.gray else "1 or 3"
            raise ValueError(f"The model's channels must be {rule}. Received: channels={channels}")

    def _check_sides(self, sides):
        step = several.step_of(self.singles())
        if any(side % step for side in sides):
            raise ValueError(
                f"model.image_size must be a multiple of {step}, for the scales of all jobs. "
                f"Received: {sides[0]} x {sides[1]}"
            )

    def singles(self):
        """Returns the task of each job alone, a list."""
        return [self.single(job) for job in self.jobs]

    def single(self, job):
        """Returns the task of one of the jobs alone, by its name."""
        task = dataclasses.replace(self, jobs=(), **several.settings_of(job))
        task.check()
        return task

    def data_shape(self, shape):
        """Returns `(scale * height, scale * width, channels)` of the originals; with `gray`, 3 channels.

        With `reference`, there is a border around them.
        """
        (height, width, channels), around = shape, 2 * self.margin
        return self.scale * height + around, self.scale * width + around, 3 if self.gray else channels

    @property
    def margin(self):
        """Pixels around each original from which its reference is made; 0 without references."""
        return -(-referring.MARGIN // self.scale) * self.scale if self.reference else 0

    def on(self, source, arguments=None):
        self.check()
        if arguments is not None:
            size = self.data_shape((*checks.pair("image_size", arguments["image_size"]), 1))[:2]
            check_sizes(source, size, "the model's image_size times the scale")
        return self

    def read(self, source, training=False):
        """Returns a split; for evaluation with each image for each job, whose index is the target `"labels"`."""
        if training or not self.jobs:
            return source
        images, count = len(source), len(self.jobs)
        each = source.take(np.arange(images).repeat(count))
        labels = np.tile(np.arange(count, dtype="int32"), images)
        return dataclasses.replace(each, targets={**each.targets, "labels": labels})

    def model(self, **arguments):
        """Builds the model from degraded to restored images, with shapes as in the class docstring."""
        from keras_vit.layers import AddToImage, PixelHead
        from keras_vit.layers.inputs.stems import stem_for
        from keras_vit.models.vit import DEFAULTS

        self.check()
        channels = arguments.get("channels", DEFAULTS["channels"])
        self._check_channels(channels)
        if isinstance(arguments.get("stem"), (tuple, list)):
            dtype = keras.dtype_policies.get(arguments.get("dtype"))
            arguments["stem"] = stem_for(arguments["stem"], None, dtype, norm=False)
        encoder = dense.encoder(arguments, 0, "restorer")
        features = encoder.get_layer("patches").input  # (batch, rows, columns, filters)
        if not any(layer.name == "stem" for layer in encoder.layers):
            raise ValueError("Restore needs a stem, whose feature map becomes pixels. Received: stem=None")
        changed = 1 if self.luma else self.data_shape((1, 1, channels))[2]
        add = AddToImage(scale=self.scale, keep_brightness=self.gray, name="pixels", dtype="float32")
        if self.jobs:
            self._check_sides(encoder.input_shape[1:3])
            metadata_of(encoder)["jobs"] = list(self.jobs)
            inputs, changes = several.by_job(encoder, features, self, changed)
            output = add([encoder.input, changes])
            return several.plain(dense.finished(encoder, output, arguments, self.classes, "restorer", inputs))
        inputs, outputs = None, encoder.output
        if self.reference:
            inputs, features, outputs = referring.by_reference(encoder, features, self.scale)
        tokens = dense.feature_map(encoder, dense.patches(encoder, outputs), "map")
        scale = self.scale * encoder.input_shape[1] // features.shape[1]
        head = PixelHead(changed, scale=scale, depth=self.head_depth, name="head", dtype=encoder.dtype_policy)
        output = add([encoder.input, head([tokens, features])])
        model = dense.finished(encoder, output, arguments, self.classes, "restorer", inputs)
        return several.plain(model) if self.reference else model

    def compiled(self, source):
        return {"loss": PixelDistance(self.luma), "weighted_metrics": [PSNR(self.luma)]}

    def prepare(self, examples, seed):
        """Degrades `"images"`, float32, 0..255, to the shape that the model takes, and keeps them as `"originals"`.

        With jobs, it adds `"labels"`, the index of each image's job, which is drawn where the split has none.
        """
        from keras_vit.data.augment.degradation import degraded, degraded_by_job
        from keras_vit.data.augment.references import referenced

        if self.jobs:
            return degraded_by_job(examples, self.singles(), seed)
        if self.reference:
            examples = referenced(examples, self.margin, seed)
        originals = examples["images"]
        return {**examples, "images": degraded(originals, self, seed), "originals": originals}

    def batch(self, examples, augment, seed):
        """Returns what the model takes and original images, both float32, 0..255, as `prepare` made them.

        In training, some references are those of another image, or the image itself; see `references.some_useless`.
        """
        if self.reference and augment is not None:
            from keras_vit.data.augment.references import some_useless

            examples = some_useless(examples, seed)
        return fed(examples, self.inputs), examples["originals"]

    @property
    def beside(self):
        return functools.partial(referring.parts_of, scale=self.scale) if self.reference else None

    def tally(self, keep=False):
        if self.jobs:
            tallies = [ImageTally(one.tally().border, one.tally().of_luma, self._enlarged) for one in self.singles()]
            return JobTally(dict(zip(self.jobs, tallies)))
        border, of_luma = self.scale if self.scale > 1 else 0, self.luma or (self.scale > 1 and not self.gray)
        return ImageTally(border, of_luma, self._enlarged)

    def shows(self, output):
        """Returns a description of `picture` without an original; `output` is not used."""
        input_as = (
            "as the model takes it" if self.jobs else "as it is" if self.scale == 1 else "enlarged by cubic convolution"
        )
        return f"from left to right: {input_as}, restored"

    def caption(self, output, example):
        """Returns PSNR with and without the model as text.

        Args:
            output: Restored image, `(scale * height, scale * width, channels)`, 0..255.
            example: `"images"`, the degraded image, and `"originals"`, both 0..255, without the batch axis; with jobs
                also `"labels"`.
        """
        tally = self.tally()
        tally.add({name: np.asarray(value)[None] for name, value in example.items()}, [output])
        scores = tally.result()
        job = f"{self.jobs[example['labels']]}: " if self.jobs else ""
        return f"{job}{scores['psnr']:.2f} dB, without the model {scores['input_psnr']:.2f} dB"

    def picture(self, image, output, example=None):
        """Returns the enlarged, the restored and the original image side by side, uint8 `(rows, columns, 3)`.

        Args:
            image: Degraded image, float32 `(height, width, channels)`, 0..255.
            output: Restored image, `(scale * height, scale * width, channels)`.
            example: Dictionary with `"originals"`, an image of the shape of `output`; or `None`.
        """
        from keras_vit.plots.canvas import side_by_side

        pictures = [self._enlarged(image), output, *([example["originals"]] if example else [])]
        return side_by_side([Task.picture(self, one, None) for one in pictures])

    def _enlarged(self, image):
        """Returns an image, `(height, width, channels)`, enlarged by cubic convolution to the shape of the output."""
        rows, columns = (resize_matrix(side, side * self.scale, "bicubic-antialias") for side in image.shape[:2])
        enlarged = np.einsum("tr,uc,rcx->tux", rows, columns, image, optimize=True)
        return enlarged.repeat(3, axis=-1) if self.gray else enlarged
