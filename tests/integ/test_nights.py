"""The end of a report period: its row in v_nights, and its report passed to a command of the site."""

import datetime
import html.parser
import os
import pathlib

import pytest
from conftest import Clock, drop, phantom, run_program, wait_for

HOUR = 3600

# Keeps its input. A growing text is renamed into place.
KEEPS = """cat > "$KEPT/text.part"; cp "$NOCTULE_REPORT_HTML" "$KEPT/page.html"; echo "$NOCTULE_REPORT_SUBJECT" > "$KEPT/subject"
echo "$NOCTULE_REPORT_ATTENTION" > "$KEPT/attention"; echo x >> "$KEPT/runs"; mv "$KEPT/text.part" "$KEPT/text\""""


def script(folder, text):
    path = pathlib.Path(folder, "command.sh")
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def report_at(zone_time, command=None, timeout=60):
    command = f'command = "{command}"; ' if command else ""
    return f'report = {{ at = "{zone_time}"; {command}timeout_seconds = {timeout}; }};\n'


def periods(d):
    return d.query("SELECT * FROM v_nights ORDER BY until_at")


@pytest.fixture
def kept(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


def started(daemon, tmp_path, kept, text, **options):
    """A daemon with a report period that ends in two hours, with a clock that a test can set, in UTC."""
    clock = Clock(tmp_path)
    at = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=2)).strftime("%H:%M")
    d = daemon(quiet=600.0, environment={**clock.environment, "TZ": "UTC", "KEPT": str(kept)},
               extra=report_at(at, script(tmp_path, text) if text else None, **options))
    return d.start(), clock


