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


def faint(page, least=4.5):
    """Returns `(contrast, text, classes)` of what is written on a page with less contrast (WCAG 2) than `least`.

    Colors are computed ones; grounds are those of the nearest element around that has one. Letters of
    24 pixels need two thirds of it. Text on pictures is left out, and what is hidden or disabled.
    """
    return page.evaluate(FAINT, least)


FAINT = """least => {
  const parts = text => (text.match(/[\\d.]+%?/g) || [0, 0, 0, 0]).map(Number);
  const color = text => {
    const found = parts(text), scale = text.startsWith("color(") ? 255 : 1;
    return [...found.slice(0, 3).map(part => part * scale), found.length > 3 ? found[3] : 1];
  };
  const over = (above, below) => [0, 1, 2].map(i => above[i] * above[3] + below[i] * (1 - above[3]));
  const light = rgb => rgb.map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const around = element => element ? [element, ...around(element.parentElement)] : [];
  const ground = element => around(element).map(one => color(getComputedStyle(one).backgroundColor))
    .reduceRight((below, above) => over(above, below), matchMedia("(prefers-color-scheme: dark)").matches ?
      [20, 22, 26] : [255, 255, 255]);
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data).join("").trim();
    const text = own || (element.matches("textarea, input[type=text], input[type=number]") ? element.value : "");
    if (!text || element.closest("svg, script, style, [disabled]")) continue;
    if (!element.checkVisibility({ checkOpacity: true })) continue;
    const style = getComputedStyle(element), shown = color(style.color), below = ground(element);
    shown[3] *= around(element).reduce((all, one) => all * Number(getComputedStyle(one).opacity), 1);
    const values = [light(over(shown, below)), light(below)].sort((a, b) => a - b);
    const contrast = (values[1] + 0.05) / (values[0] + 0.05);
    const enough = parseFloat(style.fontSize) < 24 ? least : least * 2 / 3;
    if (contrast < enough) found.push([contrast, text.slice(0, 60), String(element.className).slice(0, 80)]);
  }
  return found;
}"""
