"""The class names of a task: its own names, the names in the data, or numbers."""

import dataclasses


def named_by(task, source, arguments=None):
    """Returns a task with the class names of some data.

    Args:
        task: A `Task`, whose `classes` are empty or equal to the classes of the data.
        source: A `data.memory.Source`.
        arguments: Arguments of the model that will be trained on it, if known, with its `num_classes`.

    Raises:
        ValueError: If the task names other classes, or the model has more or fewer.
    """
    names = tuple(source.class_names)
    if arguments is not None and arguments["num_classes"] not in (None, len(names)):
        raise ValueError(
            f"The model must have as many classes as the data, {len(names)}. "
            f"Received: {arguments['num_classes']} classes"
        )
    if task.classes not in ((), names):
        raise ValueError(f"`classes` must be the data's, {names!s:.200}. Received: {task.classes!s:.200}")
    return dataclasses.replace(task, classes=names)


def ordered_by(task, source):
    """Returns a task whose classes have an order, with the class names of the data if it has none of its own.

    Args:
        task: As in `named_by`.
        source: As in `named_by`.

    Raises:
        ValueError: If the data name other classes than the task, or the same in another order.
    """
    names = tuple(source.class_names)
    if names and task.classes not in ((), names):
        raise ValueError(
            f"Data must have the classes of the task, {task.classes}, in this order. Received: {source.class_names}"
        )
    return dataclasses.replace(task, classes=names) if names else task


def numbered(task, arguments):
    """Returns class names for data without class names, such as arrays: the task's own, or `"0"`, `"1"` and so on.

    Args:
        task: A `Task`.
        arguments: Arguments of the model, with its `num_classes`.
    """
    if task.classes:
        return task.classes
    if arguments["num_classes"] is None:
        raise ValueError("A recipe for arrays must set model.num_classes. Received: none")
    return tuple(map(str, range(arguments["num_classes"])))
