"""noctule pull: requests outside their window, cancelled requests, removed sources, and crashes at each step."""

import stat
import time

import pytest
from conftest import wait_for
from pynetdicom import build_context
from test_pull import (CALLERS, FIRST, SECOND, Archive, assert_hidden, forever, items, pull, pulling, source, start, stored, study,
                       accession_store, wait_ended, wait_store_empty)  # noqa: F401, the fixture
from test_query import CANCELLED, PENDING


def closed_window():
    """A window of half an hour, twelve hours from now."""
    hour = (time.localtime().tm_hour + 12) % 24
    return f'"{hour:02}:00-{hour:02}:30"'


def test_outside_its_window_no_request_is_sent(daemon, study):
    window = f"window = {closed_window()};"
    with Archive(study[0]) as archive, Archive(study[0]) as other:
        d = daemon(quiet=600.0, dicom=CALLERS, extra=pulling(source(archive.port, "LIAR").replace("}", window + "}"),
                                                             source(other.port, "LIAR", "OTHER")))
        archive.destination = other.destination = d.port
        d.start()
        pull(d, "PACS", "--accession", FIRST)
        assert "PACS: retrieval starts at" in d.ctl("pull").stdout
        file, = accession_store(d)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and FIRST in file.read_text()
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        pull(d, "OTHER", "--study", study[1][SECOND])
        assert wait_ended(d)[0]["state"] == "DONE"
        assert archive.finds == 0 and items(d)[0]["state"] == "WAITING"
        assert "1 item is cancelled" in pull(d, "--cancel", "1").stdout
        wait_store_empty(d)
        again = pull(d, "--cancel", "1", check=False)
        assert again.returncode == 1 and "has ended" in again.stderr
        assert pull(d, "--cancel", "7", check=False).returncode == 3
        d.config.write_text(d.config.read_text().replace(window, ""))
        d.process.send_signal(1)
        pull(d, "PACS", "--accession", FIRST)
        assert wait_ended(d, 3)[2]["state"] == "DONE"
        assert_hidden(d)


def test_so_many_an_hour(daemon, study):
    with Archive(study[0]) as archive, Archive(study[0]) as other:
        d = daemon(quiet=600.0, dicom=CALLERS, extra=pulling(source(archive.port, "LIAR", per_hour=1),
                                                             source(other.port, "LIAR", "OTHER")))
        archive.destination = other.destination = d.port
        d.start()
        pull(d, "PACS", "--accession", FIRST, SECOND)
        wait_ended(d)
        d.stop()
        d.start()
        pull(d, "OTHER", "--study", study[1][FIRST])
        assert wait_ended(d, 2)[1]["source"] == "OTHER"
        assert [row["state"] for row in items(d)] == ["DONE", "WAITING", "DONE"] and archive.moves == 1


def test_a_batch_is_cancelled_in_the_middle(daemon, study):
    with Archive(study[0], forever) as archive:
        d = start(daemon, archive)
        pull(d, "PACS", "--accession", FIRST, SECOND)
        wait_for(lambda: stored(d)["n"], 90, "the first image")
        pull(d, "--cancel", "1")
        assert [row["state"] for row in items(d)] == ["CANCELLED", "CANCELLED"]
        assert archive.cancelled.wait(90)
        wait_store_empty(d)


def test_a_removed_source(daemon, study):
    with Archive(study[0]) as archive:
        d = start(daemon, archive, window=closed_window())
        pull(d, "PACS", "--accession", FIRST)
        d.config.write_text(d.config.read_text().replace('name = "PACS"', 'name = "OTHER"'))
        d.process.send_signal(1)
        item, = wait_ended(d)
        assert (item["state"], item["code"]) == ("FAILED", "NO_SUCH_SOURCE")
        wait_store_empty(d)
        assert pull(d, "PACS", "--accession", FIRST, check=False).returncode == 3
        d.config.write_text(d.config.read_text().replace('name = "OTHER"', 'name = "OTHER"; move_destination = "NOBODY"'))
        refused = d.ctl("check-config", d.config, check=False)
        assert refused.returncode != 0 and "is not in dicom.titles" in refused.stderr


def test_a_source_removed_during_retrieval(daemon, study):
    with Archive(study[0], forever) as archive:
        d = start(daemon, archive)
        pull(d, "PACS", "--accession", FIRST)
        wait_for(lambda: stored(d)["n"], 90, "the first image")
        d.config.write_text(d.config.read_text().replace('name = "PACS"', 'name = "OTHER"'))
        d.process.send_signal(1)
        item, = wait_ended(d)
        assert (item["state"], item["code"]) == ("FAILED", "NO_SUCH_SOURCE") and archive.moves == 1


@pytest.mark.parametrize("point", ["daemon_after_finding_before_find", "courier_after_find",
                                   "daemon_after_moving_before_move", "courier_after_move",
                                   "daemon_after_pull_before_commit"])
def test_a_crash_loses_and_repeats_no_item(daemon, tmp_path, study, point):
    once = tmp_path / "crashed"
    with Archive(study[0]) as archive:
        d = start(daemon, archive, {"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
        pull(d, "PACS", "--accession", FIRST, SECOND)
        wait_for(once.exists, 90, f"the crash at {point}")
        if point.startswith("daemon"):
            d.process.wait(60)
            d.kill_all()
            d.start()
        first, second = wait_ended(d, 2)
    assert (first["state"], first["arrived"], second["state"], second["arrived"]) == ("DONE", 8, "DONE", 4)
    assert tuple(stored(d)) == (12, 12) and archive.moves <= 3
    assert [row["n"] for row in d.query("SELECT count(*) AS n FROM v_events WHERE kind = 'PULL_DONE'")] == [2]
    assert_hidden(d)


def test_a_restart_in_the_middle_of_a_move(daemon, study):
    def slow(archive, event):
        archive.moves += 1
        images = archive.of(event.identifier)
        yield "127.0.0.1", archive.destination, {"contexts": [build_context(images[0].SOPClassUID)], "ae_title": "NOCTULE"}
        yield len(images)
        yield PENDING, images[0]
        if archive.moves == 1:
            while not event.is_cancelled and not event.assoc.is_aborted and not archive.cancelled.wait(0.1):
                pass
            yield CANCELLED, None
            return
        for image in images[1:]:
            yield PENDING, image

    with Archive(study[0], slow) as archive:
        d = start(daemon, archive, dimse_seconds=5.0)
        pull(d, "PACS", "--accession", FIRST)
        wait_for(lambda: stored(d)["n"] == 1, 90, "the first image")
        assert d.stop() == 0
        row, = items(d)
        assert (row["state"], row["attempts"]) == ("WAITING", 0) and accession_store(d)
        d.start()
        item, = wait_ended(d)
    assert (item["state"], item["arrived"]) == ("DONE", 8) and tuple(stored(d)) == (8, 8)
