"""The look of the web UI in Chromium: no sideways scroll from 320 to 2560 pixels, and no violation of WCAG 2.2 that axe finds,
light and dark. The folder in NOCTULE_PICTURES receives a picture of each page."""

import importlib.util
import os
import pathlib

import chromium
import pytest
from conftest import PEERS, daemons, echoscu, phantom, put, released_only, wait_for
from test_page import PAGES, busy_site

WIDTHS = (320, 390, 768, 1440, 2560)
AXE = importlib.util.find_spec("axe_playwright_python")  # its wheel contains axe-core
RULES = '{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}'
SCROLLS = """[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest(".hidden, .skip, .sprite")).map(e => e.outerHTML.slice(0, 120)).slice(0, 5)"""

pytestmark = [released_only, pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")]


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A site with something in each list."""
    folder = tmp_path_factory.mktemp("look")
    with daemons(folder) as daemon:
        site = busy_site(daemon, folder, dicom=PEERS)
        d = site.daemon
        echoscu(d.port, calling="CT9", check=False)
        wait_for(lambda: d.query("SELECT 1 FROM v_callers"), 60, "the rejected caller")
        d.ctl("hold", "--pipeline", "head-ct", "--reason", "the protocol changes")
        put(phantom(folder / "held", "--size", "32x32x8", "--seed", "9"), d.inbox / "held")
        wait_for(lambda: d.jobs("READY"), 60, "a held job")
        yield site


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def show(browser, site, path, width=1440, dark=False):
    """Opens a page, and asserts that the browser reports no error."""
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    address = f"http://127.0.0.1:{site.port}/{path}"
    browser.call("Page.navigate", url=address)
    browser.wait(f"document.readyState == 'complete' && location.href.split('#')[0] == {address!r}", path)
    assert not browser.errors, (path, browser.errors)
    if pictures := os.environ.get("NOCTULE_PICTURES"):
        name = "".join(c if c.isalnum() else "-" for c in path) or "overview"
        height = min(browser.evaluate("document.documentElement.scrollHeight"), 4000)
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        browser.picture(pathlib.Path(pictures) / f"{name}-{width}{'-dark' if dark else ''}.png")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(busy, browser, width):
    for path in (*PAGES, "job?id=1"):
        show(browser, busy, path, width)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, (path, browser.evaluate(SCROLLS))
    browser.evaluate("document.getElementById('q').value = '1'; document.querySelector('form.find').submit()")
    browser.wait("document.readyState == 'complete' && location.pathname == '/search' && document.title.startsWith('Search') "
                 "&& document.body.innerText.includes('Job 1')", "search")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, browser.evaluate(SCROLLS)


@pytest.mark.skipif(not AXE, reason="axe is not here")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_page_has_a_barrier(busy, browser, width, dark):
    axe = (pathlib.Path(AXE.submodule_search_locations[0]) / "axe.min.js").read_text()
    for path in (*PAGES, "job?id=1"):
        show(browser, busy, path, width, dark)
        browser.evaluate(axe + ";0")
        violations = browser.evaluate(f"axe.run({RULES}).then(r => r.violations.map(v => [v.id, v.nodes.map("
                                      "n => n.html.slice(0, 200) + ' ' + n.failureSummary).slice(0, 3)]))")
        assert not violations, (path, violations)
