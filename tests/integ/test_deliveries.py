"""Delivery with daemon and sender together: series are received, and results are sent to folders and archives."""

import os
import signal

import proto
import pytest
from conftest import Clock, drop, free_port, orthanc, phantom, storescp, storescu, wait_for
from test_daemon import answer, change, control, events, reload

DAY = 86_400  # seconds

# Timers short enough for a test.
QUICK = """delivery = { retry_seconds = 0.2; retry_max_seconds = 0.5; breaker_failures = 3; breaker_seconds = 0.5; };
"""


def to_folder(folder, name="OUT"):
    folder.mkdir(exist_ok=True)
    return f'{{ name = "{name}"; folder = "{folder}"; }}'


def to_archive(port, name="PACS", ae_title="ARCHIVE", more=""):
    return (f'{{ name = "{name}"; ae_title = "{ae_title}"; host = "127.0.0.1"; port = {port}; '
            f"connect_seconds = 60.0; dimse_seconds = 60.0; {more} }}")


def destinations(*entries):
    return QUICK + f"destinations = ( {', '.join(entries)} );\n"


def small(folder, seed=1):
    return phantom(folder, "--size", "32x32x6", "--seed", str(seed))


def deliveries(d):
    return d.query("SELECT * FROM v_deliveries ORDER BY delivery")


def states(d):
    return [(row["destination"], row["state"]) for row in deliveries(d)]


def wait_states(d, *expected):
    def as_expected():
        return states(d) == list(expected)

    try:
        wait_for(as_expected, 60, f"deliveries {expected}")
    except pytest.fail.Exception:
        print([dict(row) for row in deliveries(d)], d.log.read_text()[-6000:])
        raise


def objects(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_result_is_sent_to_each_destination(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "OUT", "PACS" ];',
                   extra=destinations(to_folder(tmp_path / "out"), to_archive(archive.port))).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("OUT", "SENT"), ("PACS", "SENT"))
        (job,) = d.jobs()
        (result,) = d.query("SELECT * FROM v_deliveries WHERE destination = 'OUT'")
        (file,) = objects(tmp_path / "out")
        assert file.read_bytes() == (d.root / result["path"]).read_bytes()
        assert len(archive.files()) == 1
        assert [row["dimse_status"] for row in deliveries(d)] == [None, 0]
        assert {row["job"] for row in deliveries(d)} == {job["job"]}


@pytest.mark.parametrize("point", ["daemon_after_sending_before_deliver", "daemon_after_delivered_before_commit"])
def test_killed_at(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "OUT" ];', extra=destinations(to_folder(tmp_path / "out")),
               environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)}).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_for(once.exists, 60, f"the crash at {point}")
    d.process.wait(60)
    assert d.process.returncode == -signal.SIGKILL
    assert states(d) == [("OUT", "SENDING")]
    d.start()
    wait_states(d, ("OUT", "SENT"))
    assert deliveries(d)[0]["attempts"] == 2
    assert len(objects(tmp_path / "out")) == 1


def test_a_killed_sender_is_replaced(daemon, tmp_path):
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "OUT" ];',
               extra=destinations(to_folder(tmp_path / "out"))).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_states(d, ("OUT", "SENT"))
    (courier,) = d.children("courier")
    os.kill(courier, signal.SIGKILL)
    wait_for(lambda: events(d, "COURIER_DIED"), 60, "the note of its death")
    drop(small(tmp_path / "other", seed=2), d.inbox)
    wait_states(d, ("OUT", "SENT"), ("OUT", "SENT"))
    assert d.stop() == 0


