"""The look of the web UI in Chromium, for each page and each error: no sideways scroll from 320 to 2560 pixels, no violation of
WCAG 2.2 that axe finds, light and dark; forced colours, print, keyboard only. The folder in NOCTULE_PICTURES receives pictures."""

import base64
import importlib.util
import os
import pathlib

import chromium
import pytest
from conftest import PEERS, daemons, drop, echoscu, phantom, put, released_only, wait_for
from test_decide import ALL, TOKENS, Deciding
from test_page import PAGES, busy_site
from test_report_night import about, small

WIDTHS = (2560, 1440, 1024, 768, 390, 320)
PAPER = 695  # pixels: A4 without its margins
AXE = importlib.util.find_spec("axe_playwright_python")  # its wheel contains axe-core
RULES = '{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}'
SCROLLS = """[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest(".hidden, .skip, .sprite")).map(e => e.outerHTML.slice(0, 120)).slice(0, 5)"""
# Words of tables that are broken over two lines; UIDs and paths may be.
BROKEN = """[...document.querySelectorAll("td:not(.uid), th")].flatMap(cell => {
    const found = [], walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walk.nextNode())
        for (const word of walk.currentNode.data.matchAll(/[A-Za-z0-9_]{2,24}/g)) {
            const range = new Range();
            range.setStart(walk.currentNode, word.index);
            range.setEnd(walk.currentNode, word.index + word[0].length);
            const tops = new Set([...range.getClientRects()].map(rect => rect.top));
            if (tops.size > 1 && !walk.currentNode.parentElement.closest(".long, .uid, code, dd, .hidden"))
                found.push(word[0]);
        }
    return found;
}).slice(0, 5)"""
SHOWN = "e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true}) && e.getClientRects().length > 0"
KANJI = "脳" * 64
PLACES = (*PAGES, "review?id={review}", "job?id={review}", "job?id={done}", "job?id={failed}", "series?uid={refused}",
          "cohort?of=brain-mr/Brain", "work?state=CANCELLED", "deliveries?state=WAITING", "arrivals", "quarantine", "login")
ERRORS = {"nothing": 404, "work?x=1": 400, "job?id=999": 404}

pytestmark = [released_only, pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")]


# ---- for tests of pages in Chromium -----------------------------------------------------------------------------------------------------


def wait_text(browser, words, what):
    browser.wait(f"document.readyState == 'complete' && document.body && document.body.innerText.includes({words!r})", what)


def open_page(browser, site, path, words):
    browser.call("Page.navigate", url=f"{site.origin}/{path}")
    wait_text(browser, words, words)


def log_in(browser, site, person):
    open_page(browser, site, "login", "Token")
    browser.evaluate(f"document.querySelector('#secret').value = {TOKENS[person]!r}; document.querySelector('.login button').click()")
    browser.wait("document.readyState == 'complete' && document.body && !location.pathname.endsWith('login')", "the first page")


def press(browser, key):
    codes = {"Tab": 9, "Enter": 13, "ArrowUp": 38, "ArrowDown": 40}
    text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
    code = codes.get(key, 0)
    browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


def set_view(browser, width, dark=False, height=900, media="", forced=False):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", media=media, features=[
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "forced-colors", "value": "active" if forced else "none"}])


def check_scroll(browser, what):
    width = browser.evaluate("innerWidth")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, (what, width, browser.evaluate(SCROLLS))


def check_axe(browser, what):
    if not AXE:
        return
    browser.evaluate((pathlib.Path(AXE.submodule_search_locations[0]) / "axe.min.js").read_text() + ";0")
    violations = browser.evaluate(f"axe.run({RULES}).then(r => r.violations.map(v => [v.id, v.nodes.map("
                                  "n => n.html.slice(0, 200) + ' ' + n.failureSummary).slice(0, 3)]))")
    assert not violations, (what, violations)


def take_picture(browser, name, width, dark=False, **others):
    if pictures := os.environ.get("NOCTULE_PICTURES"):
        name = "".join(c if c.isalnum() else "-" for c in name).strip("-") or "overview"
        set_view(browser, width, dark, min(browser.evaluate("document.documentElement.scrollHeight"), 4000), **others)
        browser.picture(pathlib.Path(pictures) / f"{name}-{width}{'-dark' if dark else ''}.png")


