"""The command transfer: models compared over several data sets."""

from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands.many import tables_of
from keras_vit.commands.types import MODEL, Count, File, about

Models = Annotated[Positional[tuple[str, ...]], about(f"{MODEL}; one or more.", "MODEL ...")]
Recipes = Annotated[tuple[str, ...], about("Recipes of classifiers, whose data are taken; required.", "RECIPE ...")]


def print_transfer(
    models: Models = (),
    *,
    data: Recipes = (),
    examples: Count = 1000,
    tests: Count = None,
    epochs: Count = None,
    json: File = None,
    csv: File = None,
) -> None:
    """Compare models over several data sets, each with few examples: a linear classifier on frozen features, as VTAB.

    Args:
        examples: Training images of each data set, drawn at random.
        tests: Test images of each; all by default.
        epochs: Epochs of fine-tuning, measured too; none by default.
        json: File for the table.
        csv: The same as a table of cells.
    """
    from keras_vit.frozen.transferring import measured
    from keras_vit.runs import tables
    from keras_vit.utils.tables import aligned

    if not models or not data:
        raise ValueError("Models and --data are needed, such as: transfer mnist cifar10_hybrid --data digits mnist")
    paths, rows = tables_of(json, csv), []
    scores = ("linear", "finetuned") if epochs else ("linear",)
    with tables.written(paths, ("data", "model", "examples", "tests", *scores, "strength")) as add:
        for row in measured(models, data, examples=examples, tests=tests, epochs=epochs):
            print(
                f"{row['data']}, {row['model']}: " + ", ".join(f"{name} {row[name]:.2%}" for name in scores), flush=True
            )
            rows.append(row)
            if paths:
                add([row])
    sets = [*dict.fromkeys(row["data"] for row in rows)]
    for score in scores:
        lines = [[f"top-1, {score}", *sets, "mean"]]
        for name in dict.fromkeys(row["model"] for row in rows):
            found = [row[score] for row in rows if row["model"] == name]
            lines.append([name, *(f"{value:.2%}" for value in [*found, sum(found) / len(found)])])
        print("\n".join(["", *aligned(lines, right=range(1, len(sets) + 2))]))