def test_an_unreachable_archive_does_not_delay_other_destinations(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        archive.stop()
        clock = Clock(tmp_path)
        held = destinations(to_archive(archive.port), to_folder(tmp_path / "out")).replace(
            "breaker_seconds = 0.5", "breaker_seconds = 40.0")
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS", "OUT" ];', extra=held,
                   environment=clock.environment).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: events(d, "DESTINATION_DOWN"), 60, "the note that it is down")
        assert "Attention   destination PACS is down; 1 result waits for it: 3 failures in a row; " in d.ctl("status").stdout
        check = d.ctl("status", "--check", check=False)
        assert check.returncode == 1 and check.stdout.startswith("NOCTULE WARNING: destination_down:PACS: destination PACS is down; ")
        wait_states(d, ("PACS", "DELAYED"), ("OUT", "SENT"))
        archive.start()
        clock.pass_time(41)
        wait_states(d, ("PACS", "SENT"), ("OUT", "SENT"))
        assert len(events(d, "DESTINATION_UP")) == 1
        assert len(archive.files()) == 1


def test_setting_the_clock_does_not_change_retry_delays(daemon, tmp_path):
    clock = Clock(tmp_path)
    wait = 'delivery = { retry_seconds = 0.3; retry_max_seconds = 0.3; breaker_failures = 99; give_up_seconds = 3600.0; };\n'
    with storescp(tmp_path / "archive") as archive:
        archive.stop()
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   extra=wait + f"destinations = ( {to_archive(archive.port)} );\n",
                   environment=clock.environment).start()
        drop(small(tmp_path / "ct"), d.inbox)

        def attempts():
            rows = deliveries(d)
            assert not rows or rows[0]["state"] != "FAILED", dict(rows[0])
            return rows[0]["attempts"] if rows else 0

        wait_for(lambda: attempts() >= 1, 60, "an attempt")
        clock.jump(10 * DAY)  # a delivery ten days old would be given up
        wait_for(lambda: len(events(d, "CLOCK_SET")) == 1, 60, "the note that the clock was set")
        before = attempts()
        wait_for(lambda: attempts() >= before + 2, 60, "two more attempts")
        clock.jump(-20 * DAY)  # and a delivery due in twenty days would block them
        wait_for(lambda: len(events(d, "CLOCK_SET")) == 2, 60, "the second note")
        before = attempts()
        wait_for(lambda: attempts() >= before + 2, 60, "two more attempts")
        drop(small(tmp_path / "other", 2), d.inbox)
        archive.start()
        wait_states(d, ("PACS", "SENT"), ("PACS", "SENT"))
        assert [row["detail"] for row in events(d, "CLOCK_SET")] == [
            "the clock was set forward by 864000.0 s", "the clock was set back by 1728000.0 s"]


def test_queued_deliveries_are_sent_after_a_restart(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        archive.stop()
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   extra=destinations(to_archive(archive.port))).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: deliveries(d) and deliveries(d)[0]["attempts"] >= 1, 60, "an attempt")
        assert d.stop() == 0
        archive.start()
        d.start()
        wait_states(d, ("PACS", "SENT"))


def test_the_sending_peer_gets_the_result(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "sender" ];',
                   dicom='peers = ( { ae_title = "STORESCU"; }, { ae_title = "DCMSEND"; } );',
                   extra=destinations(to_archive(archive.port, name="CT1", ae_title="STORESCU"))).start()
        storescu(d.port, *small(tmp_path / "a"))
        wait_states(d, ("CT1", "SENT"))
        storescu(d.port, *small(tmp_path / "b", seed=2), calling="DCMSEND")
        drop(small(tmp_path / "c", seed=3), d.inbox)
        d.wait_jobs(3)
        wait_for(lambda: len(events(d, "NO_SENDER")) == 2, 60, "the notes of unknown senders")
        assert states(d) == [("CT1", "SENT")]


