"""Each bad input gets a stable code and a message, and the daemon continues."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess

import pydicom
import pytest
from conftest import PEERS, drop, is_listening, phantom, small_file_system, storescu, wait_for


def truncated(source, folder):
    data = source.read_bytes()
    (folder / "truncated.dcm").write_bytes(data[: len(data) * 2 // 3])
    return "FILE_TRUNCATED"


def empty(source, folder):
    (folder / "empty.dcm").write_bytes(b"")
    return "FILE_EMPTY"


def jpeg(source, folder):
    (folder / "photo.dcm").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + random.Random(1).randbytes(5000))
    return "NOT_DICOM"


def without_rows(source, folder):
    dataset = pydicom.dcmread(source)
    del dataset.Rows
    dataset.save_as(folder / "rows.dcm")
    return "TAG_MISSING"


def without_series(source, folder):
    dataset = pydicom.dcmread(source)
    del dataset.SeriesInstanceUID
    dataset.save_as(folder / "series.dcm")
    return "TAG_MISSING"


def climbing_uid(source, folder):
    dataset = pydicom.dcmread(source)
    with pydicom.config.disable_value_validation():
        dataset.SeriesInstanceUID = "../../../etc/passwd"
        dataset.save_as(folder / "climbing.dcm")
    return "UID_INVALID"


def enormous(source, folder):
    dataset = pydicom.dcmread(source)
    dataset.Rows = dataset.Columns = 65535
    dataset.save_as(folder / "enormous.dcm")
    return ("SIZE_IMPLAUSIBLE", "FILE_TRUNCATED")


def nuclear_medicine(source, folder):
    dataset = pydicom.dcmread(source)
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = pydicom.uid.NuclearMedicineImageStorage
    dataset.save_as(folder / "nuclear.dcm")
    return "SOP_CLASS_UNSUPPORTED"


def broken_sequence(source, folder):
    """A sequence with a length beyond the end of the file."""
    dataset = pydicom.dcmread(source)
    dataset.ReferencedStudySequence = [pydicom.Dataset()]
    dataset.ReferencedStudySequence[0].ReferencedSOPInstanceUID = "1.2.3"
    path = folder / "sequence.dcm"
    dataset.save_as(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"\x08\x00\x10\x11SQ\x00\x00")
    data[at + 8 : at + 12] = (0x7FFFFFF0).to_bytes(4, "little")
    path.write_bytes(data)
    return ("TAG_INVALID", "FILE_TRUNCATED")


def nested_sequences(source, folder):
    """Thirty thousand nested sequences."""
    data = source.read_bytes()
    at = data.index(b"\x08\x00\x16\x00UI")
    deep = b"\x08\x00\x10\x11SQ\x00\x00\xff\xff\xff\xff\xfe\xff\x00\xe0\xff\xff\xff\xff" * 30_000
    (folder / "nested.dcm").write_bytes(data[:at] + deep + data[at:])
    return "TAG_INVALID"


def deflated_bomb(source, folder):
    """A hundred MiB of zeros, deflated to a hundred KiB."""
    dataset = pydicom.dcmread(source)
    dataset.Rows = dataset.Columns = 7168
    dataset.PixelData = bytes(2 * 7168 * 7168)
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    dataset.save_as(folder / "bomb.dcm")
    return "EXPANSION_IMPLAUSIBLE"


def disordered(source, folder):
    """The same attribute two thousand times. A linear search per insertion would cost quadratic time."""
    data = source.read_bytes()
    at = data.index(b"\x08\x00\x16\x00UI")
    (folder / "disordered.dcm").write_bytes(data[:at] + b"\x08\x00\x08\x00CS\x02\x00A " * 2000 + data[at:])
    return "TAG_INVALID"


KINDS = [truncated, empty, jpeg, without_rows, without_series, climbing_uid, enormous, nuclear_medicine,
         broken_sequence, nested_sequences, deflated_bomb, disordered]


def test_each_kind_of_bad_file_is_quarantined_with_its_reason(daemon, tmp_path):
    good = phantom(tmp_path / "series", "--size", "32x32x6")
    bad = tmp_path / "bad"
    bad.mkdir()
    expected = {}
    for make in KINDS:
        before = set(bad.iterdir())
        codes = make(good[0], bad)
        (path,) = set(bad.iterdir()) - before
        expected[path.name] = codes if isinstance(codes, tuple) else (codes,)
    d = daemon(quiet=0.7).start()
    drop(sorted(bad.iterdir()), d.inbox)
    drop(good, d.inbox / "good")
    rows = wait_for(lambda: len(r := d.query("SELECT * FROM v_quarantine")) >= len(KINDS) and r, 40,
                    "the quarantine")
    assert len(rows) == len(KINDS)
    for row in rows:
        name = os.path.basename(row["original_path"])
        assert row["code"] in expected[name], (name, row["code"], row["message"])
        assert len(row["message"]) > 20
        stored = d.root / row["path"]
        assert stored.read_bytes() == (bad / name).read_bytes()
        assert pathlib.Path(str(stored) + ".reason.json").exists()
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    # A restart finds the same files in the inbox and must not quarantine them again.
    assert d.stop() == 0
    d.start()
    more = phantom(tmp_path / "more", "--size", "32x32x6", "--seed", "5")
    drop(more, d.inbox / "more")
    d.wait_jobs(2)
    assert len(d.query("SELECT * FROM v_quarantine")) == len(KINDS)
    assert len([p for p in (d.root / "quarantine").rglob("*") if p.is_file()]) == 2 * len(KINDS)


def test_random_damage_never_stops_the_daemon(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "24x24x8")
    chance = random.Random(20)
    d = daemon(quiet=0.5).start()
    target = d.inbox / "damaged"
    target.mkdir()
    for number in range(200):
        data = bytearray(chance.choice(files).read_bytes())
        for _ in range(chance.choice([1, 3, 30])):
            data[chance.randrange(len(data) if chance.random() < 0.3 else 1500)] = chance.randrange(256)
        (target / f"{number}.dcm").write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
    wait_for(lambda: d.query("SELECT (SELECT count(*) FROM v_quarantine) + "
                             "(SELECT count(*) FROM v_events WHERE kind = 'INSTANCE')")[0][0] >= 1, 60, "news")
    good = phantom(tmp_path / "good", "--size", "32x32x6", "--seed", "77")
    uid = pydicom.dcmread(good[0]).SeriesInstanceUID
    drop(good, d.inbox / "good")
    wait_for(lambda: d.query("SELECT 1 FROM v_jobs WHERE series_uid = ? AND state = 'DONE'", uid), 60,
             "the good job")
    assert d.process.poll() is None


def test_a_full_disk_delays_files_and_loses_no_file(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "128x128x40")
    with small_file_system(tmp_path / "small", 16) as small:
        d = daemon(quiet=0.5, attempts=50)
        d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{small}"')
                            .replace("min_free_mib = 1;", "min_free_mib = 0;"))
        d.root, d.inbox = small, tmp_path / "inbox"
        d.config.write_text(d.config.read_text().replace('path = "inbox"', f'path = "{d.inbox}"'))
        d.inbox.mkdir()
        d.start()
        ballast = small / "ballast"
        free = shutil.disk_usage(small).free
        ballast.write_bytes(bytes(free - 512 * 1024))
        drop(files, d.inbox)
        wait_for(lambda: "space" in d.log.read_text().lower() or "ENOSPC" in d.log.read_text(), 60,
                 "the log's word of the full disk")
        assert d.process.poll() is None
        ballast.unlink()
        (job,) = d.wait_jobs(seconds=120)
        assert job["state"] == "DONE", job["message"]
        assert d.query("SELECT instances FROM v_series")[0][0] == len(files)
        assert sorted(p.name for p in d.inbox.iterdir()) == [f.name for f in files]
        assert d.stop() == 0


@pytest.mark.parametrize("how", ["full", "killed-full", "read-only"])
def test_the_daemon_starts_on_a_read_only_disk(daemon, tmp_path, how):
    (file, *_) = phantom(tmp_path / "series", "--size", "16x16x2")
    with small_file_system(tmp_path / "small", 12) as small:
        d = daemon(quiet=0.5, dicom=PEERS)
        d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{small}"')
                            .replace("min_free_mib = 1;", "min_free_mib = 0;"))
        d.root, d.inbox = small, small / "inbox"
        d.start()
        if how == "killed-full":
            d.kill_all()  # its socket remains, and its log of the database
        else:
            assert d.stop() == 0
        ballast = small / "ballast"
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        else:
            with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as out:
                while True:
                    out.write(bytes(4096))
        d.start(wait=False)
        wait_for(lambda: d.process.poll() is not None or is_listening(d.port), 20, "the port")
        sent = storescu(d.port, file, check=False)
        assert "OutOfResources" in sent.stderr, sent.stderr
        if how != "read-only":  # a read-only folder has no room for the socket
            check = d.ctl("status", "--check", check=False)
            assert check.returncode == 2 and "NOCTULE CRITICAL: database: the database cannot be written: No space" in check.stdout
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,rw", small], check=True)
        else:
            ballast.unlink()
        wait_for(lambda: d.ctl("status", "--check", check=False).returncode == 0, 20, "all to be well")
        storescu(d.port, file)
        assert len(d.query("SELECT 1 FROM v_instances")) == 1
        assert len(d.query("SELECT 1 FROM v_events WHERE kind = 'START'")) == 2
        assert d.stop() == 0


def test_a_temporarily_damaged_database_is_opened_again(daemon, tmp_path):
    """Damaged pages may exist only in the page cache. The daemon must open the file again, at the latest at its next
    start."""
    first, second = phantom(tmp_path / "series", "--size", "16x16x2")
    d = daemon(quiet=600.0, dicom=PEERS).start()
    storescu(d.port, first)
    path = d.root / "noctule.db"
    # so that SQLite does not use its cached pages
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE something(a)")
        other.execute("DROP TABLE something")
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        (size,) = other.execute("PRAGMA page_size").fetchone()
    whole = path.read_bytes()
    with open(path, "r+b", buffering=0) as out:
        out.seek(size)
        out.write(bytes(len(whole) - size))
    assert storescu(d.port, second, check=False).returncode != 0
    assert d.process.wait(20) == 6
    d.start(wait=False)
    assert d.process.wait(20) == 6
    d.wait_log("event=database.refused")
    with open(path, "r+b", buffering=0) as out:
        out.write(whole)
    d.start()
    storescu(d.port, second)
    assert len(d.query("SELECT 1 FROM v_instances")) == 2
    assert d.stop() == 0


def test_low_disk_pauses_and_resumes(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    with small_file_system(tmp_path / "small", 64) as small:
        d = daemon(quiet=0.5)
        d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{small}"')
                            .replace("min_free_mib = 1;", "min_free_mib = 32;"))
        d.root, d.inbox = small, small / "inbox"
        d.start()
        ballast = small / "ballast"
        ballast.write_bytes(bytes(48 << 20))
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'DISK_LOW'"), 60, "the pause")
        drop(files, d.inbox)
        low = "Broken      less than min_free_mib (32 MiB) is free; senders must retry, jobs wait (since "
        wait_for(lambda: low in d.ctl("status").stdout, 60, "the receiver's and the queue's pause in the status")
        assert d.ctl("status", "--check", check=False).returncode == 2
        ballast.unlink()
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'DISK_OK'"), 60, "the resumption")
        (job,) = d.wait_jobs()
        assert job["state"] == "DONE"


def test_a_damaged_configuration_is_refused_with_a_line_number(daemon):
    d = daemon()
    d.config.write_text(d.config.read_text().replace("lanes = 2;", "lanes = ;"))
    result = subprocess.run([*_command(d)], capture_output=True, text=True, timeout=20)
    assert result.returncode == 5
    assert "noctule.conf:" in result.stderr


def test_an_unwritable_root_is_refused(daemon, tmp_path):
    d = daemon()
    (tmp_path / "file").write_text("")
    d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{tmp_path}/file/root"'))
    result = subprocess.run([*_command(d)], capture_output=True, text=True, timeout=20)
    assert result.returncode > 0
    assert "file/root" in result.stderr


def _command(d):
    from conftest import BIN

    return [BIN / "noctuled", "--config", d.config]


# ----------------------------------------------------------------------------- noctule quarantine


def listed(d, *arguments):
    return json.loads(d.ctl("quarantine", "list", "--json", *arguments).stdout)


def quarantined(d, count):
    wait_for(lambda: len(d.query("SELECT 1 FROM v_quarantine WHERE removed_at IS NULL")) == count, 60, "the quarantine")
    return {row["code"]: row for row in listed(d)}


def cut_series(d, tmp_path):
    """A series with a truncated last file, and a license file that was copied with it."""
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    whole = files[-1].read_bytes()
    drop(files[:-1], d.inbox / "series")
    (d.inbox / "LICENSE.txt").write_text("Permission is granted " * 50)
    (d.inbox / "series" / "last.dcm").write_bytes(whole[:-500])
    return files, whole


def test_quarantined_files_are_listed_shown_and_forgotten(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    files, _ = cut_series(d, tmp_path)
    rows = quarantined(d, 2)
    licence, cut = rows["NOT_DICOM"], rows["FILE_TRUNCATED"]
    assert [row["quarantine"] for row in listed(d, "--code", "not_dicom")] == [licence["quarantine"]]
    assert [row["quarantine"] for row in listed(d, "--limit", "1")] == [max(row["quarantine"] for row in rows.values())]
    table = d.ctl("quarantine").stdout
    assert "NOT_DICOM" in table and "FILE_TRUNCATED" in table and "LICENSE" not in table
    shown = d.ctl("quarantine", "show", str(licence["quarantine"])).stdout
    assert f"original  {d.inbox}/LICENSE.txt" in shown and licence["path"] in shown and "The file is not a DICOM file" in shown
    assert d.ctl("quarantine", "show", "99", check=False).returncode == 3
    for wrong in (["shout", "1"], ["forget"], ["show", "x"], ["release", "1", "--json"], ["list", "1"]):
        assert d.ctl("quarantine", *wrong, check=False).returncode == 2, wrong

    # A file that the series lacks cannot be forgotten, because the series would then look complete.
    refused = d.ctl("quarantine", "forget", str(cut["quarantine"]), check=False)
    assert refused.returncode != 0 and "lacks the instance" in refused.stderr
    assert (d.root / cut["path"]).exists()

    forgotten = d.ctl("quarantine", "forget", str(licence["quarantine"]))
    assert "is forgotten; its original is still in the inbox" in forgotten.stdout
    (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'QUARANTINE_FORGOTTEN'")
    assert event["detail"].startswith(f"{licence['quarantine']} (NOT_DICOM) by root")
    wait_for(lambda: not (d.root / licence["path"]).exists(), 60, "the file's removal")
    assert not (d.root / (licence["path"] + ".reason.json")).exists()
    assert [row["code"] for row in listed(d)] == ["FILE_TRUNCATED"]
    assert "1 file quarantined" in d.ctl("status").stdout
    assert d.ctl("quarantine", "forget", str(licence["quarantine"]), check=False).returncode != 0

    # After the series was accepted without the file, the entry may be forgotten.
    d.ctl("complete", "--accept-missing", str(pydicom.dcmread(files[0]).SeriesInstanceUID))
    d.ctl("quarantine", "forget", str(cut["quarantine"]))
    assert listed(d) == [] and "quarantined in the last" not in d.ctl("status").stdout
    (d.inbox / "LICENSE.txt").unlink()
    (d.inbox / "series" / "last.dcm").unlink()
    assert d.stop() == 0
    d.start()
    assert listed(d) == [] and not [p for p in (d.root / "quarantine").rglob("*") if p.is_file()]


def test_a_released_file_is_received_again(daemon, tmp_path):
    """A file that is refused again keeps its number. A repaired file (the test repairs it) completes its series."""
    d = daemon(quiet=600.0).start()
    files, whole = cut_series(d, tmp_path)
    cut = quarantined(d, 2)["FILE_TRUNCATED"]
    number = str(cut["quarantine"])
    assert f"file {number} is received again" in d.ctl("quarantine", "release", number).stdout
    wait_for(lambda: len(d.query("SELECT 1 FROM v_events WHERE kind = 'QUARANTINED'")) == 3, 60, "the second refusal")
    (again,) = listed(d, "--code", "FILE_TRUNCATED")
    assert again["quarantine"] == cut["quarantine"] and again["path"] != cut["path"]
    assert again["original_path"] == cut["original_path"] and again["lacking"] == 1
    wait_for(lambda: not (d.root / cut["path"]).exists(), 60, "the first copy's removal")
    assert (d.root / again["path"]).read_bytes() == whole[:-500]
    wait_for(lambda: not list((d.root / "released").iterdir()), 60, "the removal of the released link")

    (d.root / again["path"]).write_bytes(whole)
    d.ctl("quarantine", "release", number)
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["instances"], series["quarantined"], series["inbox"]) == (len(files), 0, str(d.inbox))
    assert [row["code"] for row in listed(d)] == ["NOT_DICOM"]
    by = [row["detail"] for row in d.query("SELECT detail FROM v_events WHERE kind = 'QUARANTINE_RELEASED'")]
    assert len(by) == 2 and all(text.startswith(f"{number} (FILE_TRUNCATED) by root") for text in by)
    refused = d.ctl("quarantine", "release", number, check=False)
    assert refused.returncode != 0 and "not in quarantine any more" in refused.stderr


def test_a_released_file_keeps_the_ae_titles_of_reception(daemon, tmp_path):
    """Its AE titles select the pipeline, as at reception."""
    d = daemon(quiet=0.5, dicom=PEERS)
    d.config.write_text(d.config.read_text().replace('modality = "CT";', 'modality = "CT"; sender = "STORESCU"; called_ae = "NOCTULE";'))
    d.start()
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    bad = tmp_path / "bad.dcm"
    for path in files:
        dataset = pydicom.dcmread(path)
        del dataset.Rows
        dataset.save_as(bad)
        storescu(d.port, bad, check=False)
    wait_for(lambda: len(d.query("SELECT 1 FROM v_quarantine")) == len(files), 60, "the quarantine")
    rows = {row["sop_instance_uid"]: row for row in listed(d)}
    assert {(row["code"], row["sender"], row["called_ae"]) for row in rows.values()} == {("TAG_MISSING", "STORESCU", "NOCTULE")}
    assert "STORESCU" in d.ctl("quarantine").stdout
    for path in files:
        (d.root / rows[pydicom.dcmread(path).SOPInstanceUID]["path"]).write_bytes(path.read_bytes())
    d.ctl("quarantine", "release", *(str(row["quarantine"]) for row in rows.values()))
    (series,) = wait_for(lambda: d.query("SELECT * FROM v_series WHERE state = 'SETTLED'"), 60, "the series")
    assert (series["sender"], series["called_ae"], series["jobs"]) == ("STORESCU", "NOCTULE", 1)
    assert d.query("SELECT source FROM v_instances")[0][0] == "scu:STORESCU"


@pytest.mark.parametrize("point", ["daemon_after_release_link", "daemon_before_commit", "daemon_before_answer"])
def test_a_killed_release_loses_no_file(daemon, tmp_path, point):
    d = daemon(quiet=600.0).start()
    files, whole = cut_series(d, tmp_path)
    cut = quarantined(d, 2)["FILE_TRUNCATED"]
    (d.root / cut["path"]).write_bytes(whole)
    (d.inbox / "series" / "last.dcm").unlink()
    assert d.stop() == 0
    once = tmp_path / "crashed"
    d.environment |= {"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)}
    d.start(wait=False)
    wait_for(lambda: d.process.poll() is not None or d.ctl("quarantine", "release", str(cut["quarantine"]), check=False) is None
             or once.exists(), 60, f"the crash at {point}")
    d.process.wait(30)
    d.start()
    d.ctl("quarantine", "release", str(cut["quarantine"]), check=False)
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["instances"], series["quarantined"]) == (len(files), 0)
    wait_for(lambda: not (d.root / cut["path"]).exists() and not list((d.root / "released").iterdir()), 60, "the removal")
    assert [row["code"] for row in listed(d)] == ["NOT_DICOM"]
