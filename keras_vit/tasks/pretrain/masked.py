"""Masked autoencoders: pre-training without labels."""

import os

import keras
import numpy as np
from keras import ops

from keras_vit.checkpoints import from_checkpoint
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.formats.mae import read_decoder
from keras_vit.layers.inputs.patch_dropout import rows
from keras_vit.tasks.pretrain.decoder import PixelDecoder
from keras_vit.tasks.pretrain.encoder import check_encoder
from keras_vit.tasks.pretrain.layouts import layout_of
from keras_vit.utils import checks, feeding
from keras_vit.utils.configured import Loss
from keras_vit.utils.typed import typed
from keras_vit.utils.value_range import ends


@keras.saving.register_keras_serializable(package="keras_vit")
class MaskedAutoencoder(keras.Model):
    """Trains a Vision Transformer to reconstruct masked patches. Compile and fit it, then use its `model`.

    He et al. 2021 (arXiv:2111.06377). The model's blocks take the tokens of the visible patches only, a small decoder
    predicts the pixels of all patches, and `MaskedLoss` compares the masked patches. Masks are not random inside: the
    noise that determines them is an input.

    A model of clips is trained as in VideoMAE (Tong et al. 2022, arXiv:2203.12602): a place is masked at all time steps
    or none, and the decoder predicts tubelets.

    Args:
        model: Model from `keras_vit.vit(num_classes=0)` or `keras_vit.video_vit(num_classes=0)`, with the final norm
            before pooling, or none, and without a stem. Its layers are shared, not copied.
        mask_ratio: Share of the patches that are masked, in (0, 1). `int(patches * (1 - mask_ratio))` patches stay
            visible; of a clip's places, `int(places * mask_ratio)` are masked. `None` for 0.75, and 0.9 for clips.
        width: Width of the decoder, a multiple of 4. The default width, depth and heads are the paper's for ImageNet; a
            small model on small images needs less, such as 128, 2 and 4.
        depth: Number of blocks in the decoder.
        num_heads: Number of attention heads in the decoder.
        mlp_dim: Hidden channels of the decoder's MLPs; `None` for four times the width.
        normalize: Whether the decoder predicts pixels normalized in each patch (section 3, "Reconstruction target"), or
            for clips in each channel of each tubelet. Else it predicts pixels as the model's first layer rescales them,
            for clips 0..1.
        last_epsilon: Epsilon of the decoder's last normalization; `None` for the model's epsilon, for clips 1e-5.

    Call arguments:
        inputs: Dictionary of `"images"`, pixels from 0 to 255, and `"noise"`, uniform numbers in [0, 1). The patches of
            an image, or the places of a clip, with the smallest noise stay visible. Surplus columns of the noise are
            ignored.
        training: Whether the model's dropout and stochastic depth are on.

    Input shape:
        `(batch, height, width, channels)` and `(batch, patches or more)`; `(batch, frames, height, width, channels)`
        and `(batch, patches of a frame or more)`.

    Output shape:
        `(batch, patches, patch_height * patch_width * channels + 1)`, float32: the prediction for each patch, then 1 if
        it was masked, else 0. For clips `(batch, tubelets, tubelet * patch_height * patch_width * channels + 1)`, the
        values in the order time, row, column, channel.

    Raises:
        ValueError: If the model has a stem, a head, another final norm or a pooling with weights; if no patch would
            be visible, or none masked.

    Example:

    >>> learner = MaskedAutoencoder(vit("Ti/4", image_size=32, num_classes=0), width=128, depth=2, num_heads=4)
    >>> learner({"images": keras.ops.zeros((2, 32, 32, 3)), "noise": keras.random.uniform((2, 64))}).shape
    (2, 64, 49)
    """

    @typed
    def __init__(
        self,
        model: keras.Model,
        mask_ratio: float | None = None,
        width: int = 512,
        depth: int = 8,
        num_heads: int = 16,
        mlp_dim: int | None = None,
        normalize: bool = True,
        last_epsilon: float | None = None,
        **kwargs,
    ):
        checks.model(model)
        checks.switch(normalize=normalize)
        checks.above_zero(**({} if last_epsilon is None else {"last_epsilon": last_epsilon}))
        checks.rate(mask_ratio=0.0 if mask_ratio is None else mask_ratio)
        arguments = arguments_of(model, words=any(layer.name == "tubelets" for layer in model.layers))
        check_encoder(arguments)
        layout, num_prefix = layout_of(arguments, mask_ratio), model.get_layer("encoder").num_prefix
        if normalize and layout.alike == 1:
            raise ValueError("normalize=True needs patches of two numbers or more. Received: patches of one number")
        super().__init__(autocast=False, **kwargs)  # pixels stay as they are
        self.dtype_policy = model.dtype_policy  # tells `compile` to scale the loss of float16
        self.model = model
        self.arguments = arguments
        self.layout = layout
        self.mask_ratio = layout.ratio
        self.normalize = normalize
        self.last_epsilon = last_epsilon
        self.patches = layout.patches
        self.visible = layout.visible
        self.num_prefix = num_prefix
        self.decoder = PixelDecoder(
            width,
            depth,
            num_heads,
            layout.values,
            num_prefix=num_prefix,
            mlp_dim=mlp_dim,
            qkv_bias=arguments["block"]["qkv_bias"],
            gelu=arguments["block"]["gelu"],
            epsilon=arguments["norm"]["epsilon"],
            name="decoder",
            dtype=model.dtype_policy,
            **layout.decoder | ({} if last_epsilon is None else {"last_epsilon": last_epsilon}),
        )
        self.decoder.build((None, num_prefix + layout.visible, arguments["width"]))
        self.built = True

    @classmethod
    def from_checkpoint(
        cls,
        source: os.PathLike | str,
        *,
        mask_ratio: float | None = None,
        normalize: bool | None = None,
        decoder_heads: int | None = None,
        format: str = "auto",
        sha256: str | None = None,
        **overrides,
    ) -> "MaskedAutoencoder":
        """Builds a masked autoencoder with published weights for model and decoder.

        Args:
            source: The authors' file, such as `mae_pretrain_vit_base_full.pth` or a file of VideoMAE; or Hugging Face's
                `ViTMAEForPreTraining` or `VideoMAEForPreTraining`, or its `hf://owner/name`; else as in
                `keras_vit.from_checkpoint`.
            mask_ratio: Share of the patches that are masked; `None` for the value in `config.json`, else 0.75, and 0.9
                for clips.
            normalize: Whether the weights were trained on normalized pixels; `None` for the value in `config.json`.
                Files of MAE's authors have no such value: pass `True`, but `False` for `mae_visualize_*`. VideoMAE's
                weights were trained on normalized pixels.
            decoder_heads: Attention heads of the decoder; `None` for the value in `config.json`, else the published
                number: 16, for VideoMAE 6, for files of VideoMAE's authors by the decoder's width.
            format: As in `keras_vit.from_checkpoint`.
            sha256: As in `keras_vit.from_checkpoint`.
            **overrides: Arguments of `keras_vit.vit` or `keras_vit.video_vit` for the encoder, such as `mean`, `std` or
                `stochastic_depth`; not the patch size, the tubelet or the channels, which the decoder shares, nor the
                image size of MAE, whose positions are stored.

        Raises:
            ValueError: If the file has no decoder, or its tensors do not match; without a known `normalize` or heads.
            FileNotFoundError, ConnectionError, ImportError: As `keras_vit.from_checkpoint`.
        """
        options, weights = read_decoder(source, num_heads=decoder_heads, format=format, sha256=sha256)
        given = {"mask_ratio": mask_ratio, "normalize": normalize}
        options |= {name: value for name, value in given.items() if value is not None}
        if "normalize" not in options:
            raise ValueError(
                "`normalize` must be passed: the file does not say whether pixels were normalized in each patch. The "
                "authors' files need True, except mae_visualize_*. Received: normalize=None"
            )
        model = from_checkpoint(source, format=format, sha256=sha256, num_classes=0, **overrides)
        learner = cls(model, **options)
        stored = (variable for variable in learner.decoder.weights if variable.path not in learner.layout.computed)
        variables = {variable.path: variable for variable in stored}
        shapes = {path: weights[path].shape if path in weights else "missing" for path in {**variables, **weights}}
        expected = {path: tuple(variable.shape) for path, variable in variables.items()}
        if shapes != expected:
            listed = [
                f"{k} {shapes[k]}, not {expected.get(k, 'there')}" for k in shapes if shapes[k] != expected.get(k)
            ]
            raise ValueError(f"The decoder of {str(source)!r} does not match the model: {'; '.join(listed)}")
        for path, array in weights.items():
            variables[path].assign(array)
        return learner

    @property
    def output_shape(self):
        return (None, self.patches, self.decoder.values + 1)

    def call(self, inputs, training=None):
        if not isinstance(inputs, dict) or not {"images", "noise"} <= {*inputs}:
            received = ", ".join(map(repr, inputs)) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                "A `MaskedAutoencoder` takes a dictionary of `images` and `noise`, new random numbers for each step of "
                f"shape (batch, {self.layout.columns}), which say what is masked. Received: {received}"
            )
        noise, n = inputs["noise"], self.num_prefix
        if noise.shape[1] < self.layout.columns:
            raise ValueError(
                f"`noise` must have a number for each of {self.layout.columns} patches. "
                f"Received: shape={tuple(noise.shape)}"
            )
        shuffled = ops.argsort(self.layout.noise(noise), axis=1)
        order = ops.argsort(shuffled, axis=1)  # rank of each patch
        x = self._tokens(inputs["images"])  # (batch, prefix + patches, width)
        x = ops.concatenate([x[:, :n], rows(x[:, n:], shuffled[:, : self.visible])], axis=1)
        for i in range(self.arguments["depth"]):
            x = self.model.get_layer(f"block_{i}")(x)  # (batch, prefix + visible, width)
        x = self.model.get_layer("norm")(x) if self.arguments["final_norm"] else x
        predicted = ops.cast(self.decoder(x, order), "float32")  # (batch, patches, values)
        mask = ops.cast(ops.expand_dims(order >= self.visible, -1), "float32")
        return ops.concatenate([predicted, mask], axis=-1)

    def _tokens(self, images):
        for name in (*self.layout.layers, *["norm_pre"] * self.arguments["tokens"]["pre_norm"]):
            images = self.model.get_layer(name)(images)
        return images

    def targets(self, images):
        """Returns the targets of the decoder, float32 `(batch, patches, values)`.

        Args:
            images: Tensor as the model takes it, `(batch, height, width, channels)` or clips, 0..255.
        """
        patches = self.layout.patches_of(self.model, images)
        if not self.normalize:
            return patches
        mean, deviation = self.layout.statistics(patches)
        return (patches - mean) / deviation

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return super().compute_loss(x, self.targets(y), y_pred, sample_weight, training)

    def reconstruct(self, images, noise=None, batch_size: int = 64) -> tuple[np.ndarray, np.ndarray]:
        """Masks images and fills the masked patches with the prediction, as the authors' demo does.

        If the model predicts normalized pixels, mean and deviation of each patch are taken from the original.

        Args:
            images: Array, `(batch, height, width, channels)`, or of clips `(batch, frames, height, width, channels)`,
                0..255.
            noise: Array, `(batch, patches)`, for clips `(batch, places)`, in [0, 1); `None` for the same at each call.
            batch_size: Number of images in a batch.

        Returns:
            Two float32 arrays with the shape of `images`, 0..255: the masked images, whose masked patches have the mean
            color of the first layer, and the reconstructed images.

        Raises:
            ValueError: If the images or the noise do not match the model.
        """
        value_range = self.model.get_layer("rescale").limits
        low, high = ends(value_range)
        images = np.float32(self.layout.checked(images, self.model.input_shape[1:], value_range=value_range))
        size = (len(images), self.layout.columns)
        noise = np.random.default_rng(0).random(size) if noise is None else np.asarray(noise)
        if noise.shape != size:
            raise ValueError(f"`noise` must have the shape {size}. Received: shape={noise.shape}")
        output = feeding.predict(self, {"images": images, "noise": np.float32(noise)}, batch_size)
        predicted, mask = output[..., :-1], output[..., -1:]
        if self.normalize:
            patches = self.layout.patches_of(self.model, images)
            mean, deviation = map(ops.convert_to_numpy, self.layout.statistics(patches))
            predicted = predicted * deviation + mean
        mean, std = (np.float32(self.arguments[name]) for name in ("mean", "std"))
        shares = self.layout.shares(self.layout.joined(predicted, images.shape), mean, std)
        mean, pixels = (low + (high - low) * x for x in (mean, shares))
        masked = self.layout.joined(np.broadcast_to(mask, predicted.shape), images.shape) > 0.5
        return np.where(masked, mean, images), np.where(masked, pixels.clip(low, high), images)

    def get_config(self):
        return {
            "model": keras.saving.serialize_keras_object(self.model),
            "mask_ratio": self.mask_ratio,
            **{name: getattr(self.decoder, name) for name in ("width", "depth", "num_heads", "mlp_dim")},
            "normalize": self.normalize,
            "last_epsilon": self.last_epsilon,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = keras.saving.deserialize_keras_object(config["model"], custom_objects=custom_objects)
        return cls(**{**config, "model": model})


@keras.saving.register_keras_serializable(package="keras_vit")
class MaskedLoss(Loss):
    """Mean squared error of each masked patch, averaged over the masked patches of an image.

    He et al. 2021 (arXiv:2111.06377), section 3. `MaskedAutoencoder` turns images into the targets.

    Call arguments:
        y_true: `(batch, patches, values)`, the targets.
        y_pred: `(batch, patches, values + 1)`, the prediction, then 1 for a masked patch, 0 for a visible one.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def call(self, y_true, y_pred):
        mask = y_pred[..., -1]
        errors = ops.mean(ops.square(y_pred[..., :-1] - y_true), axis=-1)  # (batch, patches)
        return ops.sum(errors * mask, axis=1) / ops.sum(mask, axis=1)  # (batch,)
