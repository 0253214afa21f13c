import concurrent.futures
import errno
import hashlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from functools import partial
from unittest import mock

import keras
import pytest

import keras_vit
from keras_vit.checkpoints.files import fetch as module
from keras_vit.checkpoints.files.fetch import fetch
from tests.checkpoints.helpers import unexpected
from tests.checkpoints.loopback import BODY, COMMIT, REPOS, Server
from tests.marks import slow

SHA256 = hashlib.sha256(BODY).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()
BAD = ["", None, 3, "ftp://h/x", "s3://b/x", "file:///x", "://x", "hf://", "hf://me", "hf://me/a/b", "hf://me/a@"]
BAD += ["hf://../..", "https://h", "https://h/", "https://h/a/..", "https://h/a/%2e%2E?x.npz", "https://h?x=/y.npz"]
BAD += ["https://h/a b.npz", "https://h/\u00e4.npz"]
ASK = """def ask():
    for source in sys.argv[1:]:
        try:
            print(*sorted(path.name for path in fetch(source).iterdir()), flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
ask()
input()  # until the server has stopped
ask()"""
CHILD = f"""import importlib, sys, types
package = types.ModuleType("keras_vit")  # without what its __init__ imports
package.__path__ = [{os.path.dirname(keras_vit.__file__)!r}]
sys.modules["keras_vit"] = package
sys.modules["keras_vit.checkpoints"] = types.ModuleType("keras_vit.checkpoints")
sys.modules["keras_vit.checkpoints"].__path__ = [{os.path.dirname(os.path.dirname(module.__file__))!r}]
fetch = importlib.import_module("keras_vit.checkpoints.files.fetch").fetch
"""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "not there yet" / "cache"


def files(cache):
    """Returns every file under the cache, parts included."""
    return sorted(path for path in cache.rglob("*") if path.is_file())


