import errno
import sys

import pytest

from keras_vit.utils import downloads


@pytest.mark.parametrize("source", ["hf://", "hf://me", "hf://me/a/b", "hf://../..", "https://h/x"])
def test_a_repository_has_an_owner_and_a_name(source):
    with pytest.raises(ValueError, match="A repository must be hf://owner/name .*Received: "):
        downloads.snapshot(source, ["*.json"])


def test_without_the_library_of_the_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="'hf://me/a' needs huggingface_hub. Install it: pip install .*hub"):
        downloads.snapshot("hf://me/a", ["*.json"])


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OSError(errno.ENOSPC, "full"), OSError, "No room in .* for 'x'"),
        (ValueError("bad\nmore"), ValueError, "Cannot download 'x': bad"),
        (TimeoutError("slow"), ConnectionError, "Cannot download 'x': slow. To use a local file, pass its path."),
    ],
)
def test_errors_are_sentences(error, kind, said, tmp_path):
    with pytest.raises(kind, match=said):
        raise downloads.clear_error(error, "x", tmp_path)
