"""A real browser before a real gateway with its console, which is a process of its own: NiceGUI allows one each."""

import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.testing.cluster import Cluster

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCREENSHOTS = Path(__file__).parents[2] / "docs/console"
_START_S = 60.0
WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}


def pytest_collection_modifyitems(items):
    """Mark everything here, and skip it where it cannot run."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.slow)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium here (apt-get install chromium)"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where a page was and what it said when its test failed: a browser's timeout tells neither."""
    report = yield
    if report.when == "call" and report.failed:
        for name in ("tab", "phone"):
            if name in getattr(item, "funcargs", {}):
                report.sections.append((f"what the {name} showed", item.funcargs[name].state()))
    return report


@pytest.fixture(scope="session")
def broker():
    """One broker for all pages."""
    with Cluster() as cluster:
        yield cluster


@contextlib.contextmanager
def console_before(bootstrap):
    """The address of a console of one's own, served by `headrace gateway`."""
    settings = ["history.interval.ms=500", "history.minutes=1", "listeners=http://127.0.0.1:0"]
    arguments = [word for setting in settings for word in ("--set", setting)]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "gateway", "--bootstrap-server", bootstrap, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    try:
        yield f"{_address(process)}/console"
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.fixture(scope="session")
def console(broker):
    """The console that all tests share."""
    with console_before(broker.bootstrap) as address:
        yield address


def _address(process):
    ready, _, _ = select.select([process.stdout], [], [], _START_S)
    line = process.stdout.readline() if ready else ""
    found = re.search(r"http://\S+", line)
    assert found, f"the gateway did not start: {line!r}, exit code {process.poll()}"
    return found[0]


@pytest.fixture(scope="module")
def browser():
    """One Chromium for a file of tests: as long as it is there, asyncio.run does not work in this thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


class Tab:
    """A page in the browser, with everything it complained of."""

    def __init__(self, page, console):
        self.page = page
        self.complaints = []
        self._console = console
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._check_host)

    def _check_host(self, request):
        if not request.url.startswith((self._console.removesuffix("/console"), "data:", "blob:", "ws:")):
            self.complaints.append(f"asked another host: {request.url}")

    def open(self, path):
        """Go to a page of the console, and wait until it has what it asked for."""
        self.page.goto(f"{self._console}{path}")
        self.page.wait_for_selector("main h1")
        self.page.wait_for_selector(".hr-loading", state="detached")
        return self.page

    @property
    def url(self):
        """Where the page is now; asked of the page itself, which changes its address without going anywhere."""
        return self.page.evaluate("location.href")

    def still(self):
        """Wait until nothing moves: a button that slides away between press and release is not clicked."""
        self.page.wait_for_function(
            """() => document.getAnimations().every(
                (one) => one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity)"""
        )

    def state(self):
        """The address and the words of the page, for somebody who asks why a test failed."""
        try:
            return f"{self.url}\n{self.page.inner_text('body', timeout=2_000)}\n{self.complaints}"
        except Exception as error:  # noqa: BLE001  (it is told instead of the page)
            return f"the page does not answer: {error}"

    def shot(self, name):
        """Keep a picture for the documentation, if they are being made; a name with .jpg is for what has no edges."""
        if os.environ.get("HEADRACE_SCREENSHOTS"):
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.page.mouse.move(4, 600)
            self.page.wait_for_selector(".q-tooltip", state="detached")
            form = {"path": SCREENSHOTS / name, "type": "jpeg", "quality": 80} if name.endswith(".jpg") else {}
            self.page.screenshot(**{"path": SCREENSHOTS / f"{name}.png", **form}, animations="disabled")


@contextlib.contextmanager
def tab_of(browser, console, size):
    """A fresh tab; it fails if the page complained of anything or asked another host."""
    context = browser.new_context(viewport=size, color_scheme="light", locale="en-GB", has_touch=size is PHONE)
    context.set_default_timeout(40_000)
    tab = Tab(context.new_page(), console)
    yield tab
    context.close()
    assert tab.complaints == []


@pytest.fixture
def tab(browser, console):
    """A fresh tab on a desk."""
    with tab_of(browser, console, WIDE) as tab:
        yield tab


@pytest.fixture
def phone(browser, console):
    """A fresh tab, at a phone's width."""
    with tab_of(browser, console, PHONE) as tab:
        yield tab


@pytest.fixture
def own_tab(browser):
    """Opens a tab on a console that only this test has, before a cluster of its own."""
    with contextlib.ExitStack() as stack:

        def opened(bootstrap):
            return stack.enter_context(tab_of(browser, stack.enter_context(console_before(bootstrap)), WIDE))

        yield opened


@pytest.fixture
def eventually():
    """Asks again until the answer is yes, or a deadline has passed."""

    def ask(question, timeout_s=40.0):
        deadline = time.monotonic() + timeout_s
        while not question():
            assert time.monotonic() < deadline, "it did not become true in time"
            time.sleep(0.02)

    return ask
