"""What `import keras_vit` offers, from a program and from the command line."""

import os
import subprocess
import sys

import keras_vit
from keras_vit import public
from tests.marks import slow


def run(*words, cwd=None, **more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dir_lists_what_is_public_and_nothing_else():
    listed = {name for name in dir(keras_vit) if not name.startswith("__")}
    assert listed == {name for name in vars(public) if not name.startswith("_")}
    assert {"vit", "Recipe", "explain", "plots"} <= listed and not {"sys", "typing", "checks"} & listed
    assert "__version__" in dir(keras_vit)


def test_names_of_a_program_are_there_at_once_and_others_are_not():
    assert all(getattr(keras_vit, name) is getattr(public, name) for name in dir(public) if not name.startswith("_"))
    assert not hasattr(keras_vit, "nothing") and "vit" in vars(keras_vit)


@slow
def test_layers_load_by_the_import_alone(tmp_path):
    """Before Keras or after it, in a script or in a package that `python -m` runs."""
    keras_vit.vit("Ti/4", image_size=8, depth=1, num_classes=2).save(tmp_path / "model.keras")
    load = "print(keras.models.load_model('model.keras').name)\n"
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("import keras_vit\nimport keras\n")
    (package / "__main__.py").write_text("from mine import keras\n" + load)
    (tmp_path / "after.py").write_text("import keras\nimport keras_vit\n" + load)
    assert run("-m", "mine", "help", cwd=tmp_path) == run("after.py", cwd=tmp_path) == "vit_Ti_4\n"


@slow
def test_on_the_command_line_names_come_when_they_are_asked_for():
    """As while Python looks for the module of `python -m keras_vit`."""
    start = "import sys; sys.argv = ['-m', 'x']; sys.orig_argv = ['python', '-m', 'keras_vit', 'x']\n"
    script = start + (
        "import keras_vit\n"
        "assert 'keras' not in sys.modules and 'Recipe' not in vars(keras_vit)\n"
        "from keras_vit.utils.checks import near\n"
        "assert 'keras' not in sys.modules\n"
        "from keras_vit import Recipe, explain\n"
        "from keras_vit import config\n"
        "assert Recipe(name='a', model={}).name and explain.features is keras_vit.features\n"
        "try:\n"
        "    keras_vit.nothing\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
        "import keras\n"
        "print(sorted(dir(keras_vit)) == dir(keras_vit), 'fit' in dir(keras_vit), keras_vit.__version__)\n"
    )
    assert run("-c", script) == f"module 'keras_vit' has no attribute 'nothing'\nTrue True {keras_vit.__version__}\n"


def test_what_a_recipe_is_is_read_without_checkpoints_and_plots():
    """`config` reads from the layers which options they have."""
    script = (
        "import sys; sys.argv = ['keras_vit']\n"
        "from keras_vit.config import Recipe\n"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('keras_vit.')})"
    )
    # On the backend that Keras imports in the least time.
    read = {"config", "generation", "layers", "models", "preparing", "tasks", "text", "traits", "utils"}
    assert set(run("-c", script, KERAS_BACKEND="numpy").split()) == read


@slow
def test_a_model_compiled_with_our_optimizer_is_loaded_elsewhere(tmp_path):
    model = keras_vit.vit("mu/4", image_size=8, num_classes=2)
    model.compile(keras_vit.optimizers.AdamW(1e-3, layer_decay=0.8), "mse")
    model.save(tmp_path / "model.keras")
    script = "import sys, keras, keras_vit; keras.models.load_model(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "model.keras")], check=True)
