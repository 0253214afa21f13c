import os

from keras_vit.utils.by_file import cached, state_of


def test_what_was_read_is_kept_until_its_file_changes(tmp_path):
    read, path = [], tmp_path / "a.txt"

    @cached(2)
    def text(place, end=""):
        read.append(place)
        return path.read_text() + end

    path.write_text("one")
    assert [text(path), text(path), text(path, "!")] == ["one", "one", "one!"] and len(read) == 2
    path.write_text("other")
    assert text(path) == "other" and len(read) == 3
    path.write_text("after")  # as long as before
    os.utime(path, ns=(1, 1))
    assert text(path) == "after"
    text.cache_clear()
    assert text(path) == "after" and len(read) == 5


def test_folders_have_the_state_of_their_files(tmp_path):
    (tmp_path / "vae").mkdir()
    (tmp_path / "vae" / "config.json").write_text("{}")
    before = state_of(tmp_path)
    (tmp_path / "vae" / "config.json").write_text('{"a": 1}')
    assert [name for name, *_ in before] == [str(tmp_path / "vae" / "config.json")] and state_of(tmp_path) != before
    (tmp_path / "model.keras").write_text("weights")
    trained = state_of(tmp_path)
    (tmp_path / "state-1").write_text("of a run that trains")
    assert state_of(tmp_path) == trained == state_of(str(tmp_path))


def test_names_and_addresses_have_no_state():
    assert state_of("mnist") == state_of("hf://owner/name") == state_of("") == ()
