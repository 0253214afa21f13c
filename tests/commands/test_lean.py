import subprocess
import sys

import pytest

from keras_vit.commands import lean
from tests.marks import slow

SCRIPT = """
import sys
sys.argv = ["keras_vit", *sys.argv[1:]]
from keras_vit.__main__ import main
main()
from keras_vit.commands.lean import UNUSED
assert not {*UNUSED} & {*sys.modules}
import sklearn.metrics
"""


def test_a_library_is_absent_inside_and_there_afterwards(tmp_path, monkeypatch):
    (tmp_path / "some_library").mkdir()
    (tmp_path / "some_library" / "__init__.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)
    with lean.without("some_library"), pytest.raises(ModuleNotFoundError, match="No module named 'some_library'"):
        import some_library
    import some_library

    with lean.without("some_library"):  # what is there stays
        import some_library
    assert some_library.value == 1


@slow
@pytest.mark.parametrize("words", [["show", "mnist"], ["predict", "mnist"]])
def test_commands_that_answer_at_once_import_little(words, tmp_path):
    from PIL import Image

    Image.new("L", (28, 28)).save(tmp_path / "a.png")
    words = [*words, tmp_path / "a.png"] if words[0] == "predict" else words
    subprocess.run([sys.executable, "-c", SCRIPT, *words], check=True)
