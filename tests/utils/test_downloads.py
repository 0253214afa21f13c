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


@pytest.mark.parametrize("source, words", [("hf://me/a", "me/a"), ("hf://me/a@v1", "me/a --revision v1")])
def test_without_a_network_the_way_by_hand_is_named(source, words, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def refuse(*_, **__):
        raise hub.errors.LocalEntryNotFoundError("offline mode is enabled.")

    monkeypatch.setattr(hub, "snapshot_download", refuse)
    said = (
        f"not complete in the cache, '.*': offline mode is enabled. Where .*: hf download {words} --local-dir FOLDER; "
    )
    with pytest.raises(ConnectionError, match=f"{said}then pass the path of FOLDER, or set HF_HOME to a copy"):
        downloads.snapshot(source, ["*.json"], tmp_path)
    monkeypatch.setattr(hub, "snapshot_download", lambda *_, **__: (_ for _ in ()).throw(TimeoutError("slow")))
    with pytest.raises(
        ConnectionError, match=f"Cannot download '{source}': slow. Where .*: hf download {words} --local"
    ):
        downloads.snapshot(source, ["*.json"], tmp_path)
