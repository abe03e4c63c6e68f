"""The receiver process alone: the real noctuled --role intake, with this test as its daemon."""

import functools
import io
import json
import os
import pathlib
import random
import re
import shutil
import stat
import subprocess
import tempfile
import time

import proto
import pydicom
import pytest
from conftest import BIN, Clock, small_file_system, wait_for
from pydicom.dataset import Dataset, FileMetaDataset

INBOX = '{{ path = "{path}"; after = "{after}"; {move} settle_seconds = {settle}; sweep_seconds = {sweep}; }}'
SETTINGS = 'root = "{root}";\nlog_level = "debug";\nmin_free_mib = {min_free};\ninbox = ( {inboxes} );\n'

SERIES = "1.2.826.0.1.3680043.8.498.7"
ALIVE = 5  # seconds between two signs of life of a child (child.c)
SILENCE = 60  # seconds of silence after which the daemon ends a receiver (pool.c)


def image(number=1, series=SERIES, size=8, **changes):
    """Returns the bytes of one small CT slice. Equal arguments give equal bytes."""
    dataset = Dataset()
    dataset.SOPClassUID = pydicom.uid.CTImageStorage
    changes = {"SOPInstanceUID": f"{series}.{100000000 + number}", "SeriesInstanceUID": series, **changes}
    dataset.StudyInstanceUID = "1.2.826.0.1.3680043.8.498.1"
    dataset.FrameOfReferenceUID = "1.2.826.0.1.3680043.8.498.2"
    dataset.Modality = "CT"
    dataset.BodyPartExamined = "HEAD"
    dataset.SeriesDescription = "Intake test"
    dataset.PatientName = "Nobody^At All"
    dataset.PatientID = "none"
    dataset.InstanceNumber = str(number)
    dataset.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    dataset.ImagePositionPatient = [0, 0, 2.0 * number]
    dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    dataset.PixelSpacing = [1, 1]
    dataset.SliceThickness = 2
    dataset.Rows = dataset.Columns = size
    dataset.BitsAllocated = dataset.BitsStored = 16
    dataset.HighBit = 15
    dataset.PixelRepresentation = 1
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.RescaleSlope = 1
    dataset.RescaleIntercept = 0
    dataset.PixelData = random.Random(number).randbytes(2 * size * size)
    with pydicom.config.disable_value_validation():
        for key, value in changes.items():
            setattr(dataset, key, value)
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    out = io.BytesIO()
    with pydicom.config.disable_value_validation():
        pydicom.dcmwrite(out, dataset, enforce_file_format=True)
    return out.getvalue()


