"""The export copy of a model: the same function in float32, in forms that runtimes compute fast and in integers too.

- Layer normalization is `d * rsqrt(mean(d * d) + epsilon)` with `d = x - mean(x)`: half the operators of Keras's form,
  and only operators that integer runtimes have. For float16, `d` is divided by its largest value before it is squared.
- Attention calls softmax, which runtimes have as one operator, in place of the form that training uses.
- The scale and shift of a block's norm move into the next kernel and bias, and the scale of the scores moves into the
  kernel of the queries. This is exact, and saves passes over the tokens.
"""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers import MLP, MergingBlock, MultiHeadSelfAttention, TransformerBlock
from keras_vit.models.backbone import fill, merged_values, without_lora
from keras_vit.utils.keras_private import sublayers


class ExportNorm(keras.layers.LayerNormalization):
    """Layer normalization of the last axis in few operators; other axes are left to Keras."""

    scaled = shifted = True  # whether the scale and the shift change anything; see `simplify`
    half = False  # whether it must be right in float16 too, where the square of 256 is infinite

    def call(self, inputs):
        if self.axis not in ([-1], [len(inputs.shape) - 1]) or self.rms_scaling:  # Keras 3.16 counts from the start
            return super().call(inputs)
        centered, epsilon = inputs - ops.mean(inputs, axis=-1, keepdims=True), self.epsilon
        if self.half:
            least = math.sqrt(epsilon)
            largest = ops.maximum(ops.max(ops.abs(centered), axis=-1, keepdims=True), least)
            share = least / largest
            centered, epsilon = centered / largest, share * share
        variance = ops.mean(centered * centered, axis=-1, keepdims=True)
        outputs = centered * ops.rsqrt(variance + epsilon)
        outputs = outputs * ops.cast(self.gamma, outputs.dtype) if self.scaled else outputs  # Keras keeps it float32
        return outputs + ops.cast(self.beta, outputs.dtype) if self.shifted else outputs

    def fold_into(self, *readers):
        """Moves scale and shift into the dense layers that take the outputs."""
        gamma, beta = (np.asarray(ops.convert_to_numpy(v), "float64") for v in (self.gamma, self.beta))
        if beta.any() and any(dense.bias is None for dense in readers):
            return
        for dense in readers:
            kernel = np.asarray(ops.convert_to_numpy(dense.kernel), "float64")
            if dense.bias is not None:
                dense.bias.assign(ops.convert_to_numpy(dense.bias) + beta @ kernel)
            dense.kernel.assign(gamma[:, None] * kernel)
        self.gamma.assign(np.ones_like(gamma))
        self.beta.assign(np.zeros_like(beta))

    def simplify(self):
        """Leaves out a scale of ones and a shift of zeros."""
        self.scaled = self.gamma is not None and bool((ops.convert_to_numpy(self.gamma) != 1).any())
        self.shifted = self.beta is not None and bool(ops.convert_to_numpy(self.beta).any())


class ExportAttention(MultiHeadSelfAttention):
    """Self-attention by softmax, whose kernel holds the scale of the scores; not with norms of queries and keys."""

    takes_blocks = False

    def uses_attend(self, training):
        return False

    def fold_scale(self):
        """Moves the scale of the scores into the kernel of the queries."""
        if self.qk_norm:
            return
        width = self.qkv.kernel.shape[0]
        factors = np.repeat([self.scale, 1.0, 1.0], width)
        for variable in (self.qkv.kernel, self.qkv.bias):
            if variable is not None:
                variable.assign(ops.convert_to_numpy(variable) * factors)
        if self.qkv_bias and not self.key_bias:
            self.qv_bias.assign(ops.convert_to_numpy(self.qv_bias) * factors[: 2 * width])  # scale, 1
        self.scale = 1.0


class ExportBlock(TransformerBlock):
    """A block that can fold its norms."""

    def fold_norms(self):
        """Moves the norms' scales and shifts into the layers that follow, where these take the norms' outputs."""
        if self.rms_norm:
            return
        if self.norm_order == "pre" and self.parallel:
            self.norm1.fold_into(self.attention.qkv, self.mlp.fc1)
        elif self.norm_order == "pre":
            self.norm1.fold_into(self.attention.qkv)
            self.norm2.fold_into(self.mlp.fc1)
        if self.attention.inner_norm:
            self.attention.norm.fold_into(self.attention.proj)
        if self.mlp.inner_norm:
            self.mlp.norm.fold_into(self.mlp.fc2)


