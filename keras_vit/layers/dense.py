"""A dense layer whose LoRA can be saved."""

import keras
import numpy as np
from keras import ops

LORA = ("lora_kernel_a", "lora_kernel_b")
SCALE = "lora_scale"


@keras.saving.register_keras_serializable(package="keras_vit")
class Dense(keras.layers.Dense):
    """A dense layer that saves its LoRA (Hu et al. 2022, arXiv:2106.09685) next to its kernel.

    Keras saves only the merged kernel, and sets both LoRA matrices to zero when it loads a file: then both gradients
    are zero, and LoRA no longer trains. From a file without LoRA, this layer initializes the first matrix at random. A
    layer without LoRA loads a file with LoRA as the merged kernel.

    Input shape:
        `(batch, ..., any width)`.

    Output shape:
        `(batch, ..., units)`.
    """

    def quantize(self, mode=None, type_check=True, config=None):
        """Quantizes the layer as `keras.layers.Dense` does."""
        super().quantize(mode, type_check=False, config=config)  # its type check refuses subclasses

    def save_own_variables(self, store):
        """Saves kernel, bias and the LoRA matrices, `(inputs, rank)` and `(rank, units)`, into a store."""
        if not (self.built and self.lora_enabled):
            super().save_own_variables(store)
            return
        self.lora_enabled = False  # else Keras would merge it
        try:
            super().save_own_variables(store)
        finally:
            self.lora_enabled = True
        for name in LORA:
            store[name] = getattr(self, name)
        store[SCALE] = np.float32(self.lora_alpha / self.lora_rank)

    def load_own_variables(self, store):
        """Loads kernel, bias and LoRA matrices from a store of `save_own_variables`, or of Keras's class."""
        values = {name: store[name] for name in store.keys()}  # noqa: SIM118 (a file's is no dictionary)
        lora, scale = [values.pop(name, None) for name in LORA], values.pop(SCALE, None)
        if scale is not None and self.lora_enabled and lora[0].shape[-1] != self.lora_rank:
            raise ValueError(
                f"The LoRA of {self.path!r} must have the file's rank, {lora[0].shape[-1]}. "
                f"Received: rank {self.lora_rank}"
            )
        if scale is not None and not self.lora_enabled and self.quantization_mode is not None:
            raise ValueError(f"{self.path!r} is quantized: add LoRA to load a file with LoRA. Received: no LoRA")
        if scale is not None and not self.lora_enabled:
            values["0"] = np.asarray(values["0"]) + np.asarray(scale) * np.matmul(*map(np.asarray, lora))  # the kernel
        super().load_own_variables(values)
        if self.lora_enabled:  # Keras has set both matrices to zero
            first, second = self.lora_kernel_a, self.lora_kernel_b
            first.assign(keras.initializers.HeUniform()(first.shape) if scale is None else lora[0])
            second.assign(ops.zeros(second.shape) if scale is None else lora[1])
