"""What `Generate` does with labels: an image of a class."""

from keras_vit.models.dit import INPUTS, classes_of, dit, is_dit, reads_texts
from keras_vit.models.outputs import distinct
from keras_vit.tasks.class_names import named_by, numbered
from keras_vit.tasks.generate.sample_tally import SCORES, SampleTally, judge_of


class ByLabels:
    """The rules of images of classes. Methods are as those of `Task`.

    Args:
        task: The `Generate`, whose options the rules read.
    """

    inputs = INPUTS
    targets = ("labels",)
    scores = SCORES

    def __init__(self, task):
        self.task = task

    def check_options(self):
        """Raises nothing: all options fit."""

    def check(self, recipe):
        """Raises nothing: all settings fit."""

    def on(self, source, arguments):
        task = named_by(self.task, source, arguments)
        source.check_labels()
        task.rules.check_judge(task.size_of(arguments))
        return task

    def check_judge(self, size=None):
        """Raises ValueError unless the judge, if any, has the task's classes and takes images of a size."""
        if self.task.judge:
            judge_of(self.task.judge).check(self.task.classes, size)

    def settled(self, source):
        return {"num_classes": len(source.class_names)}

    def classes_for(self, arguments):
        return numbered(self.task, arguments)

    def read(self, source, training):
        return source

    def of_model(self, model):
        return {}

    def fits(self, model):
        """Returns whether the model is a DiT with an embedding for each of the task's classes."""
        return is_dit(model) and not reads_texts(model) and classes_of(model) == len(self.task.classes)

    def model(self, num_classes=None, **arguments):
        return dit(num_classes=num_classes or 1, **arguments)  # 1 as long as the number is unknown

    def check_weights(self, source):
        """Raises nothing: labels have no words."""

    def prepare(self, examples, seed):
        return examples

    def none(self):
        """Returns what means no class: an integer, the label after the last."""
        return len(self.task.classes)

    def tally(self):
        return SampleTally(self.task.judge)

    def caption(self, example):
        """Returns the name of the class in `"labels"`, an integer."""
        return distinct(self.task.classes)[example["labels"]]
