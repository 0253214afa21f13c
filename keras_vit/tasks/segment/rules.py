"""The base class of the rules of `Segment`'s kinds."""


class Rules:
    """Base class of the rules of one kind of masks: what differs between the kinds. Methods are as those of `Task`.

    Args:
        task: The `Segment`, whose options the rules read.
    """

    inputs: tuple[str, ...] = ("images",)  # `inputs`, `targets`, `best` and `gives` become the task's

    def __init__(self, task):
        self.task = task

    def read(self, source, training):
        return source

    def prepare(self, examples, seed):
        return examples

    def of_model(self, model):
        return {}

    def learner(self, model):
        return model

    def callbacks(self, run):
        return []

    def finish(self, run):
        """Writes nothing: the file of a model says enough."""
