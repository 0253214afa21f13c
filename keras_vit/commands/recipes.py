"""Commands for recipes: list, show, copy."""

import ast
import csv
import pathlib
from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands import lean
from keras_vit.commands.types import Changes, Name, about

To = Annotated[Positional[pathlib.Path], about("A file that ends in .py, or a folder.", "TO")]


def print_recipes() -> None:
    """List recipes and variants."""
    from keras_vit.models.variants import NAMES, parse
    from keras_vit.utils.files import folder
    from keras_vit.utils.metrics import written

    table = csv.DictReader((pathlib.Path(__file__).parent / "sizes.csv").read_text().splitlines())
    sizes = {row["name"]: row for row in table}  # counted: tests compare
    print(f"{'recipe':<27}{'data':<24}{'parameters':>12}  reached")
    for path in sorted(folder("recipes").glob("*.py")):
        source, headline, minutes = stated(path.read_text(encoding="utf-8"))
        result = f"{written(*headline)} {headline[0]} in {minutes:.0f} min" if headline else "-"
        print(f"{path.stem:<27}{source:<24}{int(sizes[path.stem]['parameters']):>12,}  {result}")
    print(f"\n{'variant':<10}{'width':>7}{'depth':>7}{'heads':>7}{'parameters':>16}{'GMACs at 224':>15}")
    for name in NAMES:
        size, counted = parse(name)[0], sizes[name]
        print(
            f"{name:<10}{size.width:>7}{size.depth:>7}{size.num_heads:>7}{int(counted['parameters']):>16,}"
            f"{counted['gmacs']:>15}"
        )


def stated(text):
    """Returns what the source of a recipe says, without running it: Keras's import takes seconds.

    Returns:
        The data's source; the name of the first score and its value, or `None`; and the minutes that it took.
    """
    calls = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Data", "Reached"):
            calls[node.func.id] = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    reached = calls.get("Reached", {})
    named = [("test accuracy", reached["test_accuracy"])] if "test_accuracy" in reached else reached.get("scores", ())
    return calls["Data"]["source"], next(iter(named), None), reached.get("minutes")


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
            print(f"{part}{'.' if name else ''}{name} = {value!r}")
    waits = "num_classes" not in loaded.model and type(loaded.task).settled is not keras_vit.Task.settled
    head = ", without the head: the data say how many classes" * waits
    print(f"\n{model.count_params():,} parameters, {keras_vit.count_macs(model) / 1e9:.4f} GMACs an image{head}")


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
