import pytest


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    from tests.training.small import fit

    folder = tmp_path_factory.mktemp("whole")
    model, history = fit(folder)
    return model, history, folder
