"""Names in Unicode's two forms: macOS may write `é` as `e` and an accent (NFD), other systems as one letter (NFC)."""

import os
import unicodedata


def composed(name):
    """Returns a name in the form NFC, in which equal names are equal texts."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


class Written:
    """Finds files and folders whose names are written in another form than asked for. Each folder is listed once."""

    def __init__(self):
        self.known = {}

    def path(self, path):
        """Returns a path as its folders have it, a text; what does not exist is returned as it is."""
        path = os.fspath(path)
        if path.isascii() or os.path.lexists(path):
            return path
        folder, name = os.path.split(path)
        if not name or folder == path:
            return path
        folder = self.path(folder) if folder else folder
        return os.path.join(folder, self._names(folder).get(composed(name), name))

    def _names(self, folder):
        """Returns the names in a folder by their composed forms; nothing of one that cannot be read."""
        if folder not in self.known:
            try:
                names = os.listdir(folder or os.curdir)
            except OSError:
                names = []
            self.known[folder] = {composed(name): name for name in names if not name.isascii()}
        return self.known[folder]
