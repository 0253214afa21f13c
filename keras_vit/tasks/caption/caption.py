"""Image captioning and text recognition, word by word."""

import dataclasses
from dataclasses import dataclass

from keras_vit.models.captioner import captioner, is_captioner
from keras_vit.tasks import refusals
from keras_vit.tasks.caption.starting import loaded, marks_by, marks_of
from keras_vit.tasks.caption.writes import Writes

ALL_TOKENS = "The decoder attends to all tokens of the image: leave out model.num_classes and model.pooling."
SIZES = {"image_size", "name", "channels"}  # what a recipe's `model` may say besides task.start


@dataclass(frozen=True, repr=False)
class Caption(Writes):
    """Image captioning, or text recognition: an image encoder, and a decoder that writes word by word.

    The model is built by `captioner`, and trained by teacher forcing: it predicts each word from the words before it
    (Vinyals et al. 2015, arXiv:1411.4555; as BLIP, arXiv:2201.12086, and TrOCR, arXiv:2109.10282). Scores and
    predictions use generated texts. If an image has several texts, one is drawn each time; the first one is scored.

    The model takes a dictionary: `"images"`, `(batch, height, width, channels)`, 0..255, and `"texts"`, int32 ids,
    `(batch, words)`. It returns the logits of the next word at each position, `(batch, words, vocabulary)`.

    Args:
        text: Arguments of `text_decoder`, such as `width`, `depth` and `num_heads`.
        beams: Number of beams of the beam search; 1 for greedy search.
        label_smoothing: See `WordLoss`.
        start: A model that writes, to train further: a published TrOCR, BLIP or ViT with GPT-2, or a run; a source of
            `from_pretrained`. Without `tokens`, a published one's folder or address must have its tokenizer too; a run
            has its own. `model` may only set `image_size`, for a run the same size.
        marks: Ids before, after and behind each text, which are read from `start`.
        every: Number of epochs between two measurements during training.
    """

    refuses = {
        "task.classes": "Caption has no classes.",
        "augment.flip": "A flip may change the text, as of left and right.",
        **refusals.each(("model.num_classes", "model.pooling"), ALL_TOKENS),
    }

    start: str = ""
    marks: tuple[int, ...] = ()

    def check(self, recipe):
        super().check(recipe)
        if self.marks and not (self.start and len(self.marks) == 3):
            raise ValueError(
                "task.marks are three ids, which are read from task.start: leave them out. "
                f"Received: task.marks={self.marks}, task.start={self.start!r}"
            )
        if self.start and (self.text or set(recipe.model) - SIZES):
            raise ValueError(
                "A model of task.start has its own sizes: leave task.text out; `model` may have image_size. "
                f"Received: task.text={self.text!r}, model={recipe.model!r}"
            )

    def on(self, source, arguments=None):
        if not self.start:
            return super().on(source, arguments)
        task = self.as_trained(source, self.start, published=True)
        return task if task.marks else dataclasses.replace(task, marks=marks_by(self.start))

    def settled(self, source):
        return {} if self.start else {"num_classes": 0, "pooling": "none"}

    def model(self, **arguments):
        """Builds the model from images and ids to logits, `(batch, words, vocabulary)`."""
        if self.start:
            return loaded(self, arguments.get("image_size"), arguments.get("channels"))
        options = {**arguments, "num_classes": 0, "pooling": "none"}
        image = self.vit(**{**options, **({"head": "new"} if options.get("weights") else {})})
        decoder, marks = self.decoder(image.output_shape[-1])
        return captioner(image, decoder, **marks)

    def of_model(self, model):
        if not is_captioner(model):
            return self
        task = super().of_model(model)
        return dataclasses.replace(task, marks=marks_of(model)) if task.start and not task.marks else task