def test_an_ae_title_chooses_the_pipeline(daemon, tmp_path):
    d = daemon(quiet=60.0, dicom='titles = ( { ae_title = "NOCTULE"; }, '
                                '{ ae_title = "HEADS"; pipeline = "head-ct"; } ); '
                                'peers = ( { ae_title = "STORESCU"; } );')
    change(d, 'modality = "CT"', 'modality = "MR"')
    d.start()
    storescu(d.port, *small(tmp_path / "a"))
    wait_for(lambda: events(d, "NO_RULE"), 60, "the note that no rule matches")
    assert not d.jobs()
    storescu(d.port, *small(tmp_path / "b", seed=2), called="HEADS")
    (job,) = d.wait_jobs()
    assert (job["pipeline"], job["state"]) == ("head-ct", "DONE")
    assert len(events(d, "NO_RULE")) == 1


def test_a_reload_adds_and_removes_destinations(daemon, tmp_path):
    d = daemon(quiet=60.0, pipeline_extra="min_slices = 1;").start()
    assert not d.children("courier")
    change(d, "min_slices = 1;", 'deliver = [ "OUT" ];')
    d.config.write_text(d.config.read_text() + destinations(to_folder(tmp_path / "out")))
    reload(d)
    drop(small(tmp_path / "a"), d.inbox)
    wait_states(d, ("OUT", "SENT"))
    change(d, 'deliver = [ "OUT" ];', "min_slices = 1;")
    change(d, '"OUT"', '"ELSEWHERE"')
    reload(d)
    d.ctl("resend", deliveries(d)[0]["delivery"])
    wait_states(d, ("OUT", "FAILED"))
    assert deliveries(d)[0]["code"] == "NO_SUCH_DESTINATION"


def test_resend_repeats_a_delivery(daemon, tmp_path):
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "OUT" ];',
               extra=destinations(to_folder(tmp_path / "out"))).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_states(d, ("OUT", "SENT"))
    (file,) = objects(tmp_path / "out")
    file.unlink()
    with control(d) as client:
        client.sendall(proto.encode("RESEND", 4711, 0, "", 0))
        assert answer(client)[0] == -2
        client.sendall(proto.encode("RESEND", 0, deliveries(d)[0]["job"], "", 1))
        assert answer(client) == (0, "0 deliveries are sent again")
        client.sendall(proto.encode("RESEND", 0, deliveries(d)[0]["job"], "", 0))
        assert answer(client) == (0, "1 delivery is sent again")
    wait_for(lambda: objects(tmp_path / "out") == [file], 60, "the file")
    wait_states(d, ("OUT", "SENT"))


def test_orthanc_commits_on_a_separate_association(daemon, tmp_path):
    port = free_port()
    with orthanc(tmp_path / "orthanc", {"DicomModalities": {"noctule": ["NOCTULE", "127.0.0.1", port]},
                                        "DicomAlwaysAllowStore": True}) as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   dicom='peers = ( { ae_title = "ORTHANC"; } );',
                   extra=destinations(to_archive(archive.port, ae_title="ORTHANC", more="commit = true;")))
        change(d, f"port = {d.port};", f"port = {port};")
        d.port = port
        d.start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        wait_for(lambda: deliveries(d)[0]["commitment"] == "COMMITTED", 60, "the commitment")
        assert len(archive.instances()) == 1
        assert deliveries(d)[0]["attempts"] == 1


def test_a_refused_commitment_still_counts_as_stored(daemon, tmp_path):
    """Orthanc stores the object and refuses the commitment. Earlier versions sent it again each time and opened the
    circuit breaker."""
    with orthanc(tmp_path / "orthanc", {"DicomAlwaysAllowStore": True, "DicomCheckModalityHost": False}) as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   extra=destinations(to_archive(archive.port, ae_title="ORTHANC", more="commit = true;")))
        d.start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        (delivery,) = deliveries(d)
        assert (delivery["commitment"], delivery["attempts"]) == ("FAILED", 1)
        assert delivery["code"] in ("COMMIT_FAILED", "PEER_ABORTED"), delivery
        assert "NOCTULE" in delivery["message"] and "commit" in delivery["message"]
        assert len(archive.instances()) == 1
        assert d.query("SELECT * FROM v_events WHERE kind = 'DESTINATION_DOWN'") == []
