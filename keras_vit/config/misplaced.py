"""Hints for commands with data, a run or a model in place of a recipe's name."""

import json
import pathlib
import shlex

from keras_vit.config import changes, plain
from keras_vit.config.changes import KINDS

LABELED, BOXES, MASKS = "finetune_folder", "blood_cells", "nuclei"  # recipes for the hints
TABLES, YAML = (".csv", ".jsonl", ".parquet"), (".yaml", ".yml")
CLASSES = {BOXES: "task.classes=()", MASKS: 'task.classes=("background", "NAME")'}  # boxes: the classes of the data


def instead_of_recipe(name, recipes, load):
    """Returns a recipe with its options, as words of a command, for data, a run or a model; else `None`.

    Args:
        name: Text that was passed as the name of a recipe.
        recipes: Names of the recipes of the package.
        load: Function from the name of a recipe to the recipe.
    """
    path = pathlib.Path(name)
    if name.startswith(KINDS):
        return _of_folder(pathlib.Path(name.partition(":")[2])) if name.startswith("folder:") else _on(name)
    if path.is_dir():
        return _of_run(path, recipes, load) if (path / "recipe.json").is_file() else _of_folder(path)
    if not path.is_file():
        return None
    if path.suffix == ".keras":
        return shlex.join([LABELED, f"model.weights={path}", "data.source=folder:PATH"])
    if path.suffix in TABLES:
        other = "" if path.stem == "metadata" else f", where the table must be called metadata{path.suffix}"
        return f"{_on(f'folder:{path.parent}')}{other}"
    if path.suffix == ".json":
        standard = path.name in ("annotations.json", "_annotations.coco.json")
        other = "" if standard else ", where COCO's file must be called annotations.json"
        return f"{_of_other(path.parent, BOXES, _splits(path.parent))}{other}"
    return _on(f"folder:{path}", BOXES, CLASSES[BOXES]) if path.suffix in YAML else None


def _on(source, recipe=LABELED, *more):
    return shlex.join([recipe, f"data.source={source}", *more])


def _of_run(path, recipes, load):
    """Returns the words that resume a run: its recipe, if the package has it, with its changes."""
    words = ["RECIPE.py"]
    try:
        recipe = plain.from_dict(json.loads((path / "recipe.json").read_text(encoding="utf-8")))
        if recipe.name in recipes:
            words = [recipe.name, *changes.words(recipe, load(recipe.name))]
    except (ValueError, KeyError, TypeError, AttributeError, OSError):  # a damaged file, or an unknown task
        pass
    return shlex.join([*words, "--workdir", str(path)])


def _of_folder(path):
    """Returns the words for a folder with masks or boxes, a table, class folders, or images only."""
    from keras_vit.data.readers import box_folder, mask_folder, table_file, yolo_dataset

    if not path.is_dir():
        return _on(f"folder:{path}")
    splits = _splits(path)
    places = [path, *(path / name for name in splits)]
    try:
        if any(map(mask_folder.is_paired, places)):
            return _of_other(path, MASKS, splits)
        if any(map(box_folder.has_boxes, places)) or yolo_dataset.find(path):
            return _of_other(path, BOXES, splits)
        labeled = any(table_file.find(place) or len(_inside(place)) > 1 for place in places[-1:])
    except (ValueError, OSError):  # several tables, or an unreadable folder: `fit` reports it
        labeled = True
    command = _on(f"folder:{path}", LABELED, *_named(splits))
    return command if labeled else f"{command}, where each class must have its folder of images"


def _of_other(path, recipe, splits):
    """Returns the words for a folder of masks or boxes, with the names of its split folders."""
    parts = ("data.train=all[:80%]", "data.validation=all[80%:]", "data.test=all[80%:]")
    return _on(f"folder:{path}", recipe, CLASSES[recipe], *(_named(splits) if splits else parts))


def _splits(path):
    """Returns the names of the split folders in a folder, if it has at least two, and no other folders."""
    from keras_vit.utils.folders import SPLITS

    names = _inside(path)
    return names if len(names) > 1 and {name.lower() for name in names} <= SPLITS else []


def _inside(path):
    from keras_vit.data.readers.split_folders import inside

    try:
        return inside(path)
    except OSError:
        return []


def _named(splits):
    """Returns the changes that name the splits; without a test split, the validation split takes its place."""
    by_prefix = {name.lower()[:2]: name for name in splits}
    if not {"tr", "va"} <= set(by_prefix):
        return []
    return [
        f"data.train={by_prefix['tr']}",
        f"data.validation={by_prefix['va']}",
        f"data.test={by_prefix.get('te', by_prefix['va'])}",
    ]
