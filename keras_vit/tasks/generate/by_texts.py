"""What `Generate` does with texts: an image of what a text says."""

from keras_vit.models.dit import EMPTY, TEXT_INPUTS, dit, is_dit, reads_texts, words_of
from keras_vit.tasks.generate.read_back import SCORES, ReadBackTally, reader_of
from keras_vit.tasks.texts import OWN, ReadsTexts

CAUSAL = {"causal": True}  # a word then never sees the padding after it


class ByTexts:
    """The rules of images of texts. Methods are as those of `Task`.

    Args:
        task: The `Generate`, whose options the rules read.
    """

    inputs = TEXT_INPUTS
    targets = ("texts",)
    scores = SCORES

    def __init__(self, task):
        self.task = task

    def check_options(self):
        """Raises ValueError for options that texts leave no room for."""
        task = self.task
        if task.classes:
            raise ValueError(f"With text=True there are no classes. Received: classes={task.classes!s:.100}")
        fixed = [name for name in OWN if name in (task.tower or {})]
        if fixed:
            raise ValueError(f"The task sets the text tower's {fixed[0]}. Received: task.tower={task.tower!r}")

    def check(self, recipe):
        if recipe is None:
            return
        if recipe.augment.flip:
            raise ValueError(
                "A flip may change what a text says, as of left and right. "
                f"Received: augment.flip={recipe.augment.flip!r}"
            )
        if recipe.model.get("num_classes") is not None:
            raise ValueError(
                "With text=True there are no classes: leave model.num_classes out. "
                f"Received: {recipe.model['num_classes']!r}"
            )

    def on(self, source, arguments):
        weights = (arguments or {}).get("weights")
        task = ReadsTexts.on(self.task, source) if weights is None else self.task.as_trained(source, weights)
        task.check()
        if task.judge:
            texts = source.targets["texts"]
            said = {text for several in texts for text in several} if texts.dtype == object else ()
            reader_of(task.judge).check(said, task.size_of(arguments))
        return task

    def check_judge(self, size=None):
        """Raises ValueError unless the judge, if any, takes images of a size."""
        if self.task.judge:
            reader_of(self.task.judge).check((), size)

    def settled(self, source):
        return {}

    def classes_for(self, arguments):
        return ()

    def read(self, source, training):
        """Returns the split with ids in place of texts."""
        return ReadsTexts.read(self.task, source, training)

    def of_model(self, model):
        task = ReadsTexts.of_model(self.task, model)
        return {"words": task.words, "tokens": task.tokens}

    def fits(self, model):
        """Returns whether the model is a DiT of texts of the task's length, and of its words if it has any yet."""
        if not (is_dit(model) and reads_texts(model)):
            return False
        words, task = words_of(model), self.task
        known = task.words or task.tokens
        return words.length == task.length and (not known or words.vocabulary == task.rows()[0])

    def model(self, num_classes=None, **arguments):
        task = self.task
        if task.rows()[1] is None:
            raise ValueError("A text must have an end: the table needs '<end>'. Received: a tokenizer without")
        tower = task.new_tower({**CAUSAL, **(task.tower or {})}, arguments.get("dtype"))
        words = tower.get_layer("words")
        words.metadata = words.metadata | {EMPTY: self.none().tolist()}
        return dit(text=tower, **arguments)

    def check_weights(self, source):
        self.task.check_words_of(source)

    def prepare(self, examples, seed):
        from keras_vit.data.augment.flow import apart

        return ReadsTexts.prepare(self.task, examples, apart(seed))

    def none(self):
        """Returns what means no text: the ids of one without words, int32 `(length,)`."""
        return self.task.ids_of_nothing()

    def tally(self):
        return ReadBackTally(self.task.text_of, self.task.judge)

    def caption(self, example):
        """Returns the text of the ids in `"texts"`."""
        return self.task.text_of(example["texts"])