# ---- the pages --------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A site with something in each list. Otto is an operator of it."""
    folder = tmp_path_factory.mktemp("look")
    with daemons(folder) as daemon:
        site = busy_site(daemon, folder, lambda daemon, **others: Deciding(daemon, folder / "secrets", ALL, 600, **others), dicom=PEERS,
                         extra='identifiers = "plain";\n')
        d = site.daemon
        drop(about(small(folder / "kanji", 8), PatientID=KANJI, SeriesDescription="=HYPERLINK(\"http://x\")\u202etxet " + KANJI[:30]), d.inbox / "kanji")
        echoscu(d.port, calling="CT9", check=False)
        wait_for(lambda: d.query("SELECT 1 FROM v_callers"), 60, "the rejected caller")
        wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the job of the patient with a long number")
        d.ctl("hold", "--pipeline", "head-ct", "--reason", "the protocol changes")
        put(phantom(folder / "held", "--size", "32x32x8", "--seed", "9"), d.inbox / "held")
        wait_for(lambda: d.jobs("READY"), 60, "a held job")
        site.names = {state.lower(): d.jobs(state)[0]["job"] for state in ("REVIEW", "DONE", "FAILED")}
        (row,) = d.query("SELECT series_uid FROM v_series WHERE state = 'REFUSED'")
        site.names["refused"] = row["series_uid"]
        yield site


