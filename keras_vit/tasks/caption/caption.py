"""Image captioning and text recognition, word by word."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_vit.models.captioner import captioner, is_captioner
from keras_vit.models.text_decoder import text_decoder
from keras_vit.tasks import refusals
from keras_vit.tasks.caption.caption_writer import caption_writer
from keras_vit.tasks.caption.starting import loaded, marks_by, marks_of
from keras_vit.tasks.caption.word_loss import WordLoss
from keras_vit.tasks.caption.word_tally import WordTally
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.texts import TextTask
from keras_vit.utils.checked import number

TEXT = {"width": 192, "depth": 3, "num_heads": 4}  # arguments of a decoder that is trained from scratch
OWN = ("vocabulary", "length", "context_width", "metadata", "name", "pad")  # decoder arguments that the task sets
ALL_TOKENS = "The decoder attends to all tokens of the image: leave out model.num_classes and model.pooling."
SIZES = {"image_size", "name", "channels"}  # what a recipe's `model` may say besides task.start
MEASURED = 1000  # largest number of validation images to caption after an epoch


@dataclass(frozen=True, repr=False)
class Caption(TextTask):
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

    inputs = ("images",)
    best = ("val_exact_match", "max")
    gives = "words"
    measured = ("beams",)
    refuses = {
        "task.classes": "Caption has no classes.",
        "augment.flip": "A flip may change the text, as of left and right.",
        **refusals.each(("model.num_classes", "model.pooling"), ALL_TOKENS),
    }

    text: dict[str, Any] = field(default_factory=dict)
    beams: int = number(1, low=1)
    label_smoothing: float = number(0.0, below=1)
    start: str = ""
    marks: tuple[int, ...] = ()
    every: int = number(1, low=1)

    def check(self, recipe):
        super().check(recipe)
        for name in OWN:
            if name in self.text:
                raise ValueError(f"The task sets the decoder's {name}. Received: task.text={self.text!r}")
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
        rows, start, end, pad = self._marks()
        decoder = text_decoder(
            vocabulary=rows,
            length=self.length,
            context_width=image.output_shape[-1],
            metadata={"words": list(self.words)} if self.words else {"tokens": self.tokens},
            **{**TEXT, **self.text},
        )
        return captioner(image, decoder, start=start, end=end, pad=pad)

    def _marks(self):
        """Returns the size of the vocabulary, and the ids of start, end and padding in rows of ids.

        The start equals the end if rows have none of their own.
        """
        if not self.words and not self.tokens:
            end, pad = self.marks[1:] or (1, 0)
            return self.vocabulary, end, end, pad
        tokenizer = self.ids_of()
        if tokenizer.end is None:
            raise ValueError("A text must have an end: the table needs '<end>'. Received: a table without")
        return (
            tokenizer.size,
            tokenizer.end if tokenizer.start is None else tokenizer.start,
            tokenizer.end,
            tokenizer.pad,
        )

    def of_model(self, model):
        if not is_captioner(model):
            return self
        task = super().of_model(model)
        return dataclasses.replace(task, marks=marks_of(model)) if task.start and not task.marks else task

    def compiled(self, source):
        return {"loss": WordLoss(self.label_smoothing), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns the model's inputs, and the ids of the next words, int32 `(batch, words)`, -1 after the end.

        The ids in the inputs and the next words have `length` columns; one less if the start has an id of its own.
        """
        from keras_vit.data.augment.texts import forced

        _, start, end, pad = self._marks()
        before, words = forced(examples["texts"], end, pad, begun=start != end, start=(self.marks or (None,))[0])
        return {"images": examples["images"], "texts": before}, words

    def answering(self, model):
        """Returns the function from images to ids and a score, float32 `(batch, length)`; see `CaptionWriter`."""
        return caption_writer(model, self.length, self.beams)

    def callbacks(self, run):
        return [Measured(run, self.tally, self.tally().scores, self.every, MEASURED)]

    def tally(self, keep=False):
        return WordTally(self.text_of if self.words or self.tokens else None)

    def answer(self, output):
        """Returns the text with its mean probability per word, 0..1, from a row of `CaptionWriter`, `(length,)`."""
        return {self.text_of(np.asarray(output[:-1], "int64")) or "(nothing)": float(output[-1])}

    def caption(self, output, example):
        """Returns the true text, and the prediction if it differs, from `(length,)` and `"texts"`, ids, `(length,)`."""
        (prediction, share), *_ = self.answer(output).items()
        text = self.text_of(example["texts"])
        return f"{text} ({share:.0%})" if text == prediction else f"“{text}”, written “{prediction}” ({share:.0%})"
