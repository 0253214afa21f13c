"""Contrastive training of an image tower and a text tower."""

from dataclasses import dataclass, field
from typing import Any, Literal

import keras
import numpy as np

from keras_vit.models.backbone import TOWERS
from keras_vit.models.two_towers import two_towers
from keras_vit.tasks import refusals
from keras_vit.tasks.contrast.pair_loss import PairLoss
from keras_vit.tasks.contrast.recall_tally import RecallTally
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.texts import OWN, TextTask, check_images, sizes_for
from keras_vit.utils import checks
from keras_vit.utils.checked import number

FIRST = {"softmax": {}, "sigmoid": {"scale": float(np.log(10.0)), "bias": -10.0}}  # of `Similarity`: CLIP's, SigLIP's
UNFIT = ("optim.accumulate", "optim.lora", "optim.layer_decay")


@dataclass(frozen=True, repr=False)
class Contrast(TextTask):
    """Images and texts in one embedding space: an image tower and a text tower, trained on pairs.

    Radford et al. 2021 (arXiv:2103.00020), CLIP, with the softmax loss; Zhai et al. 2023 (arXiv:2303.15343), SigLIP,
    with the sigmoid loss; Zhai et al. 2022 (arXiv:2111.07991), LiT, with a trained image tower, `model.weights`, that
    is frozen, `optim.freeze="all"`. If an image has several texts, one is drawn each time; the first one is scored.
    Equal texts in a batch are no negatives.

    The model is built by `two_towers` with `pairs=True`. It returns the embeddings of each image and its text,
    float32 `(batch, 2, width)`; with the sigmoid loss `(batch, 2, width + 1)`.

    Args:
        loss: `"softmax"` or `"sigmoid"`; see `PairLoss`.
        width: Channels of the embedding space.
        text: Arguments of `text_tower`, such as `width`, `depth` and `num_heads`.
        start: Published or trained towers to start from: a source of `from_pretrained` with `part="both"`. Published
            towers need `tokens`; a run has its own. `model` may only set `image_size`, for a run the same size.
    """

    best = ("val_text_to_image_recall_at_1", "max")
    gives = "pairs"
    refuses = {
        "task.classes": "Contrast has no classes.",
        **refusals.each(UNFIT, "Contrast compares whole batches, by both towers: leave it out."),
    }
    compares = True

    loss: Literal["softmax", "sigmoid"] = "softmax"
    width: int = number(256, low=1)
    text: dict[str, Any] = field(default_factory=dict)
    start: str = ""

    def check(self, recipe):
        super().check(recipe)
        for name in OWN:
            if name in self.text:
                raise ValueError(f"The task sets the text tower's {name}. Received: task.text={self.text!r}")
        if self.start and set(recipe.model) - {"image_size", "name", "channels"}:
            raise ValueError(
                f"Towers of task.start have their own sizes: `model` may have image_size. "
                f"Received: {checks.shown(recipe.model)}"
            )
        if recipe.data.batch_size < 2:
            raise ValueError(
                "Contrast compares the images of a batch: data.batch_size must be 2 or more, and better 100. "
                f"Received: {recipe.data.batch_size}"
            )
        if recipe.model.get("num_classes") not in (None, self.width):
            raise ValueError(
                f"The image tower ends in the common space: set task.width. Received: task.width={self.width}, "
                f"model.num_classes={recipe.model['num_classes']}"
            )

    def on(self, source, arguments=None):
        return super().on(source, arguments) if not self.start else self.as_trained(source, self.start)

    def read(self, source, training=False):
        """Returns the split with ids in place of texts, int32 `(images, length)`; see `TextTask`."""
        from keras_vit.data.readers.texts import by_image

        rows = super().read(by_image(source), training)  # one row for each image, which is no negative of itself
        ids = rows.targets["texts"]
        if training and (ids == ids[:1]).all():
            raise ValueError(
                "Contrast learns to tell texts apart: training images must have two different ones, in words that it "
                f"knows. Received: {len(ids)} images with the same text"
            )
        return rows

    def settled(self, source):
        return {} if self.start else {"num_classes": self.width}

    def model(self, **arguments):
        """Builds the model from images and ids, as in `TextTask`, to pairs, float32 `(batch, 2, width)` or wider."""
        if self.start:
            return self._started(arguments)
        fixed = {"num_classes": self.width, **({"head": "new"} if arguments.get("weights") else {})}
        image = self.vit(**{**arguments, **fixed})
        text = self.new_tower({**self.text, "projection": self.width})
        return two_towers(image, text, pairs=True, **FIRST[self.loss])

    def _started(self, arguments):
        from keras_vit.checkpoints.pretrained import from_pretrained

        given = [arguments.get(name) for name in ("image_size", "channels")]
        model = from_pretrained(self.start, part="both", **sizes_for(self.start, given[0]))
        image, text, similarity = map(model.get_layer, TOWERS)
        check_images(image, *given)
        self.check_words_of(self.start)
        if text.input_shape[1] != self.length:
            raise ValueError(
                f"Texts must have as many ids as the tower of task.start, {text.input_shape[1]}. "
                f"Received: task.length={self.length}"
            )
        bias = None if similarity.bias is None else float(similarity.logit_bias.numpy())
        if (bias is None) != (self.loss == "softmax"):
            kind = "softmax" if bias is None else "sigmoid"
            raise ValueError(f"The towers of task.start were trained with loss={kind!r}. Received: loss={self.loss!r}")
        scale = float(keras.ops.convert_to_numpy(similarity.logit_scale))
        return two_towers(image, text, pairs=True, scale=scale, bias=bias)

    def compiled(self, source):
        return {"loss": PairLoss(self.loss), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns the model's inputs and, for `PairLoss`, ids of the texts, int32 `(batch, 1 or 2, length)`."""
        from keras_vit.data.augment.texts import known_by

        return {name: examples[name] for name in self.inputs}, known_by(examples)

    def callbacks(self, run):
        return [Measured(run, self.tally, self.tally().scores)]

    def tally(self, keep=False):
        return RecallTally(self.text_of if self.words else None, keep)

    def answer(self, output):
        """Returns the cosine of an image and its text, -1..1, from a pair, `(2, width)` or wider."""
        return {"similarity": cosine(output[..., : self.width])}

    def said(self, answer):
        """Returns text such as `"similarity 0.31"` from an answer."""
        return f"similarity {answer['similarity']:.2f}"

    def caption(self, output, example):
        """Returns the text and its similarity, from a pair, `(2, width)` or wider, and `"texts"`, ids, `(length,)`."""
        text = self.text_of(example["texts"])
        return f"{text + ': ' if text else ''}{self.heading(output)}"


def cosine(pair):
    """Returns the cosine of the two rows of a pair, an array, `(2, width)`."""
    image, text = np.asarray(pair, "float64")
    return float(image @ text / np.sqrt((image @ image) * (text @ text)))
