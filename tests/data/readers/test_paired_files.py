import pytest

from keras_vit.data.readers.paired_files import pairs


@pytest.fixture
def folder(tmp_path):
    for part, names in (("images", ("a/1.jpg", "2.png")), ("flow", ("2.npy", "a/1.NPY"))):
        for name in names:
            (tmp_path / part / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / part / name).touch()
    (tmp_path / "flow" / "README.txt").touch()
    return tmp_path


def paired(folder):
    images = sorted(map(str, (folder / "images").rglob("*.*")))
    return pairs(images, folder, "flow", "flow map", (".npy", ".png"))


def test_by_their_names(folder):
    found = [[path.removeprefix(f"{folder}/") for path in pair] for pair in paired(folder)]
    assert found == [["images/2.png", "flow/2.npy"], ["images/a/1.jpg", "flow/a/1.NPY"]]


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda f: (f / "flow/2.npy").unlink(),
         r"must have a flow map, flow/NAME.npy or flow/NAME.png. Received: .*2.png' without flow map$"),
        (lambda f: (f / "images/2.png").unlink(), r"Every flow map must .*Received: .*2.npy' without image$"),
        (lambda f: (f / "flow/2.png").touch(), r"Each image must have one flow map. Received: .*2.(npy|png)', "),
        (lambda f: (f / "flow/2.exr").touch(), r"Flow maps must be .npy or PNG files. Received: .*2.exr'$"),
        (lambda f: (f / "images/2.gif").touch(), r"of its own, the one of its flow map. Received: .*2.gif', '"),
        (lambda f: [file.unlink() for file in f.rglob("*.*")], "must contain images. Received: none"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(folder, change, said):
    change(folder)
    with pytest.raises(ValueError, match=said):
        paired(folder)
