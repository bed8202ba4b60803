"""A headless Chromium of its own, without a network: for tests of the page and its screenshots."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

PHONE, DESK = 390, 1280
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
_IS_DRAWN = """
const figures = document.getElementById("figures");
return document.body.dataset.drawn === "yes"
  || !figures || !Object.keys(JSON.parse(figures.textContent)).length;
"""
_DRAWING = 60  # seconds, on a machine that has other things to do


def missing() -> str | None:
    """Why there is no browser to test with; None if there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program}"
    return None


class Page:
    """An opened page, and what the browser said and asked for while it was opened."""

    def __init__(self, chrome: Chrome) -> None:
        self._chrome = chrome

    def open(self, file: Path, *, width: int, dark: bool, height: int = 900) -> None:
        """Show a file and wait for its pictures."""
        self._command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=width == PHONE)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[scheme])
        self._chrome.get(file.resolve().as_uri())
        WebDriverWait(self._chrome, _DRAWING).until(lambda _: self.run(_IS_DRAWN))

    def run(self, script: str) -> Any:
        """What a piece of JavaScript returns."""
        return self._chrome.execute_script(script)

    def complaints(self) -> list[str]:
        """What the console has said since the last call."""
        return [str(entry["message"]) for entry in self._chrome.get_log("browser")]  # type: ignore[no-untyped-call] # selenium's

    def requests(self) -> list[str]:
        """The addresses asked for since the last call."""
        log = self._chrome.get_log("performance")  # type: ignore[no-untyped-call] # selenium's
        events = (json.loads(entry["message"])["message"] for entry in log)
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, *, width: int, height: int) -> bytes:
        """The page's top as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self._command("Page.captureScreenshot", format="png", clip=clip,
                             captureBeyondViewport=True)  # fmt: skip
        return base64.b64decode(shot["data"])

    def _command(self, name: str, **parameters: object) -> Any:
        return self._chrome.execute_cdp_cmd(name, parameters)


@contextmanager
def chromium() -> Iterator[Page]:
    """Ended with all that it started; nothing of it stays."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program is not None
    assert driver is not None
    # Otherwise selenium looks for a newer driver on the network.
    os.environ |= {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = program
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        chrome = Chrome(options=options, service=Service(driver))
        try:
            chrome.get("about:blank")
            page = Page(chrome)
            page.requests()  # of the page that it began with
            yield page
        finally:
            chrome.quit()
