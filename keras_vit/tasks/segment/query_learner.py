"""The model that is fitted for masks of queries: a prediction before each block that sees them."""

import keras
from keras import ops

from keras_vit.utils.typed import typed

POWER = 0.9  # with which attention inside masks ends


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryLearner(keras.Model):
    """Trains a model with queries: its head predicts before each of the last blocks too, and masks attention there.

    Kerssies et al. 2025 (arXiv:2503.19108, "EoMT"), sections 3.2 and 3.3. In training a query attends only to those
    patches of an image that its own mask of the stage before has, to all queries and all prefix tokens. For each query
    that is so with a probability that is 1 at first and falls to 0, block by block: of block `j` of `n` that see
    queries it is `(1 - x) ** 0.9`, where `x` grows from 0 to 1 between `(j + 1) / (n + 2)` and `(j + 2) / (n + 2)` of
    all steps. So the last steps train what the model computes alone.

    Args:
        model: A model with the layers `queries` and `head`, as from `with_head` of kind `"segments"`.
        steps: Number of training steps after which attention is not masked; 0 for no masks at all.

    Call arguments:
        images: Tensor of images, as the model takes them.
        training: Whether to predict at each stage.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, stages, queries, numbers)`, float32, as the model's output: in training one stage before each block
        that sees queries, and the end; else the end alone.
    """

    @typed
    def __init__(self, model: keras.Model, steps: int = 0, **kwargs):
        # Pixels stay as they are. The names are those of training states.
        super().__init__(autocast=False, **{"name": "learner", **kwargs})
        self.dtype_policy = model.dtype_policy  # tells `compile` to scale the loss of float16
        self.model = model
        self.steps = steps
        names = [layer.name for layer in model.layers]
        self.blocks = [layer for layer in model.layers[names.index("queries") :] if layer.name.startswith("block_")]
        self.start = keras.Model(model.input, model.get_layer("queries").output)
        self.norm = model.get_layer("norm")
        self.head = model.get_layer("head")
        self.step = self.add_weight((), "zeros", "int32", trainable=False, name="step")
        self.seed_generator = keras.random.SeedGenerator(name="seeds")
        self.built = True

    @property
    def output_shape(self):
        batch, *rest = self.model.output_shape
        return batch, 1, *rest

    def call(self, images, training=None):
        if not training:
            return self.model(images, training=False)[:, None]
        x, outputs = self.start(images, training=True), []
        for number, block in enumerate(self.blocks):
            outputs.append(self.head(self.norm(x), training=True))
            x = block(x, attention_mask=self._mask(outputs[-1], number, x.shape[1]), training=True)
        self.step.assign_add(1)
        return ops.stack([*outputs, self.head(self.norm(x), training=True)], axis=1)

    def share(self, number):
        """Returns the probability, 0..1, with which a query attends inside its mask in a block, at the present step."""
        done, parts = ops.cast(self.step, "float32") / max(self.steps, 1), len(self.blocks) + 2
        return (1 - ops.clip(done * parts - (number + 1), 0, 1)) ** POWER

    def _mask(self, outputs, number, tokens):
        """Returns which tokens attend to which, booleans `(batch, tokens, tokens)`; `None` for all to all."""
        if not self.steps:
            return None
        rows, columns = self.head.grid
        queries, patches = self.head.queries, rows * columns
        high, wide = self.head.mask_size
        masks = ops.reshape(outputs[..., -high * wide :], (-1, queries, rows, high // rows, columns, wide // columns))
        middle = [[0] if step == 1 else [step // 2 - 1, step // 2] for step in (high // rows, wide // columns)]
        masks = ops.mean(ops.take(masks, middle[0], axis=3), axis=3)  # as linear resizing with half-pixel centers
        masks = ops.mean(ops.take(masks, middle[1], axis=4), axis=4)  # (batch, queries, rows, columns)
        inside = ops.reshape(ops.stop_gradient(masks) > 0, (-1, queries, patches))
        drawn = keras.random.uniform(ops.shape(inside)[:2], seed=self.seed_generator)[..., None]
        sees = ops.logical_or(inside, drawn >= self.share(number))
        sees = ops.pad(sees, [[0, 0], [0, 0], [tokens - patches, 0]], constant_values=True)
        return ops.pad(sees, [[0, 0], [0, tokens - queries], [0, 0]], constant_values=True)

    def get_config(self):
        return {"model": keras.saving.serialize_keras_object(self.model), "steps": self.steps, "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = keras.saving.deserialize_keras_object(config["model"], custom_objects=custom_objects)
        return cls(**{**config, "model": model})
