"""Job attempts on a shared folder: `noctule run-job` as a scheduler starts it, with the test as the daemon
(tests/tools/attempt.c). After any end the manifest is valid or absent."""

import glob
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import BIN, phantom, run_program, small_file_system, stalling_file_system, wait_for
from test_worker import GREEDY, SETTINGS, TEXTURE, Worker

DONE, RETRY, REJECT, STOPPED = range(4)
EMPTY = SETTINGS.replace("[ 0.0, 80.0 ]", "[ 20000.0, 20001.0 ]")


def state_of(process):
    """Returns the state in /proc: "T" is stopped."""
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


class Site:
    """A shared folder, the scratch of a node, and the outbox of the daemon."""

    def __init__(self, folder):
        self.folder = folder
        self.share, self.scratch, self.outbox = (folder / name for name in ("share", "scratch", "outbox"))
        for each in (self.share, self.scratch, self.outbox):
            each.mkdir(exist_ok=True)

    def write_job(self, number, files, settings):
        settings = settings.replace("\n", "\n\t")
        path = self.folder / f"{number}.job"
        path.write_text("\n".join(
            ["noctule-job 1", f"id {number}", "stack ", f"output {self.folder}/root/outbox/{number}", "device N1",
             f"settings {settings}", *(f"input {file}" for file in files), f"end {len(files)}"]) + "\n")
        return path

    def make(self, number, files, settings=SETTINGS, attempt=1, seconds=60, threads=2, shared=""):
        made = run_program("attempt", "make", self.share, self.write_job(number, files, settings), attempt, seconds,
                           threads, shared)
        return pathlib.Path(made.stdout.strip())

    def start(self, *folders, scratch=None, environment=None, **options):
        return subprocess.Popen([BIN / "noctule", "run-job", "--scratch", scratch or self.scratch, "--series", self.share / "series",
                                 *folders], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
                                env={**os.environ, **(environment or {})}, **options)

    def run(self, *folders, status=0, **options):
        process = self.start(*folders, **options)
        told, _ = process.communicate(timeout=120)
        assert process.returncode == status and "call_unknown" not in told, told
        return told

    def collect(self, folder, output=None, check=True):
        """Returns the content of the manifest, and its files in the outbox. For a failure returns the code."""
        output = output or self.outbox / folder.name
        done = run_program("attempt", "collect", self.share, folder, output, check=False)
        assert not check or done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.partition(":")[0]

    def ended(self, folder, verdict=DONE, code=""):
        told = self.collect(folder)
        assert (told["verdict"], told["code"]) == (verdict, code), told
        return told

    def assert_clean(self):
        assert list(self.scratch.iterdir()) == []


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def bytes_of(folder):
    """Returns the bytes of every file except the record, which contains times and memory."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "job.json"}


def same_record(a, b):
    """Returns whether the records are equal except for measured values."""
    measured = ("finished", "seconds", "peak_bytes")
    a, b = (json.loads((folder / "job.json").read_text()) for folder in (a, b))
    for record in (a, b):
        for key in measured:
            del record[key]
    return a == b


ALL = TEXTURE + """
results = [ "seg", "codes", "sr", "pmap" ];"""


@pytest.mark.parametrize("settings, shared", [(SETTINGS, True), (ALL, False), (EMPTY, False)])
def test_results_equal_those_of_a_worker(site, tmp_path, settings, shared):
    """Byte for byte, on a node with another name, time zone, language and folder, with copied and uncopied inputs."""
    files = phantom(tmp_path / "share" / "series", "--size", "48x40x8")
    worker = Worker(tmp_path)
    worker.run(7, files, settings)
    worker.until(lambda: worker.done(), what="DONE")
    worker.peer.close()
    worker.process.wait(60)
    folder = site.make(7, files, settings, shared=str(tmp_path / "share") if shared else "")
    assert (folder / "inputs").exists() != shared
    assert "has a manifest" in site.run(folder, environment={
        "TZ": "Pacific/Auckland", "LC_ALL": "tr_TR.UTF-8", "SLURMD_NODENAME": "c17", "USER": "nobody", "HOME": "/"})
    told, local = site.collect(folder), worker.done()[7]
    assert told["node"] == "c17" and (told["verdict"], told["code"]) == (DONE, local["code"])
    assert told["results"] == [row["file"] for row in local["results"]]
    assert told["measurements"] == sum(f.name in ("FEATURES", "HISTOGRAM", "SEGMENTS", "BREACHES") for f in worker.peer.frames)
    here, there = tmp_path / "root" / "outbox" / "7", site.outbox / folder.name
    assert bytes_of(here) == bytes_of(there)
    assert same_record(here, there)
    site.assert_clean()


def test_a_second_run_has_no_effect(site, tmp_path):
    folder = site.make(1, phantom(tmp_path / "in", "--size", "32x32x6"))
    site.run(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    shutil.rmtree(folder / "inputs")
    site.run(folder)
    assert {path for path in before if "inputs" not in path.parts} == set(folder.rglob("*"))
    site.ended(folder)


def test_several_series_end_independently(site, tmp_path):
    """A series with too few slices, one with a changed input, and one without a specification."""
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    first, altered, last = (site.make(number, files) for number in (1, 3, 5))
    rejected = site.make(2, files[:2], SETTINGS.replace("min_slices = 1", "min_slices = 3"))
    with open(next((altered / "inputs").iterdir()), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    told = site.run(first, rejected, site.share, altered, last, status=1)
    assert "was left unfinished: ATTEMPT_OTHER" in told
    site.ended(first)
    site.ended(rejected, REJECT, "TOO_FEW_SLICES")
    site.ended(altered, RETRY, "ATTEMPT_FILE_DIFFERS")
    site.ended(last)
    site.assert_clean()


@pytest.mark.parametrize("what, code", [("attempt", "ATTEMPT_DAMAGED"), ("job", "ATTEMPT_FILE_DIFFERS")])
def test_a_damaged_or_missing_specification_is_refused(site, tmp_path, what, code):
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    cut, gone = (site.make(number, files) for number in (1, 2))
    os.truncate(cut / what, (cut / what).stat().st_size - 1)
    (gone / what).unlink()
    site.run(cut, gone)
    site.ended(cut, RETRY, code)
    site.ended(gone, RETRY, "IO_ERROR" if what == "attempt" else code)


def test_a_missing_input_fails_the_job(site, tmp_path):
    files = phantom(site.share / "series", "--size", "32x32x6")
    folder = site.make(1, files, shared=str(site.share))
    files[3].unlink()
    site.run(folder)
    told = site.ended(folder, RETRY, "ATTEMPT_FILE_DIFFERS")
    assert "is missing" in told["message"]


POINTS = ["step_before_check", "worker_before_read", "worker_after_compute", "worker_in_write", "worker_after_rename",
          "step_in_copy", "worker_after_features_before_done", "step_before_manifest", "step_after_manifest"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_and_run_again(site, tmp_path, point):
    """The manifest exists or not. After the second run it exists, and remains of the first run have no effect."""
    folder = site.make(1, phantom(tmp_path / "in", "--size", "32x32x6"), TEXTURE)
    site.run(folder, status=-signal.SIGKILL, environment={"NOCTULE_CRASH_AT": point})
    assert (folder / "manifest").exists() == (point == "step_after_manifest")
    site.run(folder)
    assert site.ended(folder)["measurements"] > 0
    if point != "step_after_manifest":
        site.assert_clean()


def test_killed_at_any_moment(site, tmp_path):
    folder = site.make(1, phantom(tmp_path / "in", "--size", "64x64x20"), TEXTURE)
    begun = time.monotonic()
    site.run(site.make(2, phantom(tmp_path / "other", "--size", "64x64x20"), TEXTURE))
    whole = time.monotonic() - begun
    chance = random.Random(17)
    for _ in range(20):
        process = site.start(folder)
        time.sleep(chance.uniform(0, whole))  # the moment varies on purpose
        process.kill()
        process.communicate()
        if (folder / "manifest").exists():
            break
    site.run(folder)
    site.ended(folder)


def test_two_at_once_leave_one_manifest(site, tmp_path):
    """A scheduler may run an attempt twice. The first to end makes the manifest, with its own files."""
    files = phantom(tmp_path / "in", "--size", "48x48x12")
    for number in range(1, 6):
        folder = site.make(number, files, TEXTURE)
        steps = [site.start(folder, scratch=tmp_path) for _ in range(3)]
        for step in steps:
            told, _ = step.communicate(timeout=120)
            assert step.returncode == 0 and "has a manifest" in told, told
        told = site.ended(folder)
        assert told["run"] in {path.name for path in folder.glob("run-*")}
        assert {path.name for path in folder.iterdir() if not path.match("run-*")} == {"attempt", "inputs", "job", "manifest"}


def test_a_removed_folder_is_not_made_again(site, tmp_path):
    """The job was given up during the computation. Its folder must not be made again."""
    folder = site.make(1, phantom(tmp_path / "in", "--size", "64x64x20"))
    process = site.start(folder, environment={"NOCTULE_CRASH_AT": "worker_in_write", "NOCTULE_CRASH_STOPS": ""})
    wait_for(lambda: state_of(process) == "T", 60, "a job that writes its results")
    assert any(site.scratch.rglob("results/.*.part"))
    folder.rename(tmp_path / "gone")
    process.send_signal(signal.SIGCONT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "was voided" in told, told
    assert list(site.share.iterdir()) == [] and not (tmp_path / "gone" / "manifest").exists()
    site.assert_clean()


def test_sigterm_stops_the_step(site, tmp_path):
    """The running job is left without a manifest, because the scheduler has the reason of its end. The following jobs
    are returned."""
    folders = [site.make(number, phantom(tmp_path / f"in{number}", "--size", "128x128x20"), threads=1)
               for number in (1, 2)]
    process = site.start(*folders, environment={"NOCTULE_CRASH_AT": "worker_before_read", "NOCTULE_CRASH_STOPS": ""})
    wait_for(lambda: state_of(process) == "T", 60, "a job that runs")
    process.send_signal(signal.SIGTERM)  # pending until the process continues
    process.send_signal(signal.SIGCONT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and "was left unfinished: STOPPED" in told, told
    assert not (folders[0] / "manifest").exists()
    site.ended(folders[1], STOPPED, "STOPPED")
    site.assert_clean()
    site.run(folders[0])
    site.ended(folders[0])


def test_the_step_stops_at_its_time_limit(site, tmp_path):
    files = phantom(tmp_path / "in", "--size", "256x256x16")
    late, next_one = site.make(1, files, GREEDY, threads=1, seconds=0.1), site.make(2, files)
    site.run(late, next_one)
    assert "0.1 s" in site.ended(late, RETRY, "DEADLINE_EXCEEDED")["message"]
    site.ended(next_one)
    site.assert_clean()


def test_a_full_scratch_fails_the_job(site, tmp_path):
    files = phantom(tmp_path / "in", "--size", "128x128x20")
    folder = site.make(1, files, ALL)
    with small_file_system(tmp_path / "small", 1) as small:
        (small / "ballast").write_bytes(b"\0" * 1000_000)
        site.run(folder, scratch=small)
        assert [path.name for path in small.iterdir()] == ["ballast"]
    site.ended(folder, RETRY, "DISK_FULL")


def test_a_full_share_leaves_a_valid_manifest_or_none(tmp_path):
    """If there is room, a manifest reports the failure, otherwise there is no manifest. A manifest must never name
    missing files."""
    files = phantom(tmp_path / "in", "--size", "128x128x20")
    with small_file_system(tmp_path / "share", 2) as share:
        site = Site(tmp_path)
        series = share / "series"
        shutil.copytree(tmp_path / "in", series)
        ends = set()
        for number, left in enumerate((0, 4096, 8192, 16384, 65536, 1 << 20), 1):
            folder = site.make(number, sorted(series.rglob("*.dcm")), shared=str(share))
            free = os.statvfs(share).f_bavail * os.statvfs(share).f_bsize
            (share / "ballast").write_bytes(b"\0" * max(free - left, 0))
            process = site.start(folder)
            told, _ = process.communicate(timeout=120)
            if (folder / "manifest").exists():
                assert process.returncode == 0, told
                ends.add(site.collect(folder)["code"])
            else:
                assert process.returncode == 1 and "was left unfinished: DISK_FULL" in told, told
                ends.add("left")
            (share / "ballast").unlink()
            shutil.rmtree(folder)
        assert {"left", "DISK_FULL", ""} == ends


def test_a_read_only_share(tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    with small_file_system(tmp_path / "share", 4) as share:
        site = Site(tmp_path)
        folder = site.make(1, files)
        subprocess.run(["mount", "-o", "remount,ro", share], check=True)
        told = site.run(folder, status=1)
        assert "was left unfinished: OUTPUT_UNWRITABLE" in told
        subprocess.run(["mount", "-o", "remount,rw", share], check=True)
        site.run(folder)
        site.ended(folder)


def test_a_stalled_share_delays_the_step(tmp_path):
    """The step stalls with the share. After the stall it reports the end of the job, although it received SIGTERM
    meanwhile."""
    files = phantom(tmp_path / "in", "--size", "256x256x40")
    with stalling_file_system(tmp_path / "share", 64) as share:
        site = Site(tmp_path)
        folder = site.make(1, files)
        process = site.start(folder, environment={
            "NOCTULE_CRASH_AT": "step_in_copy", "NOCTULE_CRASH_STOPS": "", "NOCTULE_CRASH_ONCE": str(tmp_path / "once")})
        wait_for(lambda: state_of(process) == "T", 60, "the copying of results")
        share.stall()
        try:
            process.send_signal(signal.SIGCONT)
            wait_for(lambda: share.holds(process) or process.poll() is not None, 60, "a step that waits")
            assert process.poll() is None and not (folder / "manifest").exists()
            process.send_signal(signal.SIGTERM)
        finally:
            share.resume()
        told, _ = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGTERM and "has a manifest" in told, told
        site.ended(folder)
        site.assert_clean()


def test_a_manifest_of_another_attempt_or_altered_files_are_not_collected(site, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    first, second = site.make(1, files, attempt=1), site.make(1, files, attempt=2)
    site.run(first)
    shutil.copy(first / "manifest", second / "manifest")
    assert site.collect(second, check=False) == "ATTEMPT_OTHER"
    (second / "manifest").unlink()
    site.run(second)
    told = site.collect(second)
    with open(second / told["run"] / "seg.dcm", "r+b") as file:
        file.seek(200)
        file.write(b"x")
    assert site.collect(second, site.outbox / "x", check=False) == "ATTEMPT_FILE_DIFFERS"
    assert not (site.outbox / "x").exists()


# Name, call, path, and whether a step may do it.
DEEDS = """
job             read    {own}/job           yes
own-make        make    {own}/intruder      yes
series          read    {series}            yes
library         list    /usr/share          yes
series-write    write   {series}            no
other-job       read    {other}/job         no
other-make      make    {other}/intruder    no
share-list      list    {share}             no
share-make      make    {share}/intruder    no
node-make       make    {scratch}/intruder  no
node-list       list    {scratch}           no
accounts        read    /etc/passwd         no
memory          read    /proc/{test}/mem    no
run             run     {own}/program       no
fork            fork    -                   no
trace           trace   -                   no
signal          signal  -                   no
mount           mount   -                   no
chmod           chmod   -                   no
listen          listen  0                   no
connect         connect {port}              no
"""


@pytest.mark.skipif(bool(glob.glob("/dev/nvidia*")), reason="a step beside a GPU's driver may make more calls")
@pytest.mark.parametrize("kernel", ["-1 1", "0 0"], ids=["this", "old"])
def test_a_step_is_confined(site, tmp_path, kernel):
    """Exploited code in a step reaches its own attempt and the files below --series. On a kernel without confinement
    it reaches all files."""
    files = phantom(site.share / "series", "--size", "32x32x6")
    own, other = (site.make(number, files, shared=str(site.share)) for number in (1, 2))
    (own / "program").write_bytes(bytes(64))
    (own / "program").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        rows = [row.split() for row in DEEDS.strip().format(
            own=own, other=other, share=site.share, scratch=site.scratch, series=files[0], test=os.getpid(),
            port=listener.getsockname()[1]).splitlines()]
        (tmp_path / "deeds").write_text("".join(" ".join(row[:3]) + "\n" for row in rows))
        process = site.start(own, environment={
            "LD_PRELOAD": str(BIN / "libnoctule_intruder.so"), "NOCTULE_DEEDS": str(tmp_path / "deeds"),
            "NOCTULE_KERNEL": kernel, "NOCTULE_CRASH_AT": "worker_after_compute", "NOCTULE_CRASH_STOPS": ""})
        wait_for(lambda: state_of(process) == "T", 60, "a step that has computed")
        process.send_signal(signal.SIGUSR2)
        process.send_signal(signal.SIGCONT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0, told
    done = {name for name, error in re.findall(r"deed=(\S+) errno=(\d+)", told) if error == "0"}
    assert done == {row[0] for row in rows if row[3] == "yes" or kernel == "0 0"}, told
    site.ended(own)
    site.assert_clean()


def test_neither_configuration_nor_database_is_read(site, tmp_path):
    folder = site.make(1, phantom(tmp_path / "in", "--size", "32x32x6"))
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    subprocess.run([strace, "-f", "-e", "trace=open,openat,connect", "-o", trace, BIN / "noctule", "run-job",
                    "--scratch", site.scratch, folder], check=True, capture_output=True)
    opened = trace.read_text()
    assert "noctule.conf" not in opened and "noctule.db" not in opened and "connect(" not in opened
