"""Visual question answering, as classification of answers."""

from dataclasses import dataclass

from keras_vit.models import vilt as models
from keras_vit.tasks import refusals
from keras_vit.tasks.classify.classify import Classify
from keras_vit.tasks.texts import TextTask
from keras_vit.utils import checks
from keras_vit.utils.checked import number
from keras_vit.utils.warned import warn


@dataclass(frozen=True, repr=False)
class Answer(TextTask, Classify):
    """Visual question answering by ViLT, one encoder over words and patches; the answers of the data are the classes.

    Kim et al. 2021 (arXiv:2102.03334). `model` of the recipe has arguments of `keras_vit.vilt`, or `weights` of a
    published model. Options and scores are the same as in `Classify`. A row of the table has an image, a question and
    an answer; an image may be in many rows.

    The model takes a dictionary: `"images"`, `(batch, height, width, channels)`, 0..255, and `"texts"`, int32 ids,
    `(batch, length)`. It returns the logits of the answers, `(batch, classes)`.

    Args:
        hidden: Channels of the hidden layer before the logits; 0 for twice the width.
    """

    asks = "Question"
    targets = ("texts", "labels")
    refuses = {
        "augment.flip": "A flip may change the answer, as of left and right.",
        **refusals.each(("task.distill", "task.teacher"), "Answer has no teacher."),
    }
    columns = {"texts": ("question",), "labels": ("answer",)}

    hidden: int = number(0)

    def __post_init__(self):
        super().__post_init__()
        if self.multilabel:
            raise ValueError("A question has one answer. Received: Answer with multilabel=True")

    def check(self, recipe):
        super().check(recipe)
        checks.options("model", recipe.model, (*models.ARGUMENTS, "weights", "head"))

    def on(self, source, arguments=None):
        task, weights = Classify.on(self, source, arguments), (arguments or {}).get("weights")
        task = task.as_trained(source, weights) if weights else TextTask.on(task, source)
        names = {name.casefold(): name for name in task.classes}
        alike = next((name for name in task.classes if names[name.casefold()] != name), None)
        if alike:
            other = names[alike.casefold()]
            warn(f"Answers that differ in capitals alone are different classes, such as {alike!r} and {other!r}.")
        return task

    def of_model(self, model):
        return TextTask.of_model(Classify.of_model(self, model), model)

    def model(self, *, weights=None, **arguments):
        """Builds the model from images and ids to logits, `(batch, classes)`."""
        options = {"metadata": {"words": list(self.words)} if self.words else {"tokens": self.tokens}}
        if weights is not None:
            from keras_vit.checkpoints.pretrained import from_pretrained

            self.check_words_of(weights)
            options |= {name: value for name, value in arguments.items() if name not in ("name", "variant")}
            model = from_pretrained(weights, **options)
            if (length := model.input["texts"].shape[1]) != self.length:
                raise ValueError(
                    f"Texts must have as many ids as in the model to start from, {length}. "
                    f"Received: task.length={self.length}"
                )
            return model
        rows, _ = self.rows()
        return models.vilt(
            vocabulary=rows,
            length=self.length,
            pad=self.ids_of().pad if self.words or self.tokens else 0,
            answer_dim=self.hidden or None,
            **options,
            **arguments,
        )

    def learner(self, model, teacher=None):
        """Returns the model itself: there is no teacher."""
        return model

    def batch(self, examples, augment, seed):
        """Returns the model's inputs, `"images"` and `"texts"`, and labels, float32 `(batch, classes)`, 0..1."""
        images, labels = Classify.batch(self, examples, augment, seed)
        return {"images": images, "texts": examples["texts"]}, labels

    def caption(self, output, example):
        """Returns question and answer as text, from logits, `(classes,)`, `"texts"`, `(length,)`, and `"labels"`."""
        answer = Classify.caption(self, output, example)
        question = self.text_of(example["texts"])
        return f"{question} {answer}" if question else answer
