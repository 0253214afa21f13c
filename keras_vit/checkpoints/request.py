"""What a caller asks of a loader besides the source."""

from typing import NamedTuple

from keras_vit.utils import checks
from keras_vit.utils.resampling import METHODS


class Options(NamedTuple):
    """How tensors are matched with weights; see `keras_vit.load_weights`."""

    format: str = "auto"
    head: str = "require"
    resample: str | None = None
    patches: str = "require"
    grid: tuple | None = None

    def checked(self, libraries):
        """Returns the options with `grid` as a pair; raises ValueError for an unknown one, such as a format."""
        checks.one_of("format", self.format, ("auto", *libraries))
        checks.one_of("head", self.head, ("require", "new"))
        checks.one_of("patches", self.patches, ("require", "resize", *METHODS))
        if self.resample is not None:
            checks.one_of("resample", self.resample, tuple(METHODS))
        return self if self.grid is None else self._replace(grid=checks.pair("grid", self.grid))

    def changed(self, **usual):
        """Returns the options that are not the default, or the value here, as a dictionary."""
        defaults = Options(**usual)
        return {name: value for name, value in self._asdict().items() if value != getattr(defaults, name)}


class Request(NamedTuple):
    """What a caller of `from_checkpoint` asks for."""

    source: object  # as passed, for errors and the metadata
    part: str | None
    head: str | None  # as passed; `None` means that the sizes decide
    options: Options
    overrides: dict
    metadata: dict | None