class ExportMergingBlock(ExportBlock, MergingBlock):
    """A block that merges tokens and can fold its norms."""


class ExportGroups(keras.layers.Conv2D):
    """A convolution in groups as one by channel, or as several: Keras lets XLA compile it, which ONNX cannot hold."""

    def convolution_op(self, inputs, kernel):
        settings = {"strides": self.strides, "padding": self.padding, "dilation_rate": self.dilation_rate}
        even = len({*self.strides}) == 1 and {*self.dilation_rate} == {1}  # what TensorFlow's by channel can do
        if self.groups == self.filters == inputs.shape[-1] and even:
            settings["strides"] = self.strides[0]
            return ops.depthwise_conv(inputs, ops.transpose(kernel, (0, 1, 3, 2)), **settings)
        parts, kernels = (ops.split(x, self.groups, axis=-1) for x in (inputs, kernel))
        return ops.concatenate([ops.conv(x, k, **settings) for x, k in zip(parts, kernels)], axis=-1)


# Of exactly these classes: a subclass may compute something else.
FORMS = {
    keras.layers.LayerNormalization: ExportNorm,
    MultiHeadSelfAttention: ExportAttention,
    TransformerBlock: ExportBlock,
    MergingBlock: ExportMergingBlock,
}


def export_copy(model, *, fold=True, erf=False, half=False, dtype="float32"):
    """Returns a copy of a model in these forms; the model does not change.

    Args:
        model: A Keras model under any precision policy. The model itself is returned if Keras cannot clone
            it, for example because a layer has no configuration.
        fold: Whether to fold the norms' scales and shifts. Not for integers: a channel that is large before its scale
            is small after it, and integers share one scale.
        half: Whether norms must be right in float16 too, in which GPUs of phones compute.
        dtype: Precision policy of the copy.
        erf: Whether to write the exact GELU with the error function, and convolutions in groups otherwise, for ONNX.

    Raises:
        ValueError: If the model is not in float32 and cannot be cloned.
    """
    copy = copied(model, dtype)
    if copy is model:
        return model
    layers = sublayers(copy)
    for layer in layers:  # at any depth, also in layers of the user's own: each has the weights of its form already
        layer.__class__ = FORMS.get(type(layer), type(layer))
    for layer in layers:
        if isinstance(layer, ExportBlock) and fold:
            layer.fold_norms()
        if isinstance(layer, ExportAttention):
            layer.fold_scale()
        if erf:
            _use_erf(layer)
            grouped = type(layer) is keras.layers.Conv2D and layer.groups > 1 and layer.data_format == "channels_last"
            layer.__class__ = ExportGroups if grouped else type(layer)
    for layer in layers:
        if isinstance(layer, ExportNorm):
            layer.simplify()
            layer.half = half
    return copy


def float32(model):
    """Returns the model, or its copy in float32: graphs of mixed precision do not convert."""
    return copied(model) if _other_policies(model) else model


def _other_policies(model):
    """Returns the names of the policies other than float32 in a model."""
    return {layer.dtype_policy.name for layer in sublayers(model, include_self=False)} - {"float32"}


def copied(model, dtype="float32"):
    """Returns a copy under a precision policy, its own if `None`, or the model itself if it cannot be cloned."""

    def rebuild(layer):
        config = without_lora(layer.get_config())
        if dtype and isinstance(layer, keras.layers.Layer):  # operations of keras.ops have no precision of their own
            config["dtype"] = dtype
        return layer.from_config(config)

    try:
        copy = keras.models.clone_model(model, clone_function=rebuild, recursive=True)
        fill(copy, [ops.convert_to_numpy(value) for value in merged_values(model)])
    except (ValueError, TypeError, NotImplementedError) as error:
        policies = _other_policies(model)
        if policies:
            raise ValueError(
                f"Export needs a copy of the model in float32, and Keras cannot clone {model.name!r}, which is under "
                f"{', '.join(sorted(policies))}: {error}"
            ) from None
        return model
    return copy


def _use_erf(layer):
    """Writes a layer's exact GELU with the error function: ONNX has no complementary one, which TensorFlow takes."""
    exact = layer.gelu == "exact" and not layer.swiglu if type(layer) is MLP else False
    if exact or getattr(layer, "activation", None) is keras.activations.gelu:
        layer.activation = _erf_gelu


def _erf_gelu(x, training=False):
    return 0.5 * x * (1.0 + ops.erf(x / math.sqrt(2)))
