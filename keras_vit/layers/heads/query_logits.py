"""Logits of each patch with queries: the class head of OWL-ViT."""

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.utils.typed import Positive

LOWEST = float(np.finfo("float32").min)  # the logit of a query that is none
SMALL = 1e-6  # added to the length of a vector before the division


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryLogits(Layer):
    """Compares each patch with queries, such as the embeddings of texts.

    Minderer et al. 2022 (OWL-ViT, arXiv:2205.06230), section 3.1. A dense layer brings patches to the space of the
    queries. The logit is `(cosine + shift) * (elu(scale) + 1)`; each patch predicts its own shift and scale.

    Args:
        units: Channels of a query.
        queries: Number of queries that the layer keeps as a weight, `(units, queries)`; `None` if they are an input.
            Defaults to `None`.

    Call arguments:
        inputs: Patches alone if the layer keeps the queries. Else patches, queries of any length, and the ids of their
            texts: a text that begins with the id 0 is no query, and has the lowest float32 number as its logit.

    Input shape:
        `(batch, patches, width)`; or also `(queries, units)` and `(queries, length)`.

    Output shape:
        `(batch, patches, queries)`, float32.

    Raises:
        ValueError: For an argument outside its range, or queries of another width.

    Example:

    >>> QueryLogits(16, queries=3)(keras.ops.ones((1, 6, 32))).shape
    (1, 6, 3)
    """

    def __init__(self, units: Positive, queries: Positive | None = None, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.queries = queries

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        shape = input_shape if self.queries else input_shape[0]
        self.dense0 = Dense(self.units, name="dense0", dtype=self.dtype_policy)
        self.logit_shift = Dense(1, name="logit_shift", dtype=self.dtype_policy)
        self.logit_scale = Dense(1, name="logit_scale", dtype=self.dtype_policy)
        for layer in (self.dense0, self.logit_shift, self.logit_scale):
            layer.build(shape)
        if self.queries:
            self.vectors = self.add_weight((self.units, self.queries), "glorot_uniform", name="queries")

    def embed(self, x):
        """Returns patches in the space of the queries, not normalized, float32 `(batch, patches, units)`."""
        return ops.cast(self.dense0(x), "float32")

    def call(self, inputs):
        if self.queries:
            x, ids = inputs, None
            queries = unit(ops.cast(self.vectors, "float32"), axis=0)
        else:
            x, queries, ids = inputs
            queries = ops.transpose(unit(ops.cast(queries, "float32")))
        cosines = ops.matmul(unit(self.embed(x)), queries)  # (batch, patches, queries)
        shift, scale = (ops.cast(layer(x), "float32") for layer in (self.logit_shift, self.logit_scale))
        logits = (cosines + shift) * (ops.elu(scale) + 1)
        return logits if ids is None else ops.where(ops.cast(ids, "int32")[:, 0] > 0, logits, LOWEST)

    def compute_output_shape(self, input_shape):
        if self.queries:
            return *input_shape[:-1], self.queries
        patches, queries, _ = input_shape
        if queries[-1] != self.units:
            raise ValueError(f"Queries must have {self.units} channels. Received: {queries[-1]}")
        return *patches[:-1], queries[0]

    def compute_output_spec(self, inputs):
        shape = inputs.shape if self.queries else [x.shape for x in inputs]
        return keras.KerasTensor(self.compute_output_shape(shape), "float32")


def unit(x, axis=-1):
    """Normalizes vectors along an axis as OWL-ViT does: zero vectors stay zero, with finite gradients."""
    squares = ops.sum(x * x, axis=axis, keepdims=True)
    return x / (ops.sqrt(ops.maximum(squares, 1e-24)) + SMALL)
