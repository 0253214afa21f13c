"""What tasks do whose model writes texts: teacher forcing, and scores of generated texts."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from keras_vit.models.text_decoder import text_decoder
from keras_vit.tasks.caption.caption_writer import caption_writer
from keras_vit.tasks.caption.word_loss import WordLoss
from keras_vit.tasks.caption.word_tally import WordTally
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.texts import TextTask
from keras_vit.utils.checked import number

TEXT = {"width": 192, "depth": 3, "num_heads": 4}  # arguments of a decoder that is trained from scratch
OWN = ("vocabulary", "length", "context_width", "mask_context", "metadata", "name", "pad")  # that the task sets
MEASURED = 1000  # largest number of validation examples to write texts of after an epoch


@dataclass(frozen=True, repr=False)
class Writes(TextTask):
    """Base class of a task whose model writes texts word by word; see `Caption` and `Translate`.

    Args:
        text: Arguments of `text_decoder`, such as `width`, `depth` and `num_heads`.
        beams: Number of beams of the beam search; 1 for greedy search.
        label_smoothing: See `WordLoss`.
        every: Number of epochs between two measurements during training.
    """

    inputs = ("images",)
    best = ("val_exact_match", "max")
    gives = "words"
    measured = ("beams",)
    given: ClassVar[str] = "images"  # the model's input beside `texts`
    marks = ()  # ids before, after and behind each text, of a model to start from

    text: dict[str, Any] = field(default_factory=dict)
    beams: int = number(1, low=1)
    label_smoothing: float = number(0.0, below=1)
    every: int = number(1, low=1)

    def check(self, recipe):
        super().check(recipe)
        for name in OWN:
            if name in self.text:
                raise ValueError(f"The task sets the decoder's {name}. Received: task.text={self.text!r}")

    def decoder(self, context_width, **options):
        """Returns a new `text_decoder` for tokens of a width, and the ids of start, end and padding by name."""
        rows, start, end, pad = self._marks()
        decoder = text_decoder(
            vocabulary=rows,
            length=self.length,
            context_width=context_width,
            **options,
            metadata={"words": list(self.words)} if self.words else {"tokens": self.tokens},
            **{**TEXT, **self.text},
        )
        return decoder, {"start": start, "end": end, "pad": pad}

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

    def compiled(self, source):
        return {"loss": WordLoss(self.label_smoothing), "weighted_metrics": []}

    def batch(self, examples, augment, seed):
        """Returns the model's inputs, and the ids of the next words, int32 `(batch, words)`, -1 after the end.

        The ids in the inputs and the next words have `length` columns; one less if the start has an id of its own.
        """
        from keras_vit.data.augment.texts import forced

        _, start, end, pad = self._marks()
        before, words = forced(examples["texts"], end, pad, begun=start != end, start=(self.marks or (None,))[0])
        return {self.given: examples["images"], "texts": before}, words

    def answering(self, model):
        """Returns the function from images, or ids, to ids and a score, `(batch, length)`; see `CaptionWriter`."""
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