def child(script, *args, **env):
    """Starts a Python that knows `fetch`, on the backend that starts soonest: NumPy, for which Keras needs JAX."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    env = {**outer, "KERAS_BACKEND": "numpy" if importlib.util.find_spec("jax") else keras.backend.backend(), **env}
    command = [sys.executable, "-c", CHILD + script, *map(str, args)]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_download_is_kept_and_read_again_without_the_server(server, cache, capsys):
    url = f"{server.url}/whole/vit.npz?download=true"
    path = fetch(url, cache_dir=cache)
    assert path.read_bytes() == BODY and path == cache / hashlib.sha256(url.encode()).hexdigest()[:12] / "vit.npz"
    printed = capsys.readouterr().out
    assert url in printed and f"{len(BODY)}/{len(BODY)}" in printed  # the progress
    server.stop()
    assert fetch(url, cache_dir=cache) == fetch(url, cache_dir=str(cache), sha256=SHA256) == path
    assert files(cache) == [path] and not capsys.readouterr().out


def test_the_cache_is_in_the_home_of_keras(server, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    assert fetch(f"{server.url}/whole/x.npz").is_relative_to(tmp_path / "keras" / "keras_vit")
    monkeypatch.delenv("KERAS_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fetch(f"{server.url}/whole/x.npz").is_relative_to(tmp_path / ".keras" / "keras_vit")


def test_the_right_hash(server, cache):
    for way, sha256 in [("whole", SHA256.upper()), ("whole", SHA256[:13]), ("unsized", SHA256[:8])]:
        assert fetch(f"{server.url}/{way}/{sha256}.npz", cache_dir=cache, sha256=sha256).read_bytes() == BODY


@pytest.mark.parametrize("sha256", [OTHER, OTHER[:8]])
def test_a_wrong_hash_leaves_what_was_there(server, cache, sha256):
    url = f"{server.url}/whole/x.npz"
    expected = f"{re.escape(repr(url))} is damaged or another file. SHA-256: expected {sha256}, found {SHA256}"
    with pytest.raises(ValueError, match=expected):
        fetch(url, cache_dir=cache, sha256=sha256)
    assert files(cache) == []
    good = fetch(url, cache_dir=cache)
    with pytest.raises(ValueError, match=expected):
        fetch(url, cache_dir=cache, sha256=sha256)
    assert files(cache) == [good] and good.read_bytes() == BODY
    good.write_bytes(BODY[:-1])
    assert fetch(url, cache_dir=cache, sha256=SHA256[:8]).read_bytes() == BODY


def test_invalid_hashes(tmp_path):
    assert not unexpected(
        (partial(fetch, tmp_path, sha256=sha256), "64 hex digits.*" + re.escape(f"Received: sha256={sha256!r}"))
        for sha256 in ["", "1234567", "x" * 64, "0" * 65, 12345678, b"12345678"]
    )


@pytest.mark.parametrize(
    "way, kind, reason",
    [
        ("404", FileNotFoundError, "responded 404, Not Found"),
        ("500", ConnectionError, "responded 500, Internal Server Error"),
        ("away", ConnectionError, "responded 302, Found - Redirection to url 'file:.*' is not allowed"),
        ("once", ConnectionError, f"got only 100000 out of {len(BODY)} bytes"),
    ],
)
def test_answers_that_are_no_file(server, cache, way, kind, reason):
    url = f"{server.url}/{way}/x.npz"
    with pytest.raises(kind, match=f"^Cannot download {re.escape(repr(url))}: .*{reason}") as caught:
        fetch(url, cache_dir=cache)
    assert "\n" not in str(caught.value) and files(cache) == []
    if way == "once":
        assert fetch(url, cache_dir=cache).read_bytes() == BODY


def test_servers_that_are_not_there(server, cache):
    server.stop()
    with pytest.raises(ConnectionError, match=f"'{server.url}/x.npz': .*[Cc]onnection refused"):
        fetch(f"{server.url}/x.npz", cache_dir=cache)
    unknown = mock.patch("socket.getaddrinfo", side_effect=OSError("Name or service not known"))
    with unknown, pytest.raises(ConnectionError, match="'https://nowhere.example/x.npz': Name or service not known"):
        fetch("https://nowhere.example/x.npz", cache_dir=cache)
    with pytest.raises(ValueError, match="Cannot download 'http://nowhere.example:x/y': nonnumeric port"):
        fetch("http://nowhere.example:x/y", cache_dir=cache)


def test_a_file_may_be_put_where_the_error_says(server, cache):
    server.stop()
    with pytest.raises(ConnectionError, match="Put the file at '.*x.npz' .KERAS_HOME .*, or pass its path") as caught:
        fetch(f"{server.url}/x.npz", cache_dir=cache)
    place = pathlib.Path(re.search("Put the file at '(.*?)'", str(caught.value)).group(1))
    place.parent.mkdir(parents=True)
    place.write_bytes(BODY)
    assert fetch(f"{server.url}/x.npz", cache_dir=cache) == place


@slow
def test_after_a_kill_it_starts_again(server, cache):
    url = f"{server.url}/stuck/x.npz"
    with child("fetch(sys.argv[1], cache_dir=sys.argv[2])", url, cache) as process:
        while process.poll() is None and not any(path.stat().st_size for path in files(cache)):
            server.done.wait(0.01)
        process.kill()
    (left,) = files(cache)
    assert fetch(url, cache_dir=cache).read_bytes() == BODY
    assert len(files(cache)) == 2 and left.exists()  # it may still be written to
    for path in (left, left.parent):
        os.utime(path, (0, 0))
    assert fetch(f"{server.url}/whole/y.npz", cache_dir=cache).name == "y.npz" and not left.parent.exists()


def test_a_full_disk(server, cache):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    expected = f"^No room in {re.escape(repr(str(cache)))} for '{server.url}/whole/x.npz': .*, [0-9,]+ bytes free$"
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with pytest.raises(OSError, match=expected):
            fetch(f"{server.url}/whole/x.npz", cache_dir=cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "late")), pytest.raises(OSError, match=expected):
        fetch(f"{server.url}/whole/x.npz", cache_dir=cache)
    assert files(cache) == []


def test_two_at_once(server, cache):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # the server waits until both have begun
        paths = list(pool.map(lambda _: fetch(f"{server.url}/together/x.npz", cache_dir=cache), range(2)))
    assert server.hits == 2 and files(cache) == paths[:1] == paths[1:] and paths[0].read_bytes() == BODY


@pytest.mark.parametrize("end", ["..%2F..%2Fevil?download=true", "a%5C..%5Cb%00", "n" * 300, "../x#/../x"])
def test_names_that_would_leave_the_cache(server, cache, end):
    path = fetch(f"{server.url}/whole/{end}.npz", cache_dir=cache)
    assert files(cache) == [path] and path.parent.parent == cache and re.fullmatch(r"[\w.-]{1,128}", path.name)


def test_local_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "https.npz"
    with pytest.raises(FileNotFoundError, match="There is no file or folder '~/https.npz'"):
        fetch("~/https.npz", sha256=SHA256)
    path.write_bytes(BODY)
    assert fetch("~/https.npz") == fetch(path, sha256=SHA256[:8]) == path and fetch(str(tmp_path)) == tmp_path
    with pytest.raises(ValueError, match=f"https.npz' is damaged or another file.*{OTHER}, found {SHA256}"):
        fetch(path, sha256=OTHER)
    for source in (tmp_path, "hf://me/both"):
        with pytest.raises(ValueError, match=f"must be None: '{source}' is not one file"):
            fetch(source, sha256=SHA256)


def test_other_sources():
    assert not unexpected((partial(fetch, source), "Received: (source=)?" + re.escape(repr(source))) for source in BAD)


def test_without_the_library_of_the_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="'hf://me/a' needs huggingface_hub. Install it: pip install .*hub"):
        fetch("hf://me/a")


def test_repositories_of_several_models(server, tmp_path):
    """Of each folder the weights of the first kind, and no halves; of what draws texts' images only the autoencoder."""
    pytest.importorskip("huggingface_hub", reason="repositories of the hub need huggingface_hub")
    ask = """for source, part in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        folder = fetch(source, part=part or None)
        print(*sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*") if path.is_file()), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)"""
    settings = "model_index.json scheduler/scheduler_config.json transformer/config.json "
    own = "transformer/diffusion_pytorch_model.safetensors vae/config.json vae/diffusion_pytorch_model.bin"
    expected = {
        ("hf://me/dit", "decoder"): f"{settings}vae/config.json vae/diffusion_pytorch_model.bin",
        ("hf://me/dit", ""): settings + own,
        ("hf://me/vae", "decoder"): "config.json diffusion_pytorch_model.safetensors",
        ("hf://me/text", "decoder"): "model_index.json vae/config.json vae/diffusion_pytorch_model.safetensors",
        ("hf://me/text", ""): "ValueError: Of folders .* a DiTPipeline are read.*Received: 'hf://me/text', a TextPip.*",
    }
    asked = [word for pair in expected for word in pair]
    with child(ask, *asked, HF_ENDPOINT=server.url, HF_HOME=str(tmp_path)) as process:
        lines = process.communicate()[0].splitlines()
    assert len(lines) == len(expected)
    for line, pattern in zip(lines, expected.values()):
        assert re.fullmatch(pattern, line), line


