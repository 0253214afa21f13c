import http.client

import pytest

pytest.importorskip("tensorflow")

from keras_vit.demo import guard, serving
from tests.demo.pages import kept, request, served, upload


@pytest.fixture(scope="module", autouse=True)
def gradio():  # takes seconds to import
    return pytest.importorskip("gradio", reason="gradio is not installed")


def blocks():
    import gradio

    with gradio.Blocks(analytics_enabled=False) as page:
        gradio.Markdown("hello")
    return page.queue(api_open=False)


@pytest.fixture(scope="module")
def port():
    with served(blocks) as (port, _):
        yield port


OWN = ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}", "localhost", "127.0.0.1:1"]
FOREIGN = [
    *("evil.example", "evil.example:{}", "localhost.evil.example:{}", "127.0.0.1.evil.example", "10.1.2.3:{}"),
    *("", "[::1"),
]


def test_its_own_names_are_answered(port):
    assert [name for name in OWN if request(port, Host=name.format(port))[0] != 200] == []


@pytest.mark.parametrize("name", FOREIGN)
def test_other_names_are_refused(name, port):
    status, text = request(port, Host=name.format(port))
    assert status == 400 and text.startswith("The request must name the host of this page. Received: Host ")


def test_a_request_names_one_host(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.putrequest("GET", "/", skip_host=True)
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://localhost:{}", "http://127.0.0.1:1", "null", "https://evil.example:{}"]
)
def test_other_origins_are_refused(origin, port):
    for call in (request, lambda *given, **headers: upload(*given, 10, **headers)):
        status, text = call(port, Origin=origin.format(port), Host=f"127.0.0.1:{port}")
        assert status == 403 and text.startswith("The request must come from this page. Received: Origin")


def test_its_own_origin_is_answered(port):
    for name in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert request(port, Host=name, Origin=f"http://{name}")[0] == 200
        assert upload(port, 10, Host=name, Origin=f"http://{name}")[0] == 200


@pytest.mark.parametrize(
    "host, answered, refused",
    [
        ("0.0.0.0", ["10.1.2.3:80", "localhost", "[fe80::1]", "MACHINE", "machine.local"], ["evil.example"]),
        ("::", ["10.1.2.3"], ["evil.example"]),
        ("my.lan", ["my.lan:7860", "My.Lan", "127.0.0.1"], ["other.lan"]),
        ("::1", ["[::1]:7860", "localhost"], ["[fe80::1]", "machine"]),
        ("localhost", ["127.0.0.1"], ["10.1.2.3"]),
    ],
)  # fmt: skip
def test_what_was_listened_on_is_answered(host, answered, refused, tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "Machine")
    found = guard.Guard(None, host, tmp_path)
    refusals = [found._refusal([("host", name.lower())], 0, False) for name in answered + refused]
    assert [refusal is None for refusal in refusals] == [True] * len(answered) + [False] * len(refused)


def test_uploads_are_refused_while_the_folder_is_full(monkeypatch):
    monkeypatch.setattr(guard, "MOST_KEPT", 1_000_000)
    monkeypatch.setattr(serving, "MOST_BYTES", 300_000)
    with served(blocks) as (port, folder):
        assert upload(port, 400_000)[0] == 413
        assert [upload(port, 290_000)[0] for _ in range(5)] == [200, 200, 200, 503, 503]
        for path in kept(folder)[1:]:  # as Gradio does later
            path.unlink()
        found = [upload(port, 1)[0] for _ in range(20)]  # small ones count too
        assert found[0] == 200 and found[-1] == 503 and len(kept(folder)) <= 1_000_000 // guard.LEAST


def test_a_request_says_how_long_it_is_and_few_arrive_at_once(tmp_path):
    found = guard.Guard(None, "localhost", tmp_path)
    host = [("host", "localhost")]
    assert found._refusal(host, None, False)[0] == 411
    found.arriving = guard.MOST_KEPT - 10
    assert found._refusal(host, 11, True) == (503, "Too many uploads: try again in a few minutes.")
    assert found._refusal(host, 10, True) is found._refusal(host, 11, False) is None


def test_a_chunked_upload_is_refused(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/gradio_api/upload", iter([b"a", b"b"]), {"Content-Type": "multipart/form-data"})
    assert connection.getresponse().status == 411
    connection.close()
