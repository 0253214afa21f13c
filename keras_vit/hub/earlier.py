"""What a repository has from an earlier publication: files that would stay, and a card that someone has edited."""

from keras_vit.checkpoints.files.repository import PUBLISHED, sha256
from keras_vit.checkpoints.files.settings import MAX_JSON, read_json
from keras_vit.hub.folder import CARD, write_json
from keras_vit.utils import downloads
from keras_vit.utils.warned import warn


def joined(folder, repository):
    """Makes a folder that will be uploaded fit what its repository has, and returns the files to delete there.

    Files of an earlier publication that the new one lacks, such as an export of the model before, would be taken for
    files of the new model. A card that is not as it was published stays, of which a warning says so.

    Args:
        folder: What `folder.write` wrote.
        repository: `"owner/name"`.

    Raises:
        OSError, ImportError: As `downloads.snapshot`, but for a repository that does not exist.
    """
    try:
        there = downloads.snapshot(f"hf://{repository}", [PUBLISHED, CARD], largest=MAX_JSON)
    except FileNotFoundError:
        return []
    stated = read_json(there / PUBLISHED).get("files") if (there / PUBLISHED).is_file() else {}
    earlier = stated if isinstance(stated, dict) else {}
    published = read_json(folder / PUBLISHED)
    if (there / CARD).is_file() and sha256(there / CARD) != earlier.get(CARD):
        warn(f"{repository!r} has a {CARD} that was edited, or is not of push_to_hub: it stays as it is.")
        (folder / CARD).unlink()
        published["files"].pop(CARD)
        write_json(folder / PUBLISHED, published)
    return sorted({*earlier} - {*published["files"], CARD})