def test_a_period_is_counted_and_passed_on_once(daemon, tmp_path, kept):
    d, clock = started(daemon, tmp_path, kept, KEEPS)
    drop(phantom(tmp_path / "ct", "--size", "32x32x6"), d.inbox)
    drop(phantom(tmp_path / "mr", "--kind", "mr-brain", "--size", "32x32x6", "--seed", "3"), d.inbox / "mr")
    d.wait_jobs()
    wait_for(lambda: len(d.query("SELECT 1 FROM v_series WHERE state = 'SETTLED'")) == 2, 60, "the series")
    assert periods(d) == []  # the first period starts with the service
    clock.jump(2 * HOUR + 60)
    (night,) = wait_for(lambda: [row for row in periods(d) if row["report"] == "DONE"], 60, "the report")
    files = list((tmp_path / "ct").rglob("*.dcm")) + list((tmp_path / "mr").rglob("*.dcm"))
    assert (night["series_settled"], night["series_refused"], night["series_without_rule"]) == (2, 0, 1)
    assert (night["instances"], night["bytes"]) == (12, sum(path.stat().st_size for path in files))
    assert (night["jobs_done"], night["jobs_failed"], night["delivered"], night["quarantined"]) == (1, 0, 0, 0)
    assert 0 < night["compute_seconds"] <= night["busy_seconds"] and night["result_bytes"] > 0
    assert night["night"] == night["until_at"][:10] and night["until_at"].endswith(":00.000Z")
    (first,) = d.query("SELECT min(at) AS at FROM v_events")
    assert night["since_at"] == first["at"]

    text = (kept / "text").read_text()
    assert text.startswith("Noctule, ") and "2 complete" in text and "1 done" in text
    page = (kept / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and html.parser.HTMLParser().feed(page) is None
    assert (kept / "subject").read_text().startswith(f"Noctule on {os.uname().nodename}, {night['since_at'][:10]} ")
    assert (kept / "attention").read_text() == "0\n" and (kept / "runs").read_text() == "x\n"

    # The next period begins at the end of the last. The clock goes back a little, and no event is counted twice.
    clock.jump(-120)
    d.wait_log("clock.set", 2)
    clock.jump(24 * HOUR + 120)
    second = wait_for(lambda: periods(d)[1:], 60, "the second night")[0]
    assert second["since_at"] == night["until_at"] and second["series_settled"] == 0
    wait_for(lambda: (kept / "runs").read_text() == "x\nx\n", 60, "the second report")


def test_missed_periods_are_reported_once(daemon, tmp_path, kept):
    d, clock = started(daemon, tmp_path, kept, KEEPS)
    assert d.stop() == 0
    clock.jump(3 * 24 * HOUR)
    d.start()
    (night,) = wait_for(lambda: [row for row in periods(d) if row["report"] == "DONE"], 60, "the report")
    assert night["since_at"][:10] < night["until_at"][:10]
    assert (kept / "runs").read_text() == "x\n"
    d.stop()
    d.start()
    d.stop()
    assert len(periods(d)) == 1 and (kept / "runs").read_text() == "x\n"


def test_a_failed_command_is_alerted_and_not_repeated(daemon, tmp_path, kept):
    d, clock = started(daemon, tmp_path, kept, 'echo "mail: no route to relay" >&2; echo x >> "$KEPT/runs"; exit 75')
    clock.jump(2 * HOUR + 60)
    (night,) = wait_for(lambda: [row for row in periods(d) if row["report"] == "FAILED"], 60, "the failure")
    said = "mail: no route to relay; noctule: report.command failed with exit status 75"
    assert night["report_message"] == said
    (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'REPORT_FAILED'")
    assert event["detail"] == said
    checked = d.ctl("status", "--check", check=False)
    assert checked.returncode == 1 and "NOCTULE WARNING: report: the report of the night to " in checked.stdout and f"was not handed over ({said})" in checked.stdout
    # By hand, which reports the same error, and again after the command is repaired.
    for text, status, runs in ((None, 1, 2), (KEEPS, 0, 3)):
        if text:
            script(tmp_path, text)
        done = run_program("noctule", "--config", d.config, "report", "--send", env=d.environment, check=False)
        assert done.returncode == status and len((kept / "runs").read_text().split()) == runs
        assert done.stdout == "" and (status == 0) == (done.stderr == "")
    assert (kept / "attention").read_text() == "1\n" and "An operator must act." in (kept / "text").read_text()
    assert [row["report"] for row in periods(d)] == ["FAILED"]
    assert d.ctl("report", "--send", "--json", check=False).returncode == 2


def test_a_hanging_command_is_killed_with_its_children(daemon, tmp_path, kept):
    d, clock = started(daemon, tmp_path, kept, 'trap "" TERM; echo $$ > "$KEPT/pid"; sleep 1000 & sleep 1000', timeout=2)
    clock.jump(2 * HOUR + 60)
    begun = wait_for(lambda: (kept / "pid").exists() and (kept / "pid").read_text().strip(), 60, "the command")
    assert d.ctl("ping").returncode == 0  # the daemon answers meanwhile

    def failed():
        clock.pass_time(1)  # the timeout, and the wait from SIGTERM to SIGKILL
        return [row for row in periods(d) if row["report"] == "FAILED"]

    (night,) = wait_for(failed, 60, "the end")
    assert "took longer than report.timeout_seconds (2 s)" in night["report_message"]
    wait_for(lambda: not pathlib.Path("/proc", begun).exists(), 60, "its end")


def test_an_interrupted_command_runs_again_after_a_restart(daemon, tmp_path, kept):
    d, clock = started(daemon, tmp_path, kept, 'echo $$ > "$KEPT/pid"; exec sleep 1000')
    clock.jump(2 * HOUR + 60)
    begun = wait_for(lambda: (kept / "pid").exists() and (kept / "pid").read_text().strip(), 60, "the command")
    assert d.stop() == 0
    wait_for(lambda: not pathlib.Path("/proc", begun).exists(), 60, "its end")
    assert [row["report"] for row in periods(d)] == ["PENDING"]
    script(tmp_path, KEEPS)
    d.start()
    wait_for(lambda: [row["report"] for row in periods(d)] == ["DONE"], 60, "the report")


def test_periods_are_counted_without_a_command(daemon, tmp_path, kept):
    d, clock = started(daemon, tmp_path, kept, None)
    clock.jump(2 * HOUR + 60)
    (night,) = wait_for(lambda: periods(d), 60, "the night")
    assert night["report"] == "" and night["report_at"] is None
    done = d.ctl("report", "--send", check=False)
    assert done.returncode == 5 and "--send needs report.command in the configuration" in done.stderr


def test_a_period_ends_by_local_time(daemon, tmp_path, kept):
    """07:00 in Apia is another time than 07:00 UTC, with another date."""
    clock = Clock(tmp_path)
    here = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=13 + 2)
    d = daemon(quiet=600.0, environment={**clock.environment, "TZ": "XST-13"}, extra=report_at(here.strftime("%H:%M")))
    d.start()
    clock.jump(2 * HOUR + 60)
    (night,) = wait_for(lambda: periods(d), 60, "the night")
    assert night["night"] == here.strftime("%Y-%m-%d")
    assert night["until_at"] == (here - datetime.timedelta(hours=13)).strftime("%Y-%m-%dT%H:%M:00.000Z")
