import subprocess
import sys

import pytest

from keras_vit.training import locks

pytestmark = pytest.mark.backend
HOLD = (
    "import sys; from keras_vit.training import locks\nwith locks.locked(sys.argv[1]): print('in', flush=True); input()"
)


def test_one_process_at_a_time_and_none_after_a_kill(tmp_path):
    words = [sys.executable, "-c", HOLD, str(tmp_path / "new" / "deep")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "in\n"
        with (
            pytest.raises(locks.BusyError, match=r"^Another process is training in '.*deep'. Wait for it, or choose"),
            locks.locked(tmp_path / "new" / "deep"),
        ):
            pass
        with locks.locked(tmp_path / "new" / "deep", writes=False):  # another process of the same training
            pass
        other.kill()
    with locks.locked(tmp_path / "new" / "deep"):
        assert [path.name for path in (tmp_path / "new" / "deep").iterdir()] == [locks.LOCK]


def test_what_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file' must be a writable directory"), locks.locked(tmp_path / "file"):
        pass
