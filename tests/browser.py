"""A browser for the tests of pages, on a machine without a network too."""

import contextlib
import os
import pathlib
import shutil
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OFFLINE = ["--disable-background-networking", "--disable-quic", "--disable-gpu", "--no-first-run"]
LOCAL = ("127.0.0.1", "localhost", "::1", None)  # None: data:, blob: and file:


@contextlib.contextmanager
def chromium():
    """Yields Chromium, a playwright `Browser`; skips the test where there is none, and says why."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        found = [path for path in map(shutil.which, NAMES) if path]
        own = pathlib.Path(playwright.chromium.executable_path)  # of `playwright install chromium`
        path = found[0] if found else str(own) if own.exists() else pytest.skip("Chromium is not installed")
        environment = {name: value for name, value in os.environ.items() if name != "VK_DRIVER_FILES"}  # its own driver
        browser = playwright.chromium.launch(executable_path=path, args=OFFLINE, env=environment)
        try:
            yield browser
        finally:
            browser.close()


def watched(browser, width=1280, height=900, scheme="light"):
    """Returns a new page, and a list that fills with what went wrong in it: errors, and requests to other machines."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    wrong = []
    page.on("console", lambda message: message.type == "error" and wrong.append(f"{message.text} {message.location}"))
    page.on("pageerror", lambda error: wrong.append(f"uncaught: {error}"))
    page.on("request", lambda request: urlsplit(request.url).hostname in LOCAL or wrong.append(f"asked {request.url}"))
    return page, wrong
