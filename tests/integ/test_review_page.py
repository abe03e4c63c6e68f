"""The Review page in Chromium: a reviewer logs in, decides by keyboard, undoes; without scripts the forms do the same; no
violation of WCAG 2.2 that axe finds. The folder in NOCTULE_PICTURES receives pictures."""

import os
import pathlib

import chromium
import pytest
from conftest import drop, released_only, wait_for
from test_decide import TOKENS, Deciding, audit
from test_deliveries import destinations, to_folder
from test_page_look import AXE, RULES, SCROLLS
from test_review import expecting, small, under_review, wait_review

pytestmark = [released_only, pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")]
RESULTS = 4


@pytest.fixture
def site(daemon, tmp_path):
    site = Deciding(daemon, tmp_path / "secrets", undo=600, quiet=600.0, pipeline_extra='deliver = [ "OUT" ];',
                    extra=destinations(to_folder(tmp_path / "out")))
    expecting(site.daemon)
    site.start()
    for seed in range(1, RESULTS + 1):
        drop(small(tmp_path / str(seed), seed), site.daemon.inbox / str(seed))
        wait_review(site.daemon, seed)
    return site


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
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")


def shown(browser):
    return browser.evaluate("document.querySelector('.result h2').textContent")


def test_by_keyboard(site, tmp_path):
    d = site.daemon
    with chromium.Browser(tmp_path / "profile") as browser:
        log_in(browser, site, "rita")
        open_page(browser, site, "review", "1 of 4")
        assert shown(browser).startswith("Job 1,") and "expected 1200 to 1900 ml" in browser.evaluate("document.body.innerText")
        press(browser, "j")
        wait_text(browser, "2 of 4", "the next one")
        press(browser, "k")
        wait_text(browser, "1 of 4", "the one before")
        press(browser, "a")
        wait_text(browser, "1 of 3", "the next one after the decision")
        assert shown(browser).startswith("Job 2,") and "rita accepted it" in browser.evaluate("document.body.innerText")
        assert [row["decision"] for row in under_review(d)] == ["accept", "", "", ""]
        # No key is taken while a reason is typed.
        press(browser, "r")
        assert browser.evaluate("document.activeElement.id") == "reason"
        for key in "jaka":
            press(browser, key)
        assert browser.evaluate("document.activeElement.value") == "jaka" and shown(browser).startswith("Job 2,")
        browser.evaluate("document.querySelector('button.no').click()")
        wait_text(browser, "1 of 2", "the next one after the rejection")
        assert [(row["action"], row["job"], row["reason"]) for row in audit(d)] == [("accept", 1, ""), ("reject", 2, "jaka")]
        # Undo by its button.
        browser.evaluate("document.querySelector('.undo form button').click()")
        wait_text(browser, "of 3", "the undone one")
        assert under_review(d)[0]["decision"] == ""
        # Keys can be switched off, also for later pages.
        browser.evaluate("document.querySelector('.keys input').click()")
        open_page(browser, site, "review", "1 of 3")
        press(browser, "a")
        press(browser, "j")
        assert browser.evaluate("!document.querySelector('.keys input').checked")
        assert shown(browser).startswith("Job 1,"), browser.evaluate("location.href + document.body.innerText")
        assert len(audit(d)) == 3
        assert not browser.errors, browser.errors


def test_two_reviewers_and_no_scripts(site, tmp_path):
    d = site.daemon
    with chromium.Browser(tmp_path / "profile") as browser:
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        log_in(browser, site, "rita")
        open_page(browser, site, "review", "1 of 4")
        assert site.post("otto", action="reject", subject="job 1", reason="motion").status == 200
        browser.evaluate("document.querySelector('button.yes').click()")
        wait_text(browser, "otto rejected it", "the name of the first reviewer")
        open_page(browser, site, "review?id=2", "1 of 3")
        browser.evaluate("document.querySelector('button.yes').click()")
        wait_for(lambda: [row["decision"] for row in under_review(d)] == ["reject", "accept", "", ""], 60, "the decision")


@pytest.mark.skipif(not AXE, reason="axe is not here")
def test_no_barrier_and_no_sideways_scroll(site, tmp_path):
    axe = (pathlib.Path(AXE.submodule_search_locations[0]) / "axe.min.js").read_text()
    site.post("rita", action="accept", subject="job 1")
    with chromium.Browser(tmp_path / "profile") as browser:
        open_page(browser, site, "login", "Token")
        pages = [("login", "Token")]
        for person, paths in ((None, pages), ("otto", [("review", "1 of 3"), ("", "Alerts"), ("deliveries", "OUT")])):
            if person:
                log_in(browser, site, person)
            for (path, words), width, dark in ((page, width, dark) for page in paths for width in (1440, 390) for dark in (False, True)):
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
                open_page(browser, site, path, words)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, (path, width, browser.evaluate(SCROLLS))
                browser.evaluate(axe + ";0")
                violations = browser.evaluate(f"axe.run({RULES}).then(r => r.violations.map(v => [v.id, v.nodes.map("
                                              "n => n.html.slice(0, 200) + ' ' + n.failureSummary).slice(0, 3)]))")
                assert not violations, (path, width, dark, violations)
                if pictures := os.environ.get("NOCTULE_PICTURES"):
                    browser.picture(pathlib.Path(pictures) / f"decide-{path.split('?')[0] or 'overview'}-{width}{'-dark' if dark else ''}.png")