def test_the_hub(server, tmp_path):
    pytest.importorskip("huggingface_hub", reason="repositories of the hub need huggingface_hub")
    expected = {
        "hf://me/both": "config.json model.safetensors preprocessor_config.json processor_config.json",
        "hf://me/both@v1": "config.json model.safetensors preprocessor_config.json processor_config.json",
        f"hf://me/shards@{COMMIT}": REPOS["me/shards"],
        "hf://me/old": "config.json pytorch_model.bin",
        "hf://me/empty": "FileNotFoundError: 'hf://me/empty' has no weights: .*",
        "hf://me/gated": "PermissionError: 'hf://me/gated' is gated.*hf auth login",
        "hf://me/both@never": "FileNotFoundError: There is no 'hf://me/both@never', or it is private.*",
        "hf://me/never": "FileNotFoundError: There is no 'hf://me/never', or it is private.*",
        "hf://me/down": "ConnectionError: 'hf://me/down' cannot be reached and is not complete in the cache, .*500 .*",
    }

    with child(ASK, *expected, HF_ENDPOINT=server.url, HF_HOME=str(tmp_path)) as process:
        for pattern in expected.values():
            assert re.fullmatch(pattern, process.stdout.readline().rstrip("\n"))
        server.stop()
        offline = process.communicate("\n")[0].splitlines()
    assert offline[:4] == list(expected.values())[:4]
    assert re.fullmatch("ConnectionError: .* is not complete in the cache, .*[Cc]onnection refused.*", offline[-2])
