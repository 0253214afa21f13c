import pytest

from keras_vit.__main__ import COMMANDS
from keras_vit.commands import dashes
from tests.commands.helpers import run


@pytest.mark.parametrize(
    "words, said",
    [
        ("fit digits --epochs 3", "optim.epochs=3. Received: --epochs 3"),
        ("fit digits --epochs=3 --batch-size 4", "optim.epochs=3 data.batch_size=4. Received: --epochs 3 --batch-size"),
        ("fit --learning_rate 1e-3 digits", "optim.learning_rate=1e-3. Received: --learning_rate 1e-3"),
        ("fit digits --lr 1e-3 --workdir runs/a", "optim.learning_rate=1e-3. Received: --lr 1e-3"),
        ("fit digits --limit 5 model.depth=2", "data.limit=5. Received: --limit 5"),
        ("fit --remat digits --no-xla", "optim.remat=True optim.xla=False. Received: --remat --no-xla"),
        ("fit digits --epochs", "optim.epochs=VALUE. Received: --epochs"),
        ("fit digits --optim.epochs 3", "optim.epochs=3. Received: --optim.epochs 3"),
        ("fit digits --nonsense 4 --epochs 3", "optim.epochs=3. Received: --epochs 3"),
        ("fit digits --source=folder:my photos", "'data.source=folder:my photos'. Received: --source 'folder:my"),
        ("show digits --seed 3", "seed=3. Received: --seed 3"),
        ("sweep digits --depth 6,8", "model.depth=6,8. Received: --depth 6,8"),
        ("tour --img-size 16", "model.image_size=16. Received: --img-size 16"),
        ("evaluate mnist --metrics f1", "task.metrics=f1. Received: --metrics f1"),
        ("convert a.npz b.keras --num-classes 3", "num_classes=3. Received: --num-classes 3"),
    ],
)
def test_options_of_recipes_are_written_without_dashes(words, said, capsys):
    words = [word.replace("my", "my photos") for word in words.replace("my photos", "my").split()]
    run(*words, status=2)
    error = capsys.readouterr().err
    assert error.startswith("error: Options must be NAME=VALUE, without dashes: ") and said in error


@pytest.mark.parametrize(
    "words",
    [
        "fit digits --nonsense 3",
        "evaluate mnist --epochs 3",
        "predict mnist a.png --batch-size 3",
        "fit digits --wor x",
    ],
)
def test_what_is_no_option_that_a_command_takes_is_left_to_the_command_line(words, capsys):
    run(*words.split(), status=2)
    assert "Unrecognized options" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["digits --workdir a --save-steps 3 --tensorboard", "--help", "-- digits --epochs", "digits optim.epochs=3"],
)
def test_the_options_of_a_command_are_its_own(words):
    assert dashes.unknown(COMMANDS["fit"], words.split()) == {}