class Receiver:
    """A receiver process with its own root, and the daemon's end of its pipe."""

    def __init__(self, folder, after="keep", settle=0.3, sweep=0.5, root=None, inboxes=None, min_free=1,
                 environment=None, wrapper=()):
        self.folder = pathlib.Path(folder)
        self.root = pathlib.Path(root or self.folder / "root")
        self.root.mkdir(exist_ok=True)
        self.inbox = self.folder / "inbox"
        self.moved = self.folder / "moved"
        self.log = self.folder / "log"
        self.config = self.folder / "intake.conf"
        self.min_free = min_free
        self.configure(inboxes or [self.inbox], after, settle, sweep)
        self.clock = Clock(self.folder)
        self.environment = {**os.environ, "NOCTULE_TEST_PLACE": str(self.folder), **self.clock.environment,
                            **(environment or {})}
        self.wrapper = list(wrapper)
        self.process = self.peer = None
        self.position = 0  # all frames before it were returned

    def configure(self, inboxes, after="keep", settle=0.3, sweep=0.5):
        move = f'move_to = "{self.moved}";' if after == "move" else ""
        rows = [INBOX.format(path=path, after=after, move=move, settle=settle, sweep=sweep) for path in inboxes]
        self.config.write_text(SETTINGS.format(root=self.root, min_free=self.min_free, inboxes=", ".join(rows)))

    def start(self, hello=True, known=()):
        """Starts the process. known: the known properties of the inbox's files, from their ARRIVED frames."""
        self.peer = proto.Peer()
        self.position = 0
        self.known, self.asks = list(known) if hello else None, False
        self.launch()
        if hello:
            self.wait("HELLO")
            wait_for(lambda: self.inbox.exists() or "inbox" not in self.config.read_text(), 10, "the inbox")
            self.sweep_done()
        return self

    def launch(self):
        fd = self.peer.child.fileno()
        command = [BIN / "noctuled", "--role", "intake", "--slot", "0", "--config", self.config]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", f'exec "$@" 3<&{fd}', "bash", *self.wrapper, *command], stderr=log, stdout=log,
                stdin=subprocess.DEVNULL, pass_fds=[fd], env=self.environment)
        self.peer.child.close()

    def read(self, seconds):
        """Reads frames. A receiver that sends RENEW is ended and replaced, as by the daemon."""
        names = [frame.name for frame in self.peer.read(seconds)]
        self.asks = self.asks or "ASK_KNOWN" in names
        self.send_known()
        if "RENEW" in names:
            self.peer.send("DRAIN")
            wait_for(lambda: self.peer.read(0.05) is not None and self.peer.ended, 20, "the end of the intake")
            assert self.process.wait(10) == 0
            self.peer.socket.close()
            self.peer.open()
            self.launch()

    def send_known(self):
        """Answers the request for known files after each start, unless self.known is None."""
        if self.asks and self.known:
            self.peer.send("KNOWN", self.inbox, 0, [(frame["kept_key"], frame["kept_look"]) for frame in self.known])
            self.known, self.asks = [], False
        elif self.asks and self.known is not None:
            self.peer.send("KNOWN", "", 1, [])
            self.asks = False

    def sweeps(self):
        """Returns the log lines of sweeps of inboxes, without the sweep of released files."""
        return [line for line in self.text().splitlines() if "event=inbox.swept" in line and "/released " not in line]

    def sweep_done(self):
        """Waits until all folders are watched, which is after the first sweep."""
        self.until(lambda: self.sweeps()
                   or b"inbox.unusable" in self.log.read_bytes(), 20, "the first sweep")

    # ------------------------------------------------------------------------------------ frames

    def until(self, condition, seconds=60, what="it"):
        """Reads frames until condition() is true, and returns its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            left = deadline - time.monotonic()
            if left <= 0 or self.peer.ended:
                pytest.fail(f"{what} did not come; the log:\n{self.text()[-3000:]}")
            self.read(min(left, 0.05))

    def all(self, *names):
        return [frame for frame in self.peer.frames if frame.name in names]

    def wait(self, name, count=1, seconds=60):
        """Waits for that many frames of a type. Returns the last one."""
        return self.until(lambda: len(found := self.all(name)) >= count and found, seconds, f"{count} {name}")[-1]

    def store(self, frame):
        self.peer.send("STORED", frame["token"])

    def collect(self, count, seconds=60, names=("ARRIVED", "QUARANTINED")):
        """Plays the daemon until that many more files are reported. Answers each report."""
        told = {}
        deadline = time.monotonic() + seconds
        while len(told) < count:
            if self.position == len(self.peer.frames):
                assert time.monotonic() < deadline, f"{len(told)} of {count}; the log:\n{self.text()[-3000:]}"
                self.read(0.1)
                continue
            frame = self.peer.frames[self.position]
            self.position += 1
            if frame.name in names:
                told[frame["token"]] = frame
                self.store(frame)
        return list(told.values())

    def pass_time(self, seconds):
        """Lets time pass on the receiver's clock, at least enough for an ALIVE, and waits until the receiver has
        noticed."""
        alive = len(self.all("ALIVE"))
        self.clock.pass_time(max(seconds, ALIVE + 0.1))
        self.wait("ALIVE", alive + 1, seconds=60)

    def no_frame(self, seconds, *names):
        """Checks that no frame of these types arrives while that many seconds pass on the receiver's clock."""
        before = len(self.all(*names))
        for half in (seconds / 2, seconds / 2):
            self.pass_time(half)
            assert len(self.all(*names)) == before, self.all(*names)[-1]

    def no_frame_in_sweeps(self, *names, count=2):
        """Checks that no frame of these types arrives until that many sweeps have ended. The last one starts after
        this call."""
        before, swept = len(self.all(*names)), len(self.sweeps())

        def ended():
            self.clock.pass_time(2)
            return len(self.sweeps()) >= swept + count

        self.until(ended, 60, f"{count} sweeps")
        self.pass_time(0)
        assert len(self.all(*names)) == before, self.all(*names)[-1]

    # ------------------------------------------------------------------------------------ process

    def text(self):
        return self.log.read_text(errors="replace")

    def put(self, name, data):
        """Renames a file into the inbox, so that the receiver need not wait for a stable size."""
        whole = self.folder / "whole"
        whole.write_bytes(data)
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return whole.rename(path)

    def write(self, name, data):
        """Writes a file in place, as most senders do."""
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def stored(self):
        return sorted(path for path in (self.root / "series").rglob("*") if path.is_file())

    def stop(self, seconds=10):
        """Closes the pipe, as a daemon that ends."""
        self.peer.close()
        return self.process.wait(seconds)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        if self.peer:
            self.peer.close()


