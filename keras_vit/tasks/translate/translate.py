"""Translation, and other tasks from text to text."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from keras_vit.models.captioner import captioner, is_translator
from keras_vit.models.text import text_tower
from keras_vit.tasks import refusals
from keras_vit.tasks.caption.writes import Writes
from keras_vit.text import learn_words
from keras_vit.utils import checks

ENCODER = {"width": 192, "depth": 3, "num_heads": 4}  # arguments of `text_tower` that a recipe's `model` may leave out
SIZES = ("width", "depth", "num_heads", "mlp_dim", "dropout")  # those that it may set
PIXELS = ("crop", "rotation", "scale", "shear", "translation", "flip", "jitter", "randaugment", "erase", "layers")
UNFIT = ("optim.freeze", "optim.lora", "optim.layer_decay")


@dataclass(frozen=True, repr=False)
class Translate(Writes):
    """Translation, or another text made of a text: an encoder, and a decoder that writes word by word.

    Vaswani et al. 2017 (arXiv:1706.03762), section 3.1, with normalizations before the sublayers, learned positions
    and, as in section 5.1, one vocabulary for both texts. It is trained by teacher forcing. Scores and predictions use
    generated texts. If a source has several texts, one is drawn each time; the first one is scored.

    Data are `"table:PATH"`, a CSV, JSON lines or Parquet file with two columns of texts, or arrays: a pair of lists of
    strings. The recipe's `model` is the encoder's: `width`, `depth`, `num_heads`, `mlp_dim` and `dropout`.

    The model takes a dictionary: `"sources"`, int32 ids, `(batch, length)`, and `"texts"`, int32 ids, `(batch, words)`.
    It returns the logits of the next word at each position, `(batch, words, vocabulary)`. Words of the source do not
    attend to its padding, nor do those that are written.

    Args:
        text: Arguments of `text_decoder`, such as `width`, `depth` and `num_heads`.
        beams: Number of beams of the beam search; 1 for greedy search.
        label_smoothing: See `WordLoss`.
        every: Number of epochs between two measurements during training.
    """

    of_texts: ClassVar[bool] = True
    given = "sources"
    columns: ClassVar[dict[str, Any]] = {}
    refuses = {
        "task.classes": "Translate has no classes.",
        **refusals.each([f"augment.{name}" for name in PIXELS], "Texts are no images: leave augmentation out."),
        "data.resize": "Texts are no images: data.resize must be None.",
        **refusals.each(UNFIT, "Translate trains all of its model: leave it out."),
    }

    def check(self, recipe):
        super().check(recipe)
        other = sorted({*recipe.model} - {*SIZES, "name"})
        if other:
            raise ValueError(
                f"`model` of Translate is its encoder's: {', '.join(SIZES)}. "
                f"Received: model.{other[0]}={checks.shown(recipe.model[other[0]])}"
            )
        if recipe.data.fold:
            raise ValueError(f"Texts have no folds: leave data.fold out. Received: data.fold={recipe.data.fold}")

    def on(self, source, arguments=None):
        sources, texts = source.images, source.targets["texts"]
        if source.files or sources.ndim > 2:
            raise ValueError("Translate reads texts, as of 'table:PATH' or two lists. Received: data with images")
        if (sources.dtype == object) != (texts.dtype == object):
            kinds = ["strings" if each.dtype == object else "ids" for each in (sources, texts)]
            raise ValueError(f"Sources and texts must both be strings, or both ids. Received: {' and '.join(kinds)}")
        if self.words or self.tokens or sources.dtype != object or texts.dtype != object:
            return self
        every = [text for several in [*sources, *texts] for text in several]
        return dataclasses.replace(self, words=tuple(learn_words(every, self.vocabulary, letters=self.letters)))

    def read(self, source, training=False):
        """Returns the split with ids in place of both texts; those of the sources are its `images`."""
        sources = source.images
        ids = self._checked(sources) if sources.dtype != object else self._ids(sources, False)
        return super().read(dataclasses.replace(source, images=ids), training)

    def data_shape(self, shape):
        return (self.length,)

    def model(self, **arguments):
        """Builds the model from ids of two texts to logits, `(batch, words, vocabulary)`."""
        sizes = {name: arguments[name] for name in SIZES if arguments.get(name) is not None}
        metadata = {"words": list(self.words)} if self.words else {"tokens": self.tokens}
        rows, _, _, pad = self._marks()
        source = text_tower(
            vocabulary=rows,
            length=self.length,
            causal=False,
            pooling="none",
            masked_id=pad,
            metadata=metadata,
            **{**ENCODER, **sizes},
        )
        decoder, marks = self.decoder(source.output_shape[-1], mask_context=True)
        return captioner(source, decoder, **marks)

    def fits(self, model):
        return is_translator(model)
