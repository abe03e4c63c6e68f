"""The Review page in Chromium: a reviewer logs in, decides by keyboard, undoes, twenty results within four minutes; without
scripts the forms do the same."""

import time

import chromium
import pytest
from conftest import drop, released_only, wait_for
from test_decide import Deciding, audit
from test_deliveries import destinations, to_folder
from test_page_look import log_in, open_page, press, wait_text
from test_review import expecting, small, under_review, wait_review

pytestmark = [released_only, pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")]
RESULTS = 4


@pytest.fixture
def site(daemon, tmp_path):
    return site_with(daemon, tmp_path, RESULTS)


def site_with(daemon, tmp_path, results):
    site = Deciding(daemon, tmp_path / "secrets", undo=600, quiet=600.0, pipeline_extra='deliver = [ "OUT" ];',
                    extra=destinations(to_folder(tmp_path / "out")))
    expecting(site.daemon)
    site.start()
    for seed in range(1, results + 1):
        drop(small(tmp_path / str(seed), seed), site.daemon.inbox / str(seed))
        wait_review(site.daemon, seed)
    return site


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
        # On a busy machine the planes of the pages before still have the seats; the viewer asks again.
        assert not [error for error in browser.errors if not (" 429 " in error and "/planes" in error)], browser.errors


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


MANY = 20
LOOK, SLICE, KEY = 8.0, 0.3, 0.2  # seconds of a person: at a result, per slice, per letter of a reason
MINUTES = 4.0


def test_twenty_results_by_keyboard(daemon, tmp_path):
    """A reviewer looks at each result for 8 s, at three other slices, and rejects each fifth with a reason. The time that the
    pages need comes on top of the pauses of the person, which are counted and not waited for."""
    site = site_with(daemon, tmp_path, MANY)
    d = site.daemon
    person = waited = 0.0
    jobs = [row["job"] for row in under_review(d)]
    with chromium.Browser(tmp_path / "profile") as browser:
        log_in(browser, site, "rita")
        open_page(browser, site, "review", f"1 of {MANY}")
        for done, job in enumerate(jobs):
            begun = time.monotonic()
            wait_text(browser, f"1 of {MANY - done}", f"result {done + 1}")
            assert shown(browser).startswith(f"Job {job},")
            browser.wait("document.querySelector('.viewer').dataset.shown", "its slice")
            before = browser.evaluate("document.querySelector('.viewer').dataset.shown")
            press(browser, "ArrowDown")
            browser.wait(f"document.querySelector('.viewer').dataset.shown != {before!r}", "another slice")
            press(browser, "ArrowUp")
            press(browser, "ArrowUp")
            person += LOOK + 3 * SLICE
            if done == MANY // 2:  # a colleague is faster here
                assert site.post("otto", action="accept", subject=f"job {job}").status == 200
                press(browser, "a")
                wait_text(browser, "otto accepted it", "the name of the colleague")
                open_page(browser, site, "review", f"1 of {MANY - done - 1}")
            elif done % 5 == 4:
                press(browser, "r")
                browser.wait("document.activeElement.id == 'reason'", "the field of the reason")
                for letter in "jaka":  # each is a key of the page elsewhere
                    press(browser, letter)
                    person += KEY
                press(browser, "Enter")
            else:
                press(browser, "a")
            person += KEY
            waited += time.monotonic() - begun
        wait_text(browser, "No result is under review", "the end of the list")
        assert not [error for error in browser.errors if "status of 409" not in error], browser.errors
    print(f"20 results: {person:.0f} s of the person, {waited:.1f} s of the browser and the service")
    rows = audit(d)
    assert [(row["action"], row["job"], row["actor"]) for row in rows] == [
        ("accept" if done == MANY // 2 or done % 5 != 4 else "reject", job, "otto" if done == MANY // 2 else "rita")
        for done, job in enumerate(jobs)]
    assert {row["reason"] for row in rows if row["action"] == "reject"} == {"jaka"}
    assert len({row["seen"] for row in rows if row["actor"] == "rita"}) >= 1 and all(row["seen"] for row in rows if row["actor"] == "rita")
    assert person < MINUTES * 60
