"""Fixtures of runs."""

import pytest


@pytest.fixture(scope="session")
def colors(tmp_path_factory):
    """A folder with a run that tells three colors apart, its data, and pictures of none of them in `strange`."""
    pytest.importorskip("tensorflow")
    from tests.runs import strangers

    return strangers.make(tmp_path_factory.mktemp("colors"))
