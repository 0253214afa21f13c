"""The projection head of self-distillation."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.layers.heads.similarity import unit


class PrototypeHead(Layer):
    """Projects embeddings and compares them with learned prototypes.

    Two hidden layers with GELU and a third one, the bottleneck, whose output has length 1; then the cosine of the angle
    to each prototype, a linear layer with normalized weights. Caron et al. 2021 (arXiv:2104.14294), section 3.1 and
    appendix C. Lengths and cosines are float32 with any precision policy: they are divided by a small temperature.

    Args:
        prototypes: Number of prototypes.
        hidden: Channels of the hidden layers.
        bottleneck: Channels of the bottleneck.

    Call arguments:
        x: Tensor of embeddings.
        trained: Scalar tensor by which gradients of the prototypes are multiplied; `None` for 1.

    Input shape:
        `(batch, any width)`.

    Output shape:
        `(batch, prototypes)`, float32, -1..1.
    """

    def __init__(self, prototypes: int, hidden: int = 2048, bottleneck: int = 256, **kwargs):
        super().__init__(**kwargs)
        self.prototypes = prototypes
        self.hidden = hidden
        self.bottleneck = bottleneck

    def build(self, input_shape):
        width, self.dense = input_shape[-1], []
        for i, units in enumerate((self.hidden, self.hidden, self.bottleneck)):
            initializer = keras.initializers.TruncatedNormal(stddev=0.02)
            layer = Dense(units, kernel_initializer=initializer, name=f"fc{i + 1}", dtype=self.dtype_policy)
            layer.build((None, width))
            self.dense.append(layer)
            width = units
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.bottleneck, self.prototypes),
            initializer=keras.initializers.RandomNormal(stddev=self.bottleneck**-0.5),
            autocast=False,
        )

    def call(self, x, trained=None):
        for layer in self.dense[:-1]:
            x = keras.activations.gelu(layer(x), approximate=False)
        x = ops.cast(self.dense[-1](x), "float32")
        kernel = ops.convert_to_tensor(self.kernel)
        if trained is not None:
            fixed = ops.stop_gradient(kernel)
            kernel = fixed + ops.cast(trained, "float32") * (kernel - fixed)
        return ops.matmul(unit(x), unit(kernel, axis=0))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.prototypes)