@pytest.fixture(scope="module")
def browser(busy, tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as browser:
        log_in(browser, busy, "otto")
        yield browser


def show(browser, site, path, status=200):
    """Opens a page, and asserts that the browser reports no error but that status."""
    browser.errors.clear()
    set_view(browser, 1440)
    address = f"{site.origin}/{path}"
    browser.call("Page.navigate", url=address)
    browser.wait(f"document.readyState == 'complete' && location.href.split('#')[0] == {address!r}", path)
    if browser.evaluate("!!document.querySelector('.viewer')"):
        browser.wait("document.querySelector('.viewer').dataset.shown", "the plane")
    assert not [error for error in browser.errors if f"status of {status}" not in error], (path, browser.errors)


def check_layout(browser, path):
    for width in WIDTHS:
        set_view(browser, width)
        check_scroll(browser, path)
        assert not browser.evaluate(BROKEN), (path, width, browser.evaluate(BROKEN))
        for dark in (False, True) if width in (1440, 390) else ():
            set_view(browser, width, dark)
            assert (int(browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")) < 60) == dark, path
            check_axe(browser, (path, width, dark))
            take_picture(browser, path, width, dark)


def check_forced_colours(browser, path):
    """Without backgrounds, the current page, pressed buttons and bars must still be told apart."""
    set_view(browser, 1440, forced=True)
    assert browser.evaluate("matchMedia('(forced-colors: active)').matches")
    flat = browser.evaluate("""[...document.querySelectorAll("button, .button, .chip, .pages a[aria-current], .chip[aria-current], input, select")]
        .filter(e => %s).filter(e => !["Top", "Bottom"].some(s => getComputedStyle(e)["border" + s + "Style"] != "none"
        && parseFloat(getComputedStyle(e)["border" + s + "Width"]) > 0) && !/checkbox|radio|range/.test(e.type)).map(e => e.outerHTML.slice(0, 120))"""
                            % SHOWN)
    assert not flat, (path, flat)
    same = browser.evaluate("""(() => { const fills = [...document.querySelectorAll(".legend rect")].map(e => e.parentNode.parentNode.parentNode
        .querySelectorAll("rect").length + getComputedStyle(e).fill + e.closest("figure").querySelector("svg.chart, svg.calendar").ariaLabel);
        return fills.filter((f, i) => fills.indexOf(f) != i); })()""")
    assert not same, (path, same)
    # The sign within a shape has the colour behind it, not that of the shape.
    signs = browser.evaluate("""[...document.querySelectorAll(".mark svg")].filter(e => %s).map(e => [getComputedStyle(e).color,
        getComputedStyle(document.querySelector("#i-done path:last-child")).stroke]).filter(([a, b]) => a == b)""" % SHOWN)
    assert not signs, (path, signs)
    take_picture(browser, f"forced {path}", 1440, forced=True)
    take_picture(browser, f"forced {path}", 1440, True, forced=True)


def check_print(browser, path):
    """On paper there is no navigation and no form, tables are whole, and the text is dark on white, also in dark mode."""
    set_view(browser, PAPER, True, media="print")
    check_scroll(browser, (path, "print"))
    left = browser.evaluate('[...document.querySelectorAll("header.bar, nav, form, .skip, .pager, .v-bar")].filter(e => %s)'
                            '.map(e => e.outerHTML.slice(0, 120))' % SHOWN)
    assert not left, (path, left)
    cut = browser.evaluate("""[...document.querySelectorAll("td, th, summary")].filter(e => %s && getComputedStyle(e).overflowX != "visible"
        && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 120))""" % SHOWN)
    assert not cut, (path, cut)
    rows = browser.evaluate("""[...document.querySelectorAll("table")].filter(e => %s && getComputedStyle(e).display != "table").length""" % SHOWN)
    assert not rows, path
    pale = browser.evaluate("""[...document.querySelectorAll("main *")].filter(e => %s && !e.closest("svg, canvas, .v-stage")
        && [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())).filter(e => { const [r, g, b] = getComputedStyle(e).color.match(/[\\d.]+/g)
        .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) < 4.5; }).map(e => e.outerHTML.slice(0, 120))""" % SHOWN)
    assert not pale, (path, pale)
    plain = browser.evaluate("""[...document.querySelectorAll("main p a, main td a")].filter(e => %s && !e.closest("svg")
        && getComputedStyle(e).textDecorationLine != "underline").map(e => e.outerHTML.slice(0, 120))""" % SHOWN)
    assert not plain, (path, plain)
    paper = base64.b64decode(browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    assert paper.startswith(b"%PDF") and len(paper) > 5000
    take_picture(browser, f"print {path}", PAPER, media="print")


def check_keyboard(browser, path):
    """Tab reaches each control and shows where it is, not below the bar; the first one skips to the content."""
    set_view(browser, 1440)
    browser.evaluate("""document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0);
        window.controls = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
            .filter(e => %s || e.matches(".skip")); window.reached = new Set(); window.unseen = [];
        window.arrive = () => { const e = document.activeElement, at = controls.indexOf(e), style = getComputedStyle(e);
            if (at < 0) return at;
            const rect = e.getBoundingClientRect(), bar = document.querySelector(".bar").getBoundingClientRect();
            if (style.outlineStyle == "none" || parseFloat(style.outlineWidth) < 2 || rect.top < -1 && rect.height < innerHeight || rect.top > innerHeight
                || rect.bottom <= bar.bottom && !e.closest(".bar, .skip")) unseen.push(e.outerHTML.slice(0, 120) + JSON.stringify(rect));
            reached.add(at); return at; }; 0""" % SHOWN)
    count = browser.evaluate("controls.length")
    for _ in range(count + 5):
        press(browser, "Tab")
        browser.evaluate("arrive()")
        if browser.evaluate("reached.size") == count:
            break
    missed = browser.evaluate("controls.filter((e, i) => !reached.has(i)).map(e => e.outerHTML.slice(0, 160))")
    assert not missed, (path, missed)
    assert not browser.evaluate("unseen"), (path, browser.evaluate("unseen"))
    if path == "":
        browser.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        browser.evaluate("document.querySelector('.skip').focus()")
        assert browser.evaluate("document.querySelector('.skip').getBoundingClientRect().top") >= 0
        press(browser, "Enter")
        browser.wait("document.activeElement.id == 'content'", "the content after the skip link")


@pytest.mark.parametrize("path", PLACES)
def test_a_page(busy, browser, path):
    path = path.format(**busy.names)
    show(browser, busy, path)
    check_layout(browser, path)
    check_forced_colours(browser, path)
    check_print(browser, path)
    show(browser, busy, path)  # the tab order begins at the top
    check_keyboard(browser, path)


def test_the_search(busy, browser):
    """Its text is in the body of a form."""
    show(browser, busy, "")
    browser.evaluate("document.getElementById('q').value = '1'; document.querySelector('form.find').submit()")
    browser.wait("document.readyState == 'complete' && location.pathname == '/search' && document.title.startsWith('Search') "
                 "&& document.body.innerText.includes('Job 1')", "search")
    check_layout(browser, "search")


@pytest.mark.parametrize("path", ERRORS)
def test_an_error(busy, browser, path):
    show(browser, busy, path, ERRORS[path])
    assert browser.evaluate("!!document.querySelector('.bar .service') && document.querySelector('.you').innerText") == "otto (operator)"
    check_layout(browser, path)


def test_without_a_login(busy, browser):
    """The refusal of a page without a login has a link to it."""
    cookies = browser.call("Network.getCookies", urls=[busy.origin])["cookies"]
    browser.call("Network.clearBrowserCookies")
    show(browser, busy, "review", 401)
    check_layout(browser, "refused review")
    has_login = browser.evaluate("!!document.querySelector('main a[href=\"login\"]')")
    for cookie in cookies:
        browser.call("Network.setCookie", **{name: cookie[name] for name in ("name", "value", "domain", "path", "httpOnly", "secure")})
    assert has_login


def test_foreign_texts_are_shown_as_texts(busy, browser):
    """A patient's number of 64 kanji is whole; the override of the direction is not in effect; no element is made of a text."""
    show(browser, busy, "work")
    assert KANJI in browser.evaluate("document.body.textContent")
    assert not browser.evaluate("document.body.textContent.includes('\\u202e')")
    assert browser.evaluate("document.querySelectorAll('script').length") == 0
    assert browser.evaluate("document.body.textContent.includes('=HYPERLINK(\"http://x\")')")
