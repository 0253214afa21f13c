import pytest

from tests.hub.loopback import Hub


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on loopback, which `huggingface_hub` takes for the real one, and an empty cache."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="the hub needs huggingface_hub")
    hub = Hub()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    yield hub
    hub.stop()
