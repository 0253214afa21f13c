"""The MLP of a block."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.gelu import recomputed_gelu
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.dense import Dense
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils.typed import AboveZero, Positive, Rate, Switch, among

GELUS = ("tanh", "exact", "quick")
ACTIVATIONS = ("relu", *GELUS)


@keras.saving.register_keras_serializable(package="keras_vit")
class MLP(Layer):
    """MLP: two dense layers with a GELU between, applied to each token.

    Args:
        hidden_dim: Channels between the two layers.
        gelu: `"tanh"`, the approximation that Google and big_vision train with; `"exact"` (the error function), as
            in timm and Hugging Face; `"quick"` (`x * sigmoid(1.702 x)`), as in OpenAI's CLIP; or `"relu"`, as in the
            original Transformer.
        swiglu: Whether the first layer also computes a gate, and `silu(gate) * x` replaces the GELU. Shazeer 2020
            (arXiv:2002.05202); as in DINOv2's giant.
        use_bias: Whether the dense layers have a bias.
        inner_norm: Whether the hidden channels are normalized before the second layer.
        rms_norm: Whether that is an RMS normalization; else a layer normalization.
        epsilon: Epsilon of that normalization.
        dropout: Rate of the dropout after each dense layer.

    Call arguments:
        x: Tensor of tokens.
        training: Whether dropout is on.

    Input shape:
        `(batch, ..., width)`.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: For an unknown `gelu`, or a number outside its range.

    Example:

    >>> MLP(256)(keras.ops.zeros((2, 50, 64))).shape
    (2, 50, 64)
    """

    def __init__(
        self,
        hidden_dim: Positive,
        *,
        gelu: among(ACTIVATIONS) = "tanh",
        swiglu: Switch = False,
        use_bias: Switch = True,
        inner_norm: Switch = False,
        rms_norm: Switch = False,
        epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.gelu = gelu
        self.swiglu = swiglu
        self.use_bias = use_bias
        self.inner_norm = inner_norm
        self.rms_norm = rms_norm
        self.epsilon = epsilon
        self.dropout = dropout

    def build(self, input_shape):
        dense = {"use_bias": self.use_bias, "dtype": self.dtype_policy}
        self.fc1 = Dense(self.hidden_dim * (1 + self.swiglu), name="fc1", **dense)
        self.fc1.build(input_shape)
        hidden_shape = (*tuple(input_shape)[:-1], self.hidden_dim)
        if self.inner_norm:
            self.norm = norm("norm", rms_norm=self.rms_norm, epsilon=self.epsilon, dtype=self.dtype_policy)
            self.norm.build(hidden_shape)
        self.fc2 = Dense(input_shape[-1], name="fc2", **dense)
        self.fc2.build(hidden_shape)
        self.drop1 = keras.layers.Dropout(self.dropout, name="drop1", dtype=self.dtype_policy)
        self.drop2 = keras.layers.Dropout(self.dropout, name="drop2", dtype=self.dtype_policy)

    def call(self, x, training=None):
        x = tokenwise(lambda x: self.activation(self.fc1(x), training), x)  # (batch, ..., hidden_dim)
        x = self.drop1(x, training=training)
        x = tokenwise(self.norm, x) if self.inner_norm else x
        return self.drop2(tokenwise(self.fc2, x), training=training)  # (batch, ..., width)

    def activation(self, x, training=False):
        """Returns `(..., hidden_dim)` from the first layer's output, as wide or, with `swiglu`, twice as wide."""
        if self.swiglu:
            gate, x = ops.split(x, 2, axis=-1)
            return ops.silu(gate) * x
        if self.gelu == "relu":
            return ops.relu(x)
        if self.gelu == "quick":
            return x * ops.sigmoid(1.702 * x)
        gelu = recomputed_gelu if training else keras.activations.gelu
        return gelu(x, approximate=self.gelu == "tanh")

    def compute_output_shape(self, input_shape):
        return input_shape
