"""Convolutions of a model that does several jobs: each job has its own."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.heads.add_to_image import enlarged, matrices
from keras_vit.utils.typed import Positive, Switch, Whole

SIDE = 3  # pixels of a kernel


@keras.saving.register_keras_serializable(package="keras_vit")
class JobConv2D(Layer):
    """A 3 x 3 convolution with a kernel and a bias for each job; images of one batch may be of different jobs.

    The heads and tails of Chen et al. 2021 (arXiv:2012.00364, "IPT"), section 3.1. Kernels are gathered by the jobs of
    the batch, and multiplied with the 3 x 3 neighbors of each pixel, which takes nine times the memory of the input.
    Jobs that are not in a batch get gradients of zero.

    Args:
        filters: Channels of the output.
        jobs: Number of jobs.
        zeros: Whether the kernels are initialized with zeros.

    Call arguments:
        inputs: Pair of feature maps, and the index of each map's job, integers from 0 to below `jobs`.

    Input shape:
        `(batch, height, width, channels)`, of known sizes, and `(batch,)`.

    Output shape:
        `(batch, height, width, filters)`.

    Raises:
        ValueError: For an argument outside its range, or inputs of other shapes.

    Example:

    >>> JobConv2D(8, jobs=2)([keras.ops.zeros((3, 6, 6, 4)), keras.ops.array([0, 1, 1])]).shape
    (3, 6, 6, 8)
    """

    def __init__(self, filters: Positive, jobs: Positive, *, zeros: Switch = False, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.jobs = jobs
        self.zeros = zeros

    def build(self, input_shape):
        channels, start = self._shapes(input_shape)[0][3], "zeros" if self.zeros else "glorot_uniform"
        shape = SIDE, SIDE, channels, self.filters
        self.kernels = [self.add_weight(shape=shape, initializer=start, name=f"kernel_{i}") for i in range(self.jobs)]
        self.biases = [
            self.add_weight(shape=(self.filters,), initializer="zeros", name=f"bias_{i}") for i in range(self.jobs)
        ]

    def call(self, inputs):
        x, jobs = inputs
        height, width, channels = x.shape[1:]
        kernels = _of_each(self.kernels, jobs)  # (batch, 3, 3, channels, filters)
        kernels = ops.reshape(kernels, (-1, SIDE * SIDE * channels, self.filters))
        x = ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        near = [x[:, i : i + height, j : j + width] for i in range(SIDE) for j in range(SIDE)]
        x = ops.reshape(ops.concatenate(near, axis=-1), (-1, height * width, SIDE * SIDE * channels))
        biases = ops.expand_dims(_of_each(self.biases, jobs), 1)  # (batch, 1, filters)
        x = ops.matmul(x, kernels) + biases  # (batch, height * width, filters)
        return ops.reshape(x, (-1, height, width, self.filters))

    def _shapes(self, input_shape):
        shapes = [tuple(shape) for shape in input_shape]
        if [len(shape) for shape in shapes] != [4, 1] or None in shapes[0][1:]:
            raise ValueError(
                "The input must be a feature map (batch, height, width, channels) of known size, and the job of each, "
                f"(batch,). Received: {shapes}"
            )
        return shapes

    def compute_output_shape(self, input_shape):
        return *self._shapes(input_shape)[0][:3], self.filters


def _of_each(variables, jobs):
    """Returns the value of the variable of each job in a batch, `(batch, ...)`."""
    return ops.take(ops.concatenate([ops.expand_dims(variable, 0) for variable in variables]), jobs, axis=0)


@keras.saving.register_keras_serializable(package="keras_vit")
class JobInput(Layer):
    """Makes of images what a model of several jobs takes for one of them: larger images, and the index of the job.

    Images are enlarged by Keys' cubic convolution, and rounded to pixels of an image file, 0 to 255.

    Args:
        job: Index of the job.
        scale: Factor on both sides of the images.

    Input shape:
        `(batch, height, width, channels)`, of known sizes; pixels from 0 to 255.

    Output shape:
        Pair of `(batch, scale * height, scale * width, channels)`, float32, and `(batch,)`, int32.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> images, jobs = JobInput(job=1, scale=2)(keras.ops.zeros((3, 6, 6, 4)))
    >>> images.shape, jobs.shape
    ((3, 12, 12, 4), (3,))
    """

    ndim = 4

    def __init__(self, *, job: Whole = 0, scale: Positive = 1, **kwargs):
        super().__init__(**kwargs)
        self.job = job
        self.scale = scale

    def build(self, input_shape):
        self.matrices = matrices(input_shape[1:3], self.scale)

    def call(self, images):
        x = ops.cast(images, "float32")
        if self.scale > 1:
            x = ops.clip(ops.round(enlarged(x, self.matrices)), 0.0, 255.0)
        return x, ops.cast(ops.zeros_like(x[:, 0, 0, 0]), "int32") + self.job

    def compute_output_spec(self, images):
        batch, height, width, channels = images.shape
        shape = batch, self.scale * height, self.scale * width, channels
        return keras.KerasTensor(shape, "float32"), keras.KerasTensor((batch,), "int32")
