import os
import signal
import threading
import time
import urllib.request

import pytest

pytest.importorskip("tensorflow")

from keras_vit.commands.interrupts import Interrupted, interruptible
from keras_vit.demo import launch, serving
from tests.demo.pages import kept, upload


def test_the_port_is_named_before_any_work():
    with serving.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match=rf"^Port {port} of 127.0.0.1 is already in use. Choose another port\.$"):
            serving.listening("127.0.0.1", port)
    for host, port, sentence in (
        ("127.0.0.1", 80_000, "from 0 to 65535. Received: port=80000"),
        ("", 0, "`host` must be an address or a host name"),
        ("no host", 0, "Cannot listen on port 0 of 'no host': "),
    ):
        with pytest.raises((ValueError, OSError), match=sentence):
            serving.listening(host, port)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly(number, capsys, monkeypatch):
    gradio = pytest.importorskip("gradio", reason="gradio is not installed")
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("the signal is ignored here, as nohup does")
    if number != signal.SIGINT:

        def small(_):
            with gradio.Blocks(analytics_enabled=False) as blocks:
                gradio.Markdown("hello")
            return blocks.queue(api_open=False)

        monkeypatch.setattr(serving, "page", small)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with serving.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    told, folders = [], []

    def use():
        try:
            while "http" not in "".join(told):
                time.sleep(0.1)
                told.append(capsys.readouterr().out)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}") as answer:
                told.append(answer.status)
            folders.append(os.environ["GRADIO_TEMP_DIR"])
            upload(port, 1000)
            told.append(len(kept(folders[0])))
        finally:
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=use)
    thread.start()
    with pytest.raises(Interrupted), interruptible():
        launch("mnist", port=port)
    thread.join()
    assert "".join(told[:-2]) == f"http://127.0.0.1:{port} (stop with Ctrl-C)\n" and told[-2] == 200
    assert told[-1] >= 1 and not os.path.exists(folders[0])
    assert capsys.readouterr() == ("", "")
    assert handlers == [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
