"""A model's scores on a source, batch by batch."""

from keras_vit.data import pipeline, views
from keras_vit.data.readers.whole import whole_arrays
from keras_vit.models.inputs import fed
from keras_vit.tasks.clip_task import averaged_views
from keras_vit.tasks.in_tiles import at_full_size
from keras_vit.utils.progress import counted


def tally_of(function, recipe, source, size, keep=False):
    """Runs a function from pixels to outputs over a source; memory does not grow with the number of images.

    Args:
        function: Function from images, `(batch, height, width, channels)`, or a dictionary of the task's `inputs`, to
            outputs, all arrays.
        recipe: A `Recipe`, whose task has its classes; its `data` is read too.
        source: The images and targets.
        size: `(height, width, channels)` of the images that the function takes.
        keep: As in `Task.tally`.

    Returns:
        The task's `Tally`, and a list of the scores of each batch's images, `None` where the task has no such scores.
    """
    tally, scores = recipe.task.tally(keep), []
    for examples, outputs in answered(function, recipe, source, size):
        score = tally.add(examples, outputs)
        if keep:
            scores.append(score)
    return tally, scores


def answered(function, recipe, source, size):
    """Yields each batch of a source as a tally takes it, examples and outputs; arguments are those of `tally_of`."""
    arrays = pipeline.evaluation_arrays
    if recipe.task.whole:
        function, arrays = at_full_size(recipe.task, function, size), whole_arrays
    elif averaged_views(recipe.task) > 1:
        function, arrays = views.averaged(function, recipe.task, recipe.data.batch_size), views.view_arrays
    for examples in counted(arrays(source, recipe, size), len(source), "evaluating"):
        yield examples, function(fed(examples, recipe.task.inputs))
