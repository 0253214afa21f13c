import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources


def write(path, size=(8, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), "uint8")).save(path)
    return str(path)


def load(folder, columns=None):
    data = Data(source=f"folder:{folder}", columns=columns)
    return sources.load(data, "all", (), ("references",))


def test_references_have_the_names_of_their_images(tmp_path):
    for name in ("a", "b/c"):
        write(tmp_path / "images" / f"{name}.png")
        write(tmp_path / "references" / f"{name}.png")
    source = load(tmp_path)
    assert len(source) == 2
    for image, reference in zip(source.images, source.targets["references"]):
        assert str(image).replace("images", "references") == reference
    assert "references" not in sources.load(Data(source=f"folder:{tmp_path}"), "all", (), ()).targets
    write(tmp_path / "images" / "d.png")
    with pytest.raises(ValueError, match="must have a reference, references/NAME.*d.png' without reference"):
        load(tmp_path)
    write(tmp_path / "references" / "d.png", (8, 7))
    with pytest.raises(ValueError, match="A reference must have the size of its image. Received: .*7 x 8 pixels"):
        load(tmp_path)
    (tmp_path / "references" / "d.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match="its reference|reference: "):
        load(tmp_path)


def test_or_a_column_of_a_table_names_them(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.png")
        write(tmp_path / "sharp" / f"{name}.png")
    (tmp_path / "metadata.csv").write_text("file_name,second\na.png,sharp/b.png\nb.png,sharp/a.png\n")
    source = load(tmp_path, {"references": "second"})
    pairs = {image[-5]: reference[-5] for image, reference in zip(source.images, source.targets["references"])}
    assert pairs == {"a": "b", "b": "a"}
    assert "references" not in load(tmp_path).targets
