"""Commands for recipes: list, show, copy."""

import ast
import csv
import pathlib
import pprint
import textwrap
from typing import Annotated, NamedTuple

from tyro.conf import Positional

from keras_vit.commands import lean
from keras_vit.commands.types import Changes, Name, about

READ = ("Data", "Reached", "Weights")  # calls in a recipe
To = Annotated[Positional[pathlib.Path], about("A file that ends in .py, or a folder.", "TO")]


def print_recipes() -> None:
    """List recipes, those with trained weights first, and variants."""
    from keras_vit.models.variants import NAMES, parse
    from keras_vit.utils.files import folder

    table = csv.DictReader((pathlib.Path(__file__).parent / "sizes.csv").read_text().splitlines())
    sizes = {row["name"]: row for row in table}  # counted: tests compare
    recipes = {path.stem: stated(path.read_text(encoding="utf-8")) for path in sorted(folder("recipes").glob("*.py"))}
    counts = {name: int(sizes[name]["parameters"]) for name in recipes}
    for heading, shipped in (("Recipes with trained weights", True), ("Recipes without weights, to train", False)):
        print(f"{heading}:")
        print("\n".join(listed({name: one for name, one in recipes.items() if one.shipped == shipped}, counts)))
        print()
    print(f"{'variant':<10}{'width':>7}{'depth':>7}{'heads':>7}{'parameters':>16}{'GMACs at 224':>15}")
    for name in NAMES:
        size, counted = parse(name)[0], sizes[name]
        print(
            f"{name:<10}{size.width:>7}{size.depth:>7}{size.num_heads:>7}{int(counted['parameters']):>16,}"
            f"{counted['gmacs']:>15}"
        )


def listed(recipes, parameters):
    """Returns the lines of a table of recipes; on a narrow terminal without the word before the name of data.

    Args:
        recipes: What `stated` returned, by name.
        parameters: Numbers of parameters, by name.
    """
    from keras_vit.utils import tables
    from keras_vit.utils.metrics import written

    rows = [["recipe", "data", "params", "min", "reached"]]
    for name, one in recipes.items():
        minutes = "-" if one.minutes is None else f"{one.minutes:.0f}"
        reached = f"{written(*one.headline)} {one.headline[0]}" if one.headline else "-"
        rows.append([name, one.data, f"{parameters[name] / 1e6:.2f} M", minutes, reached])
    bare = [[name, data.rpartition(":")[2], *more] for name, data, *more in rows]
    for cells, between in ((rows, "  "), (bare, "  "), (bare, " ")):
        lines = tables.aligned(cells, right=[2, 3], between=between)
        if max(map(tables.places, lines)) <= tables.terminal():
            break
    return lines


class Stated(NamedTuple):
    """What the source of a recipe says."""

    data: str  # the data's source
    headline: tuple | None  # the name of the first score and its value
    minutes: float | None  # that the training took
    shipped: bool  # whether trained weights come with the package


def stated(text):
    """Returns what the source of a recipe says, a `Stated`, without running it: Keras's import takes seconds."""
    calls = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in READ:
            calls[node.func.id] = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    reached = calls.get("Reached", {})
    named = [("test accuracy", reached["test_accuracy"])] if "test_accuracy" in reached else reached.get("scores", ())
    return Stated(calls["Data"]["source"], next(iter(named), None), reached.get("minutes"), "Weights" in calls)


def print_recipe(recipe: Name, changes: Changes = ()) -> None:
    """Print a recipe with all its settings, and its model."""
    lean.import_keras()
    import keras_vit
    from keras_vit import config
    from keras_vit.config import cookbook

    loaded = keras_vit.load_recipe(recipe, config.parse(changes))
    model = cookbook.model_shapes(loaded)
    for part, values in config.to_dict(loaded).items():
        lines = values.items() if isinstance(values, dict) else [("", values)]
        for name, value in lines:
            print(setting(f"{part}{'.' if name else ''}{name}", value))
    waits = "num_classes" not in loaded.model and type(loaded.task).settled is not keras_vit.Task.settled
    head = ", without the head: the data say how many classes" * waits
    print(f"\n{model.count_params():,} parameters, {keras_vit.count_macs(model) / 1e9:.4f} GMACs an image{head}")


def setting(name, value):
    """Returns a setting as `NAME = VALUE`; what is longer than a line, such as a layer's configuration, on several."""
    from keras_vit.utils import tables

    line = f"{name} = {value!r}"
    if len(line) <= tables.terminal() or isinstance(value, str):
        return line
    text = pprint.pformat(value, width=tables.terminal() - 4, compact=True, sort_dicts=False)
    return f"{name} =\n{textwrap.indent(text, '    ')}"


def copy_recipe(recipe: Name, to: To) -> None:
    """Copy a recipe's file, to edit it and fit your own."""
    from keras_vit.config import cookbook
    from keras_vit.utils import files

    source = cookbook.recipe_path(recipe)
    target = to / source.name if to.is_dir() else to
    if target.suffix != ".py":
        raise ValueError(f"`to` must end in .py or be a folder. Received: {str(target)!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r}.")
    if target.exists():
        raise FileExistsError(f"{str(target)!r} exists. Choose another path.")
    text = renamed(source.read_text(encoding="utf-8"), target.stem)
    with files.replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(f"{target}: edit it, then: python -m keras_vit fit {target}")
    print("A recipe is a program: run only those that you trust.")


def renamed(text, name):
    """Returns the source of a recipe renamed to `name`, without its `weights` and `reached`.

    Raises:
        ValueError: If it calls no `Recipe`, or not with these arguments on lines of their own.
    """
    lines = text.splitlines(keepends=True)
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    recipe = next(
        (call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == "Recipe"), None
    )
    changed = [node for node in recipe.keywords if node.arg in ("name", "weights", "reached")] if recipe else []
    shared = [lines[node.lineno - 1].strip() for node in changed if not _is_alone(lines, node)]
    if shared or not changed:
        raise ValueError(
            "A recipe to copy must call Recipe(...), each argument on its own line. "
            f"Received: {shared[0] if shared else 'no such call'}"
        )
    for node in changed:
        lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
        if node.arg == "name":
            lines[node.lineno - 1] = f"    name={name!r},\n"
    return "".join(lines)


def _is_alone(lines, node):
    """Returns whether an argument shares its lines with no other code."""
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].partition(b"#")[0]
    return not before.strip() and after.strip() in (b"", b",")
