import json

import pytest

pytest.importorskip("tensorflow")

from keras_vit.frozen import transferring
from tests.commands.helpers import run as command


def test_a_table_is_printed_and_written(tmp_path, monkeypatch, capsys):
    def measured(models, data, **options):
        assert options == {"examples": 50, "tests": None, "epochs": None}
        for place, name in enumerate(data):
            for model in models:
                score = 0.5 + 0.25 * place
                yield {"data": name, "model": model, "examples": 50, "tests": 9, "linear": score, "strength": 1.0}

    monkeypatch.setattr(transferring, "measured", measured)
    command("transfer", "a", "b", "--data", "digits", "mnist", "--examples", "50", "--json", str(tmp_path / "t.json"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "digits, a: linear 50.00%" and lines[-3:] == [
        "top-1, linear  digits   mnist    mean",
        "a              50.00%  75.00%  62.50%",
        "b              50.00%  75.00%  62.50%",
    ]
    assert [row["linear"] for row in json.loads((tmp_path / "t.json").read_text())] == [0.5, 0.5, 0.75, 0.75]


def test_models_and_data_are_needed(capsys):
    with pytest.raises((SystemExit, ValueError)):
        command("transfer", "mnist")
