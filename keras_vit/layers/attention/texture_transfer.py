"""Textures of a reference image, found by attention for each place of another image."""

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.heads.add_to_image import HALF, enlarged, matrices
from keras_vit.utils.resampling import resize_matrix
from keras_vit.utils.taking import rows_of
from keras_vit.utils.typed import Positive

DESCRIBED = 8  # channels of what is compared
PATCH = 3  # positions of a side of what is compared
AROUND = 5  # pixels of a side of the mean that is subtracted first
SCORES = 2**20  # that are in memory at once, for each image
FAINT = 1e-3  # added to squared lengths: a patch without texture is similar to nothing


@keras.saving.register_keras_serializable(package="keras_vit")
class TextureTransfer(Layer):
    """Textures of a reference image for each position of a smaller image, as in Yang et al. 2020 (arXiv:2006.04139).

    The "texture transformer", "TTSR", section 3.1. Queries are features of the image, keys are those of the reference,
    shrunk to the image's resolution, values are those of the reference itself. Of each query's patch, 3 x 3 positions,
    the most similar patch of the keys is found, by the normalized inner product (equation 1). The value of that place
    is returned (hard attention, equation 3), and the inner product as its score (soft attention, equation 5).

    Here the learned features are a convolution of pixels without their local mean, whatever the image's brightness. The
    reference has keys at twice as many positions a side as it has shrunk pixels, so that a texture fits more exactly.
    Its values are a convolution of what shrinking removes.

    The search compares all positions: 144 x (image positions) x (keys) floating-point operations. It works through the
    image in rows, so that memory holds 2**20 scores for each image at most. No gradient goes through the choice, as in
    the paper; scores train the features.

    Args:
        filters: Channels of the textures.
        scale: Factor from the image's resolution to the reference's.

    Call arguments:
        inputs: Pair of images and references, pixels from 0 to 255.

    Input shape:
        `(batch, height, width, channels)` and `(batch, scale * rows, scale * columns, channels)`, of known sizes.

    Output shape:
        Textures, `(batch, height, width, filters)`, and scores from -1 to 1, `(batch, height, width, 1)`.

    Raises:
        ValueError: For an argument outside its range, or inputs of other shapes.

    Example:

    >>> pair = [keras.ops.ones((1, 8, 8, 3)), keras.ops.ones((1, 24, 16, 3))]
    >>> textures, scores = TextureTransfer(4, scale=2)(pair)
    >>> textures.shape, scores.shape
    ((1, 8, 8, 4), (1, 8, 8, 1))
    """

    def __init__(self, filters: Positive, *, scale: Positive = 1, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # pixels in half precision would be too coarse to compare
        self.filters = filters
        self.scale = scale

    def build(self, input_shape):
        (*_, channels), (_, *sides, _) = self._shapes(input_shape)
        rows, columns = (side // self.scale for side in sides)
        self.smaller = [
            resize_matrix(self.scale * side, side, "bicubic-antialias").T.astype("float32") for side in (rows, columns)
        ]
        self.larger = matrices((rows, columns), self.scale)
        self.steps = (0,) if self.scale == 1 else (0, self.scale // 2)
        self.mean = keras.layers.AveragePooling2D(AROUND, 1, padding="same", data_format=LAST, dtype="float32")
        settings = {"padding": "same", "data_format": LAST}
        # random projections keep inner products, before they are learned
        self.features = keras.layers.Conv2D(
            DESCRIBED, 3, use_bias=False, kernel_initializer="orthogonal", name="features", dtype="float32", **settings
        )
        self.values = keras.layers.Conv2D(
            self.filters, 3 * self.scale, self.scale, name="values", dtype=self.dtype_policy, **settings
        )
        for layer in (self.mean, self.features, self.values):
            layer.build((None, rows, columns, channels))

    def call(self, inputs):
        images, references = (ops.cast(x, "float32") / HALF for x in inputs)
        height, width = images.shape[1:3]
        queries = self._patches(images)  # (batch, height * width, length)
        coarse = [enlarged(each, self.smaller) for each in self._moved(references)]
        keys = ops.concatenate([self._patches(each) for each in coarse], axis=1)  # (batch, keys, length)
        fine = references - enlarged(coarse[0], self.larger)
        values = [self.values(ops.cast(each, self.compute_dtype)) for each in self._moved(fine)]
        values = ops.concatenate([ops.reshape(x, (-1, x.shape[1] * x.shape[2], self.filters)) for x in values], axis=1)
        nearest = ops.stop_gradient(_most_similar(queries, keys))  # (batch, height * width)
        scores = ops.sum(queries * rows_of(keys, nearest), axis=-1)  # (batch, height * width)
        textures = ops.reshape(rows_of(values, nearest), (-1, height, width, self.filters))
        return textures, ops.cast(ops.reshape(scores, (-1, height, width, 1)), self.compute_dtype)

    def _moved(self, references):
        """Returns references, moved up and left by each of the steps; the last pixels are repeated."""
        rows, columns = references.shape[1:3]
        last = self.steps[-1]
        x = ops.concatenate([references, *[references[:, -1:]] * last], axis=1)
        x = ops.concatenate([x, *[x[:, :, -1:]] * last], axis=2)
        return [x[:, i : i + rows, j : j + columns] for i in self.steps for j in self.steps]

    def _patches(self, images):
        """Returns the normalized patch of features around each position, `(batch, positions, length)`."""
        x = self.features(images - self.mean(images))
        rows, columns, length = x.shape[1], x.shape[2], PATCH * PATCH * DESCRIBED
        x = ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        near = [x[:, i : i + rows, j : j + columns] for i in range(PATCH) for j in range(PATCH)]
        x = ops.reshape(ops.concatenate(near, axis=-1), (-1, rows * columns, length))
        return x * ops.rsqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + FAINT)

    def _shapes(self, input_shape):
        shapes = [tuple(shape) for shape in input_shape]
        known = len(shapes) == 2 and all(len(shape) == 4 and None not in shape[1:] for shape in shapes)
        if not known or shapes[0][3] != shapes[1][3] or any(side % self.scale for side in shapes[1][1:3]):
            raise ValueError(
                "The input must be images and references (batch, height, width, channels), of known sizes and equal "
                f"channels; the sides of references multiples of {self.scale}. Received: {shapes}"
            )
        return shapes

    def compute_output_spec(self, inputs):
        batch, *sides, _ = self._shapes([x.shape for x in inputs])[0]
        kind = self.compute_dtype
        return keras.KerasTensor((batch, *sides, self.filters), kind), keras.KerasTensor((batch, *sides, 1), kind)


def _most_similar(queries, keys):
    """Returns the index of the key with the largest inner product for each query, int32 `(batch, queries)`."""
    at_once, keys = max(SCORES // keys.shape[1], 1), ops.transpose(keys, (0, 2, 1))
    starts = range(0, queries.shape[1], at_once)
    found = [ops.top_k(ops.matmul(queries[:, i : i + at_once], keys), 1)[1][..., 0] for i in starts]
    return ops.cast(ops.concatenate(found, axis=1), "int32")
