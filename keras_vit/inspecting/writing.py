"""Writes what was found: a table and a page in a folder."""

from keras_vit.inspecting import findings, page
from keras_vit.utils import checks, extras, files

TABLE, PAGE = "findings.csv", "findings.html"


def place(to, overwrite):
    """Returns the folder to write to, a path; raises before any work if that will fail."""
    extras.need("The page of findings", "report", "jinja2")
    folder = checks.path("to", to)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`to` must be a folder. Received: the file {str(folder)!r}")
    for name in (TABLE, PAGE):
        files.check_free(folder / name, overwrite)
    return folder


def write(folder, inspection):
    """Writes the table and the page of an `Inspection`."""
    folder.mkdir(parents=True, exist_ok=True)
    findings.write(folder / TABLE, inspection.findings)
    with files.replacing(folder / PAGE) as temporary:
        temporary.write_text(page.render(inspection), encoding="utf-8", errors="replace")
