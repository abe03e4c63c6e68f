"""A disk becomes full while peers send: protected files stay, the oldest removable ones go, and no acknowledged file
is lost."""

import re
import shutil

import pydicom
from conftest import PEERS, small_file_system, wait_for
from test_receive import OUT_OF_RESOURCES, ct, encoded
from upper_layer import associated

SERIES, SLICES, SIZE = 45, 4, 256
TOGETHER = 6
MIB = 1 << 20
MARKS = "retention = { min_days = 0.0; low_mib = 9; high_mib = 12; };\n"


def instances(number):
    """Returns the SOP Instance UIDs and data sets of a series of half a MiB."""
    series = f"1.2.826.0.1.3680043.8.498.7.{number}"
    for i in range(1, SLICES + 1):
        dataset = ct(i, series=series, size=SIZE, SOPInstanceUID=f"{series}.{i}",
                     PixelData=(40 + i % 2).to_bytes(2, "little") * SIZE * SIZE)
        yield f"{series}.{i}", encoded(dataset)


def send(d, numbers, acknowledged):
    """Sends series in turn until one instance is refused. Returns the status of that one, or 0. At most TOGETHER
    series are being received at a time while there is room, because a series cannot become complete while senders
    must wait."""
    with associated(d.port) as peer:
        for number in numbers:
            wait_for(lambda: d.query("SELECT count(*) FROM v_series WHERE state = 'GATHERING'")[0][0] < TOGETHER
                     or d.query("SELECT 1 FROM v_events WHERE kind = 'DISK_LOW'"), 60, "complete series")
            for uid, data in instances(number):
                if uid in acknowledged:
                    continue
                status = peer.store(data, uid)
                if status:
                    return status
                acknowledged.append(uid)
    return 0


def number_of(series_uid):
    return int(series_uid.rpartition(".")[2])


def assert_kept(d, acknowledged, shelf):
    """Checks that each acknowledged instance has its file as sent, or was removed after its result had arrived."""
    there = {row["sop_instance_uid"]: d.root / row["path"] for row in d.query("SELECT * FROM v_instances")}
    removed = [row["series_uid"] for row in d.query("SELECT * FROM v_series WHERE removed_at IS NOT NULL "
                                                    "ORDER BY settled_at")]
    delivered = {pydicom.dcmread(path).ReferencedSeriesSequence[0].SeriesInstanceUID for path in shelf.rglob("*.dcm")}
    assert set(removed) <= delivered, "a series went whose result had not arrived"
    for uid in acknowledged:
        assert uid in there or uid.rpartition(".")[0] in removed, f"{uid} is lost"
    for uid, path in there.items():
        assert pydicom.dcmread(path).PixelData == (40 + int(uid[-1]) % 2).to_bytes(2, "little") * SIZE * SIZE
    stayed = [row["settled_at"] for row in d.query("SELECT settled_at FROM v_series WHERE removed_at IS NULL "
                                                   "AND state = 'SETTLED'")]
    gone = [row["settled_at"] for row in d.query("SELECT settled_at FROM v_series WHERE removed_at IS NOT NULL")]
    assert max(gone, default="") <= min(stayed, default="9"), "the oldest does not go first"
    return removed


def done(d):
    """Returns the series with a result. A series with slow images may also have a job for some of them."""
    return {row["series_uid"] for row in d.jobs("DONE")}


def assert_done(d, count):
    """Waits until at least that many are done. A failure reports the states of the others."""
    try:
        wait_for(lambda: len(done(d)) >= count, 60, f"results of {count} series")
    except BaseException:
        print(*map(tuple, d.query("SELECT state, code, message, count(*) AS jobs, max(attempts) AS attempts FROM v_jobs GROUP BY 1, 2, 3")))
        print(*map(tuple, d.query("SELECT state, count(*) AS series FROM v_series GROUP BY 1")), shutil.disk_usage(d.root))
        raise


def test_removal_of_the_oldest_series_lets_senders_continue(daemon, tmp_path):
    shelf = tmp_path / "shelf"
    destinations = f'destinations = ( {{ name = "shelf"; folder = "{shelf}"; }} );\n'
    with small_file_system(tmp_path / "small", 26) as small:
        d = daemon(quiet=0.5, dicom=PEERS, pipeline_extra='deliver = [ "shelf" ];', extra=destinations + MARKS)
        d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{small}"')
                            .replace("min_free_mib = 1;", "min_free_mib = 6;"))
        d.root, d.inbox = small, small / "inbox"
        d.start()
        acknowledged = []
        # Series that wait for a job or for their destination stay. When these have filled the disk, senders must
        # wait.
        d.ctl("hold", "--destination", "shelf", "--reason", "it is moved")
        assert send(d, range(2), acknowledged) == 0
        assert_done(d, 2)
        d.ctl("hold", "--pipeline", "head-ct", "--reason", "another day")
        assert send(d, range(2, SERIES), acknowledged) == OUT_OF_RESOURCES
        assert shutil.disk_usage(small).free > 5 * MIB
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'RETENTION_STUCK'"), 60, "the event")
        assert assert_kept(d, acknowledged, shelf) == []
        # Jobs continue in the remaining space. Otherwise no space could ever become free.
        d.ctl("release", "--pipeline", "head-ct")
        ((settled,),) = d.query("SELECT count(*) FROM v_series WHERE state = 'SETTLED'")
        assert settled >= len(acknowledged) // SLICES - TOGETHER
        assert_done(d, settled)
        assert assert_kept(d, acknowledged, shelf) == []
        # After delivery the oldest series are removed until enough space is free, and senders continue.
        d.ctl("release", "--destination", "shelf")
        wait_for(lambda: send(d, range(2, SERIES), acknowledged) == 0, 60, "room for all the others")
        assert_done(d, SERIES)
        wait_for(lambda: not d.query("SELECT 1 FROM v_deliveries WHERE state <> 'SENT'"), 60, "their arrival")

        def at_rest():
            marks = re.findall(r"event=retention\.(low|enough)", d.log.read_text())
            return marks[-1] == "enough" and shutil.disk_usage(small).free >= 9 * MIB and not d.query("SELECT 1 FROM removal")

        wait_for(at_rest, 60, "the end of the removal")
        removed = assert_kept(d, acknowledged, shelf)
        assert len(acknowledged) == SERIES * SLICES and 10 < len(removed) < SERIES - 10, len(removed)
        assert number_of(removed[0]) < 2
        wait_for(lambda: d.ctl("status", "--check", check=False).returncode < 2, 60, "all to be well")
        assert d.stop() == 0