@pytest.fixture
def receiver(tmp_path):
    made = []

    def make(folder=None, **options):
        made.append(Receiver(folder or tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.kill()


# ------------------------------------------------------------------------------------------ reception


def test_a_file_arrives_whole_and_the_original_stays(receiver):
    i = receiver().start()
    hello = i.peer.frames[0]
    assert (hello.name, hello["role"]) == ("HELLO", "intake") and hello["build_id"]
    original = i.write("one.dcm", image(1))
    os.utime(original, ns=(10**18, 1_234_567_890_123_456_789))
    (frame,) = i.collect(1)
    assert frame.name == "ARRIVED"
    assert frame["path"] == f"series/{SERIES}/{SERIES}.100000001.dcm"
    assert frame["source"] == f"inbox:{i.inbox}"
    assert (frame["series"], frame["modality"], frame["body_part"]) == (SERIES, "CT", "HEAD")
    assert frame["sop_instance"] == f"{SERIES}.100000001"
    assert (frame["size"], frame["frames"]) == (original.stat().st_size, 1)
    stored = i.root / frame["path"]
    assert stored.read_bytes() == original.read_bytes() == image(1)
    assert stored.stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert stored.stat().st_ino != original.stat().st_ino
    i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
    assert i.stop() == 0


def test_a_growing_file_is_received_when_its_size_is_stable(receiver):
    i = receiver(settle=3600).start()
    data = image(1, size=64)
    path = i.inbox / "slow.dcm"
    with open(path, "wb", buffering=0) as out:
        for at in range(0, len(data), len(data) // 20):
            i.no_frame(1800, "ARRIVED", "QUARANTINED")
            out.write(data[at : at + len(data) // 20])
        i.no_frame(3000, "ARRIVED", "QUARANTINED")
    (frame,) = i.until(lambda: i.clock.pass_time(600) or i.all("ARRIVED"), what="the file")
    assert (i.root / frame["path"]).read_bytes() == data


def test_a_file_renamed_into_place_is_taken_at_once(receiver):
    i = receiver(settle=3600, sweep=3600).start()
    part = i.put("one.dcm.part", image(1))
    i.no_frame(1800, "ARRIVED")
    part.rename(i.inbox / "one.dcm")
    i.wait("ARRIVED")
    outside = i.folder / "two.dcm"
    outside.write_bytes(image(2))
    outside.rename(i.inbox / "two.dcm")
    i.wait("ARRIVED", 2)


def test_new_folders_are_watched(receiver):
    i = receiver(sweep=3600).start()
    i.write("a/b/c/one.dcm", image(1))
    assert [f["path"][-5:] for f in i.collect(1)] == ["1.dcm"]
    (i.inbox / "a/b/late").mkdir()
    i.put("a/b/late/two.dcm", image(2))
    i.collect(1)
    moved = i.folder / "moved-in"
    (moved / "deep").mkdir(parents=True)
    (moved / "deep/three.dcm").write_bytes(image(3))
    moved.rename(i.inbox / "moved-in")
    i.wait("ARRIVED", 3)
    # The folder is known by its new name.
    i.store(i.all("ARRIVED")[-1])
    (i.inbox / "a").rename(i.inbox / "z")
    i.put("z/b/four.dcm", image(4))
    i.until(lambda: any(f["path"].endswith("4.dcm") for f in i.all("ARRIVED")), what="the fourth")


def test_ignored_file_names(receiver):
    i = receiver().start()
    for name in ["a.part", "b.TMP", "c.partial", ".hidden.dcm", ".folder/d.dcm", "x/.y/e.dcm"]:
        i.put(name, image(1))
    i.put("marker.dcm", image(2))
    assert [f["path"][-5:] for f in i.collect(1)] == ["2.dcm"]
    i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
    (i.inbox / "a.part").rename(i.inbox / "a.dcm")
    i.collect(1)


def test_links_and_special_files_are_skipped(receiver):
    i = receiver(after="delete").start()
    outside = i.folder / "outside"
    outside.mkdir()
    (outside / "precious.dcm").write_bytes(image(1))
    (i.inbox / "file.dcm").symlink_to(outside / "precious.dcm")
    (i.inbox / "folder").symlink_to(outside)
    os.mkfifo(i.inbox / "pipe.dcm")
    i.put("marker.dcm", image(2))
    i.collect(1)
    i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
    assert (outside / "precious.dcm").exists()
    lines = [line for line in i.text().splitlines() if "event=inbox.skipped" in line]
    assert len(lines) == 3


def test_odd_names(receiver):
    i = receiver().start()
    odd = [b"with space.dcm", b"line\nbreak.dcm", b"latin\xe9.dcm", "größe.dcm".encode(), b'quote".dcm', b"n" * 250]
    for number, name in enumerate(odd):
        with open(os.path.join(os.fsencode(i.inbox), name), "wb") as out:
            out.write(image(number) if number % 2 else b"junk")
    frames = i.collect(len(odd))
    junk = [f for f in frames if f.name == "QUARANTINED"]
    assert sorted(os.fsencode(os.path.basename(f["original"])) for f in junk) == sorted(odd[::2])
    for frame in junk:
        assert (i.root / frame["path"]).read_bytes() == b"junk"
        assert json.loads((i.root / (frame["path"] + ".reason.json")).read_text())["code"] == "NOT_DICOM"
    assert "line\nbreak" not in i.text()


# ------------------------------------------------------------------------------------------ foreign files


@functools.cache
def junk():
    good = image(1, size=32)
    return {
        "empty.dcm": (b"", "FILE_EMPTY"),
        "photo.dcm": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(3000), "NOT_DICOM"),
        "truncated.dcm": (good[: len(good) - 100], "FILE_TRUNCATED"),
        "letter.txt": (b"Dear colleague,\n" * 100, "NOT_DICOM"),
        "climbing.dcm": (image(2).replace(SERIES.encode(), b"../../../../../../../tmp/xx"), "UID_INVALID"),
        "dots.dcm": (image(3, SeriesInstanceUID=".."), "UID_INVALID"),
        "nuclear.dcm": (image(4, SOPClassUID="1.2.840.10008.5.1.4.1.1.20"), "SOP_CLASS_UNSUPPORTED"),
    }


@pytest.mark.parametrize("after", ["keep", "move", "delete"])
def test_foreign_files_are_quarantined_with_a_reason(receiver, after):
    i = receiver(after=after).start()
    for name, (data, _) in junk().items():
        i.put(name, data)
    frames = {}
    i.until(lambda: len(i.all("QUARANTINED")) == len(junk()), what="the quarantine")
    for frame in i.all("QUARANTINED"):
        frames[os.path.basename(frame["original"])] = frame
    # The originals must stay until the rows are on disk.
    assert sorted(p.name for p in i.inbox.iterdir()) == sorted(junk())
    for name, (data, code) in junk().items():
        frame = frames[name]
        assert frame["code"] == code, frame
        assert len(frame["message"]) > 10
        stored = i.root / frame["path"]
        assert stored.parent.parent == i.root / "quarantine"
        assert stored.parent.name == time.strftime("%Y%m%d", time.gmtime())
        assert re.fullmatch("[0-9a-f]{16}", stored.name), "the name of a file may be a patient's"
        assert stored.read_bytes() == data
        reason = json.loads(pathlib.Path(str(stored) + ".reason.json").read_text())
        assert (reason["code"], reason["original_path"]) == (code, str(i.inbox / name))
        assert reason["message"] == frame["message"] and reason["time"].endswith("Z")
        i.store(frame)
    expected = sorted(junk()) if after == "keep" else []
    i.until(lambda: sorted(p.name for p in i.inbox.iterdir()) == expected, what="the originals' end")
    i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
    assert i.stored() == []


def test_foreign_files_are_quarantined_once_despite_crashes(receiver):
    i = receiver().start()
    i.put("letter.txt", b"hello")
    first = i.collect(1)[0]
    assert i.stop() == 0
    # A run on a later day finds the file that an earlier one stored, and writes the missing reason.
    old = i.root / "quarantine" / "20200101"
    stored = i.root / first["path"]
    stored.parent.rename(old)
    reason = old / (stored.name + ".reason.json")
    reason.unlink()
    i.start()
    again = i.collect(1)[0]
    assert again["path"] == f"quarantine/20200101/{stored.name}"
    assert len([p for p in (i.root / "quarantine").rglob("*") if p.is_file()]) == 2
    assert json.loads(reason.read_text())["code"] == first["code"]
    # Other content under the same name is another file.
    i.put("letter.txt", b"hello again")
    assert i.collect(1)[0]["path"] != again["path"]


def test_known_files_are_not_reported_again(receiver):
    """Files that are new, removed or changed during the stop are reported, and so are files with a missing or
    different row."""
    i = receiver().start()
    names = ("same", "changed", "replaced", "removed", "renamed", "stale", "unknown")
    for number, name in enumerate(names, 1):
        i.put(f"sub/{name}.dcm", image(number))
    told = {pathlib.Path(f["original"]).stem: f for f in i.collect(len(names))}
    assert len({f["kept_key"] for f in told.values()}) == len({f["kept_look"] for f in told.values()}) == len(names)
    assert i.stop() == 0
    folder = i.inbox / "sub"
    i.put("sub/changed.dcm", image(2, SeriesDescription="Another text"))
    old = (folder / "replaced.dcm").stat()
    other = i.put("sub/other.part", image(3, SeriesDescription="Shape a"))
    os.truncate(other, old.st_size)
    os.utime(other, ns=(old.st_atime_ns, old.st_mtime_ns))
    other.rename(folder / "replaced.dcm")
    (folder / "removed.dcm").unlink()
    (folder / "renamed.dcm").rename(folder / "elsewhere.dcm")
    i.put("sub/added.dcm", image(8))
    rows = {name: frame for name, frame in told.items() if name != "unknown"}
    rows["stale"] = {**told["stale"], "kept_look": told["same"]["kept_look"]}
    i.start(known=rows.values())
    again = i.collect(6 + 7)  # the second number: files in series/
    originals = {pathlib.Path(f["original"]).stem for f in again if f["original"]}
    assert originals == {"changed", "replaced", "elsewhere", "stale", "unknown", "added"}
    assert {row["key"] for frame in i.all("FORGET") for row in frame["forgotten_files"]} == {
        told["removed"]["kept_key"], told["renamed"]["kept_key"]}
    assert i.all("FORGET")[0]["inbox"] == str(i.inbox)
    i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
    i.write("sub/same.dcm", image(1))  # known files stay watched
    assert i.collect(1)[0]["original"] == str(folder / "same.dcm")


def test_reception_waits_for_the_list_of_known_files(receiver):
    i = receiver()
    i.put("early.dcm", image(1))
    i.start(hello=False)
    i.wait("RECEIVING")
    i.no_frame(12, "ARRIVED")
    i.put("told.dcm", image(2))
    assert i.collect(1)[0]["original"] == str(i.inbox / "told.dcm"), "what inotify tells waits for nothing"
    i.known = []
    assert str(i.inbox / "early.dcm") in {f["original"] for f in i.collect(2)}  # and told.dcm, from series/


@pytest.mark.parametrize("after", ["keep", "delete", "move"])
def test_own_results_are_not_received(receiver, after):
    own = image(1, Manufacturer="Noctule", ManufacturerModelName="noctuled")
    i = receiver(after=after).start()
    i.put("sub/own.dcm", own)
    i.put("marker.dcm", image(2))
    assert [f["path"][-5:] for f in i.collect(1)] == ["2.dcm"]
    place = i.moved if after == "move" else i.inbox
    i.until(lambda: (place / "sub/own.dcm").exists(), what="the original")
    i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
    assert (place / "sub/own.dcm").read_bytes() == own
    assert len(list(i.folder.rglob("own.dcm"))) == 1
    assert len(i.stored()) == 1


# ------------------------------------------------------------------------------------------ duplicates


def test_a_resend_has_no_effect(receiver):
    i = receiver().start()
    i.put("one.dcm", image(1))
    first = i.collect(1)[0]
    before = (i.root / first["path"]).stat()
    i.put("again/one-more.dcm", image(1))
    (second,) = i.collect(1)
    assert (second.name, second["path"]) == ("ARRIVED", first["path"])
    after = (i.root / first["path"]).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert len(i.stored()) == 1


@pytest.mark.parametrize("after", ["keep", "delete"])
def test_different_bytes_under_a_known_uid_are_quarantined(receiver, after):
    i = receiver(after=after).start()
    i.put("one.dcm", image(1))
    first = i.collect(1)[0]
    other = image(1, SeriesDescription="Another text")
    i.put("two.dcm", other)
    frame = i.collect(1, names=("QUARANTINED",))[0]
    assert (frame["code"], frame["series"]) == ("DUPLICATE_UID_DIFFERENT", SERIES)
    assert (i.root / frame["path"]).read_bytes() == other
    assert (i.root / first["path"]).read_bytes() == image(1)
    if after == "delete":
        i.until(lambda: not list(i.inbox.iterdir()), what="the empty inbox")


def test_a_changed_original_is_a_conflict_too(receiver):
    i = receiver().start()
    i.put("one.dcm", image(1))
    i.collect(1)
    i.write("one.dcm", image(1, SeriesDescription="Edited in place"))
    assert i.collect(1, names=("QUARANTINED",))[0]["code"] == "DUPLICATE_UID_DIFFERENT"


def test_one_uid_in_two_series_is_two_files(receiver):
    i = receiver().start()
    i.put("a.dcm", image(1))
    i.put("b.dcm", image(1, series=SERIES + ".9", SOPInstanceUID=f"{SERIES}.100000001"))
    frames = i.collect(2)
    assert {f.name for f in frames} == {"ARRIVED"}
    assert len({f["sop_instance"] for f in frames}) == 1
    assert len(i.stored()) == 2


# ------------------------------------------------------------------------------------------ originals


def test_delete_waits_for_stored(receiver):
    i = receiver(after="delete").start()
    path = i.put("deep/one.dcm", image(1))
    frame = i.wait("ARRIVED")
    stored = i.root / frame["path"]
    i.no_frame_in_sweeps("QUARANTINED")
    assert path.exists() and stored.read_bytes() == image(1)
    i.store(frame)
    i.until(lambda: not path.exists(), what="the deletion")
    assert stored.read_bytes() == image(1) and stored.stat().st_nlink == 1


def test_delete_copies_files_that_others_may_change(receiver):
    i = receiver(after="delete").start()
    held = i.folder / "held.dcm"
    held.write_bytes(image(1))
    os.link(held, i.inbox / "one.dcm")
    frame = i.collect(1)[0]
    assert not held.samefile(i.root / frame["path"])
    i.until(lambda: not (i.inbox / "one.dcm").exists(), what="the deletion")


def test_move_keeps_the_way_and_never_overwrites(receiver):
    i = receiver(after="move").start()
    i.put("a/b/one.dcm", image(1))
    frame = i.wait("ARRIVED")
    assert (i.inbox / "a/b/one.dcm").exists() and not list(i.moved.iterdir())
    i.store(frame)
    i.until(lambda: (i.moved / "a/b/one.dcm").exists(), what="the move")
    assert not (i.inbox / "a/b/one.dcm").exists()
    i.put("a/b/one.dcm", image(2))
    i.collect(2)
    i.until(lambda: (i.moved / "a/b/one.dcm.1").exists(), what="the second move")
    assert (i.moved / "a/b/one.dcm").read_bytes() == image(1)
    assert (i.moved / "a/b/one.dcm.1").read_bytes() == image(2)


def test_a_changed_original_is_not_deleted(receiver):
    i = receiver(after="delete").start()
    path = i.put("one.dcm", image(1))
    frame = i.wait("ARRIVED")
    replacement = i.put("new.part", image(2))
    replacement.rename(path)
    i.store(frame)
    second = i.until(lambda: [f for f in i.all("ARRIVED") if f["path"].endswith("2.dcm")], what="the new one")[0]
    assert (i.root / second["path"]).read_bytes() == image(2)
    i.store(second)
    i.until(lambda: not path.exists(), what="its deletion")
    assert len(i.stored()) == 2


# ------------------------------------------------------------------------------------------ end and restart


def test_a_restart_reports_all_files_and_stores_each_once(receiver):
    i = receiver().start()
    for number in range(20):
        i.put(f"{number}.dcm", image(number))
    i.put("junk", b"junk")
    i.collect(21)
    before = {p: p.stat().st_ino for p in i.root.rglob("*") if p.is_file()}
    assert i.stop() == 0
    i.start()
    frames = i.collect(41)
    recovered = [f for f in frames if f.name == "ARRIVED" and f["source"] == "recovered"]
    assert len({f["path"] for f in recovered}) == len(recovered) == 20
    assert len([f for f in frames if f.name == "ARRIVED"]) == 40
    assert {p: p.stat().st_ino for p in i.root.rglob("*") if p.is_file()} == before


def test_recovery_uses_valid_files_and_leaves_others(receiver):
    i = receiver()
    series = i.root / "series" / SERIES
    series.mkdir(parents=True)
    (series / f"{SERIES}.100000001.dcm").write_bytes(image(1))
    (series / "wrong-name.dcm").write_bytes(image(2))
    (series / f"{SERIES}.100000003.dcm").write_bytes(b"rotten")
    (i.root / "series" / "stray.txt").write_bytes(b"stray")
    incoming = i.root / "incoming"
    incoming.mkdir()
    (incoming / "left-over.part").write_bytes(b"half")
    i.start()
    (frame,) = i.collect(1)
    assert (frame["source"], frame["path"]) == ("recovered", f"series/{SERIES}/{SERIES}.100000001.dcm")
    i.until(lambda: "event=recover.done files=1" in i.text(), what="the end of the recovery")
    assert len([line for line in i.text().splitlines() if "event=recover.skipped" in line]) == 3
    assert len(i.stored()) == 4
    assert list(incoming.iterdir()) == []


def test_pause_and_resume(receiver):
    i = receiver().start()
    i.put("one.dcm", image(1))
    first = i.wait("ARRIVED")
    i.peer.send("PAUSE", "disk low")
    i.until(lambda: "event=intake.paused" in i.text(), what="the pause")
    i.put("two.dcm", image(2))
    i.no_frame(12, "ARRIVED")
    i.peer.send("RESUME")
    # Reports without an answer are sent again, with the same words.
    i.collect(2)
    assert [dict(f) for f in i.all("ARRIVED")].count(dict(first)) == 2
    assert len(i.all("ARRIVED")) == 3


def test_signs_of_life_are_on_time_and_unanswered_frames_repeated(receiver):
    i = receiver().start()
    i.put("one.dcm", image(1))
    first = i.wait("ARRIVED")
    for _ in range(5):
        i.pass_time(SILENCE / 10)
    second = i.wait("ARRIVED", 2)
    assert dict(first) == dict(second)


def test_drain_finishes_current_files(receiver):
    i = receiver(after="delete").start()
    path = i.put("one.dcm", image(1))
    frame = i.wait("ARRIVED")
    i.peer.send("DRAIN")
    i.peer.read(0.5)
    assert len(i.all("ARRIVED")) == 1 and i.process.poll() is None
    i.store(frame)
    assert i.process.wait(60) == 0
    assert not path.exists()


def test_drain_does_not_wait_for_ever(receiver):
    i = receiver().start()
    i.put("one.dcm", image(1))
    i.wait("ARRIVED")
    i.peer.send("DRAIN")
    wait_for(lambda: i.clock.pass_time(1) or i.process.poll() == 0, what="the end of the intake")


@pytest.mark.parametrize("frame", [proto.encode("STORED", 1)[:-1] + b"", b"\x02\x00\x00\x00\xff\xff",
                                   b"\xff\xff\xff\x7f\x23\x00", proto.encode("HELLO", "x", "y"),
                                   b"\x0a\x00\x00\x00\x22\x00" + bytes(8) + proto.encode("ALIVE")])
def test_an_invalid_frame_ends_the_receiver(receiver, frame):
    i = receiver().start()
    i.peer.socket.sendall(frame)
    if frame == proto.encode("STORED", 1)[:-1]:
        i.peer.socket.shutdown(1)
        assert i.process.wait(10) == 0  # half a frame counts as the end of the pipe
    else:
        assert i.process.wait(10) == 1
        assert "event=intake." in i.text()


def arrives(i, number):
    """Plays the daemon until this image is reported. A replacement process reports all files again."""
    while not i.collect(1)[0]["path"].endswith(f"{number}.dcm"):
        pass


def test_reload_opens_and_closes_inboxes(receiver):
    i = receiver().start()
    i.put("one.dcm", image(1))
    i.collect(1)
    other = i.folder / "other"
    i.configure([other])
    i.peer.send("RELOAD", i.config.read_text())
    i.wait("HELLO", 2)  # its sandbox must allow the folder
    assert i.all("RENEW")[0]["why"] == "it needs access to a new folder"
    i.until(other.exists, what="the new inbox")
    (other / "two.dcm").write_bytes(image(2))
    arrives(i, 2)
    i.put("three.dcm", image(3))
    i.no_frame_in_sweeps("RENEW")
    (other / "four.dcm").write_bytes(image(4))
    arrives(i, 4)
    i.peer.send("RELOAD", "damaged {")
    i.wait("HELLO", 3)
    assert i.all("RENEW")[1]["why"].startswith("configuration:1: ")
    (other / "five.dcm").write_bytes(image(5))
    arrives(i, 5)
    assert not any(f["path"].endswith("3.dcm") for f in i.all("ARRIVED"))
    i.configure([other, i.inbox])
    i.peer.send("RELOAD", i.config.read_text())
    arrives(i, 3)
    assert i.stop() == 0


# ------------------------------------------------------------------------------------------ inspection


def inspect(i, paths, tolerance=0.01, number=7):
    i.peer.send("INSPECT", number, 3, 1, tolerance, 0, 1, "", [[str(path)] for path in paths])
    frame = i.until(lambda: [f for f in i.all("INSPECTED") if f["series_id"] == number], what="INSPECTED")[-1]
    assert frame["revision"] == 3
    return frame["stacks"]


def test_inspection(receiver, tmp_path):
    i = receiver().start()
    paths = []
    for number in range(1, 41):
        paths.append(tmp_path / f"{number}.dcm")
        paths[-1].write_bytes(image(number))
    (stack,) = inspect(i, random.Random(3).sample(paths, 40))
    assert (stack["accepted"], stack["planes"], stack["columns"], stack["rows"]) == (1, 40, 8, 8)
    assert stack["spacing"] == pytest.approx(2.0)
    assert (stack["name"], stack["code"], stack["file_a"]) == ("", "", "")
    (stack,) = inspect(i, paths[:20] + paths[21:], number=8)
    assert (stack["accepted"], stack["code"]) == (0, "MISSING_SLICE")
    assert stack["message"] and stack["file_a"]
    gone = tmp_path / "gone.dcm"
    (stack,) = inspect(i, [*paths, gone], number=9)
    assert (stack["accepted"], stack["code"]) == (0, "FILE_UNREADABLE")
    assert "gone.dcm" in stack["message"] + stack["file_a"]


# ------------------------------------------------------------------------------------------ failures


def test_sweeps_find_files_without_inotify(receiver):
    """As on a network share: the process runs in a user namespace without inotify instances."""
    wrapper = ["unshare", "--user", "--map-root-user", "sh", "-c",
               'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"', "sh"]
    if subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
        pytest.skip("user namespaces are not allowed here")
    i = receiver(wrapper=wrapper, sweep=0.5).start()
    assert "event=inbox.watch" in i.text()
    i.put("a/one.dcm", image(1))
    i.put("two.dcm", image(2))
    (i.inbox / "x.part").write_bytes(image(3))
    (i.inbox / "x.part").rename(i.inbox / "x.dcm")
    assert {f.name for f in i.collect(3)} == {"ARRIVED"}
    (i.inbox / "two.dcm").unlink()
    i.put("a/four.dcm", image(4))
    i.collect(1)
    assert max(swept(i)) == 500, "sweeps are all there is"


def test_an_unwritable_spool_delays_files_and_loses_no_file(receiver):
    i = receiver(after="delete").start()
    i.until(lambda: "event=recover.done" in i.text(), what="the start")
    series = i.root / "series"
    series.rmdir()
    series.write_text("in the way")
    path = i.put("one.dcm", image(1))
    i.until(lambda: "event=import.delayed" in i.text(), what="the delay")
    i.no_frame(12, "ARRIVED", "QUARANTINED")
    assert path.exists()
    series.unlink()
    frame = i.collect(1)[0]
    assert (i.root / frame["path"]).read_bytes() == image(1)
    assert list((i.root / "incoming").iterdir()) == []


@pytest.mark.parametrize("after", ["keep", "delete", "move"])
def test_a_full_disk_recovers_by_itself(receiver, tmp_path, after):
    with small_file_system(tmp_path / "small", 4) as small:
        i = receiver(after=after, root=small, min_free=0).start()
        ballast = small / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(small).free - 256 * 1024))
        originals = {i.put(f"{n}.dcm", image(n, size=256)): image(n, size=256) for n in range(8)}
        i.put("junk.bin", b"junk" * 100_000)
        i.until(lambda: "No space left" in i.text(), what="the log's word of the full disk")
        (frame,) = i.collect(1, names=("QUARANTINED",))
        assert frame["path"] == ""  # no room: valid files have priority
        assert all(path.exists() or len(i.stored()) for path in originals)
        ballast.unlink()
        for each in i.all("ARRIVED"):
            i.store(each)
        i.until(lambda: [i.store(f) for f in i.all("ARRIVED")] and len({f["path"] for f in i.all("ARRIVED")}) == 8,
                60, "the eight")
        stored = {p.read_bytes() for p in i.stored()}
        assert stored == set(originals.values())
        assert (i.inbox / "junk.bin").exists()
        i.until(lambda: list((small / "incoming").iterdir()) == [], what="an empty incoming")
        if after != "keep":
            i.until(lambda: [p.name for p in i.inbox.iterdir()] == ["junk.bin"], what="the originals' end")
        if after == "move":  # across file systems
            assert {p.read_bytes() for p in i.moved.rglob("*.dcm")} == set(originals.values())
        assert i.stop() == 0


def test_unreadable_files_and_folders_are_logged_once_and_retried(receiver):
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    wrapper = []
    if os.geteuid() == 0:
        wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    try:
        i = receiver(folder, wrapper=wrapper, sweep=0.3)
        i.inbox.mkdir()
        secret = i.put("secret.dcm", image(1))
        closed = i.put("closed/two.dcm", image(2)).parent
        if wrapper:
            for path in [folder, *folder.rglob("*")]:
                os.chown(path, 65534, 65534)
        secret.chmod(0)
        closed.chmod(0)
        i.start()
        frames = i.collect(2)
        assert {(f["original"], f["code"], f["path"]) for f in frames} == {
            (str(secret), "FILE_UNREADABLE", ""), (str(closed), "FILE_UNREADABLE", "")}
        i.no_frame_in_sweeps("ARRIVED", "QUARANTINED")
        secret.chmod(stat.S_IRUSR)
        closed.chmod(stat.S_IRWXU)
        i.until(lambda: len({f["path"] for f in i.all("ARRIVED")}) == 2, what="both")
        i.kill()
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
        shutil.rmtree(folder)


@pytest.mark.parametrize("place", ["root", "series"])
def test_an_inbox_linked_to_the_root_is_refused(receiver, tmp_path, place):
    """The link hides the loop from the check of the configuration."""
    root = tmp_path / "root"
    (root / "series" / SERIES).mkdir(parents=True)
    (root / "series" / SERIES / f"{SERIES}.100000001.dcm").write_bytes(image(1))
    link = tmp_path / "inbox"
    link.symlink_to(root if place == "root" else root / "series")
    i = receiver().start()
    assert "event=inbox.unusable" in i.text()
    i.until(lambda: "event=recover.done" in i.text(), what="the start")
    (root / "another.dcm").write_bytes(image(2))
    i.no_frame(12, "QUARANTINED")
    assert [f["source"] for f in i.all("ARRIVED")] == ["recovered"]


def test_sweeps_without_cause_are_slowed_down(receiver):
    i = receiver(sweep=0.2)
    for number in range(40):
        i.put(f"{number}/one.dcm", image(number))
    i.start()
    i.collect(40)

    def last_took():
        took = re.findall(r" ms=(\d+)", "\n".join(i.sweeps()))
        return len(took) >= 3 and int(took[-1])

    i.until(lambda: last_took() > 400, what="a sweep that takes its time")  # of CPU time it takes 5 ms
    (i.folder / "new").mkdir()
    (i.folder / "new" / "late.dcm").write_bytes(image(40))
    (i.folder / "new").rename(i.inbox / "new")
    assert i.collect(1)[0]["original"] == str(i.inbox / "new/late.dcm")


def test_a_missing_inbox_is_created(receiver):
    i = receiver().start()
    i.inbox.rmdir()
    i.until(lambda: i.clock.pass_time(0.5) or i.inbox.exists(), what="the inbox")
    i.put("one.dcm", image(1))
    i.collect(1)


def swept(i):
    """Returns the delays after each sweep until the next one, in ms."""
    return [int(word) for word in re.findall(r"next_ms=(\d+)", "\n".join(i.sweeps()))]


def test_sweeps_without_findings_become_rarer(receiver):
    i = receiver(sweep=0.2).start()
    i.put("a/one.dcm", image(1))
    i.collect(1)
    i.until(lambda: i.clock.pass_time(0.2) or (len(swept(i)) > 2 and swept(i)[-1] >= 3200), what="stretched sweeps")
    i.put("b/two.dcm", image(2))  # reported without a sweep
    (frame,) = i.collect(1)
    assert frame["sop_instance"].endswith("100000002")


def test_a_moved_inbox_is_noticed_at_once(receiver, tmp_path):
    i = receiver(sweep=3600).start()
    i.inbox.rename(tmp_path / "elsewhere")
    i.until(lambda: i.clock.pass_time(0.5) or i.inbox.exists(), what="a new inbox")
    i.put("one.dcm", image(1))
    i.collect(1)


def test_ten_thousand_files_at_once(receiver, tmp_path):
    count = 10_000
    source = tmp_path / "source"
    source.mkdir()
    template = image(0)
    old = f"{SERIES}.100000000".encode()
    for number in range(count):
        (source / f"{number}.dcm").write_bytes(template.replace(old, f"{SERIES}.{100000000 + number}".encode()))
    i = receiver(settle=0.3, sweep=2).start()
    began = time.monotonic()
    source.rename(i.inbox / "drop")
    told, position, asked, behind, rounds = set(), 0, None, 0, 0
    while len(told) < count:
        assert time.monotonic() - began < 600, f"{len(told)} of {count}; the log:\n{i.text()[-2000:]}"
        if asked is None:  # the reply to an empty inspection proves that the loop and the pool work
            rounds += 1
            asked = len(told)
            i.peer.send("INSPECT", rounds, 0, 1, 0.01, 0, 1, "", [[str(tmp_path / "none")]])
        i.peer.read(0.05)
        for frame in i.peer.frames[position:]:
            if frame.name == "ARRIVED":
                told.add(frame["path"])
                i.store(frame)
            elif frame.name == "INSPECTED":
                behind, asked = max(behind, len(told) - asked), None
        position = len(i.peer.frames)
    seconds = time.monotonic() - began
    with open(f"/proc/{i.process.pid}/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(f"{count} files in {seconds:.1f} s, {count / seconds:.0f}/s; {rounds} answers, {behind} files late at most; "
          f"peak {int(peak) // 1024} MiB")
    times = [t for f, t in zip(i.peer.frames, i.peer.times, strict=True) if f.name in ("HELLO", "ALIVE")]
    assert all(later - earlier < SILENCE for earlier, later in zip(times, times[1:], strict=False))
    assert behind < count // 10, "the loop or the pool does not answer while files come"
    assert len(i.stored()) == count
    assert len(i.all("QUARANTINED")) == 0
    # Sweeps of known files are cheap and report no file.
    i.no_frame_in_sweeps("ARRIVED")
    assert i.stop() == 0
