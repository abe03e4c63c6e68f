"""`noctule run` with programs of the site: the same bytes as the service, stored masks, and every way to end."""

import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import textwrap

import numpy as np
import pydicom
import pytest
from conftest import BIN, EMULATED, drop, needs_emulator, phantom, wait_for

SIZE = ("--size", "40x32x10")
GPU = "GPU-aaaaaaaa-0000-4000-8000-000000000000"

# A program with the standard library only: reads the NIfTI file of its input and writes `labels(values)`.
PROGRAM = """
import array, glob, gzip, os, struct, sys, time
raw = gzip.open(glob.glob(sys.argv[1] + "/*.nii.gz")[0]).read()
nx, ny, nz = struct.unpack_from("<3h", raw, 42)
kind, = struct.unpack_from("<h", raw, 70)
begin = int(struct.unpack_from("<f", raw, 108)[0])
slope, intercept = struct.unpack_from("<2f", raw, 112)
head, values = bytearray(raw[:begin]), array.array({4: "h", 16: "f"}[kind])
values.frombytes(raw[begin:])
values = [slope * value + intercept for value in values]
print("program", os.path.basename(sys.argv[0]), flush=True)

def write(labels):
    struct.pack_into("<2h", head, 70, 2, 8)
    struct.pack_into("<2f", head, 112, 1, 0)
    gzip.open(sys.argv[2] + "/case.nii.gz", "wb", 1).write(bytes(head) + bytes(labels))
"""

BONE = "write(1 if value >= 250 else 0 for value in values)\n"
# A second run would choose another threshold.
SPLIT = """
threshold = struct.unpack("<H", os.urandom(2))[0] % 200
write(1 if value >= threshold else 2 for value in values)
"""
PICKY = "if nx == 32:\n    print('this one not', flush=True)\n    sys.exit(3)\n" + BONE
HANG = "if os.fork() == 0:\n    os.setsid()\ntime.sleep(600)\n"

TYPE = 'type = { code = "272673000"; scheme = "SCT"; meaning = "Bone"; };'


def program_row(folder, name, text, **options):
    """Writes a program of the site and returns its row."""
    place = pathlib.Path(folder) / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "program.py").write_text(PROGRAM + text)
    more = " ".join(f"{key} = {value};" for key, value in options.items())
    return (f'  {{ name = "{name}"; command = [ "/usr/bin/python3", "{place}/program.py", "{{in}}", "{{out}}" ];\n'
            f'    algorithm = {{ name = "{name}"; version = "1.0"; }}; weights = [ "{place}" ];\n'
            f'    environment = [ "NOCTULE_TEST_PROGRAM={folder}" ]; {more} }}')


def programs(*rows):
    return "programs = (\n" + ",\n".join(rows) + " );\n"


def pipeline(name, program, *values, extra="unreviewed = true;"):
    """Returns a pipeline with a segment per label value."""
    segments = ", ".join(f'{{ label = "Label {value}"; method = "program"; program = "{program}"; value = {value}; {TYPE} }}'
                         for value in values or (1,))
    return f'  {{ name = "{name}"; min_slices = 1; {extra}\n    segments = ( {segments} ); }}'


def left_over(folder):
    """Returns the processes of programs in this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"NOCTULE_TEST_PROGRAM={folder}".encode() in (path / "environ").read_bytes():
                found.append((path.name, (path / "cmdline").read_bytes()))
        except OSError:
            pass
    return found


class Site:
    bin, more = BIN, {}

    def __init__(self, folder):
        self.folder = folder
        self.config, self.temporary = folder / "noctule.conf", folder / "tmp"
        self.temporary.mkdir()
        self.config.write_text(
            f'root = "{folder}/root";\n'
            + programs(program_row(folder, "bone", BONE), program_row(folder, "split", SPLIT),
                       program_row(folder, "picky", PICKY), program_row(folder, "hang", HANG))
            + "pipelines = (\n" + ",\n".join([pipeline("bone", "bone"), pipeline("split", "split", 1, 2),
                                              pipeline("picky", "picky"), pipeline("hang", "hang")])
            + ");\nrules = ();\n")

    def command(self, pipeline, output, *arguments):
        return [self.bin / "noctule", "--config", self.config, "run", "--pipeline", pipeline, "--output", output,
                *map(str, arguments)]

    @property
    def environment(self):
        return {**os.environ, "TMPDIR": str(self.temporary), **self.more}

    def run(self, *arguments, status=0):
        result = subprocess.run(self.command(*arguments), text=True, capture_output=True, timeout=120,
                                env=self.environment)
        assert result.returncode == status, result.stdout + result.stderr
        assert not list(self.temporary.iterdir()) and not left_over(self.folder)
        assert "call_unknown" not in result.stderr
        return result

    def start(self, *arguments):
        return subprocess.Popen(self.command(*arguments), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment, start_new_session=True)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def segments(path):
    """Returns {label: voxels} of a SEG."""
    seg = pydicom.dcmread(path)
    names = {item.SegmentNumber: item.SegmentLabel for item in seg.SegmentSequence}
    pixels = np.unpackbits(np.frombuffer(seg.PixelData, np.uint8), bitorder="little")
    size = seg.Rows * seg.Columns
    voxels = dict.fromkeys(names.values(), 0)
    for number, frame in enumerate(seg.PerFrameFunctionalGroupsSequence):
        segment = frame.SegmentIdentificationSequence[0].ReferencedSegmentNumber
        voxels[names[segment]] += int(pixels[number * size:(number + 1) * size].sum())
    return voxels


def truth(files):
    """Returns the number of voxels of at least 250 HU."""
    count = 0
    for path in files:
        dataset = pydicom.dcmread(path)
        values = dataset.pixel_array * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
        count += int((values >= 250).sum())
    return count


def test_results_equal_those_of_the_service(daemon, tmp_path):
    """From the same mask, and from a program that repeats its bytes."""
    d = daemon()
    text = d.config.read_text()
    d.config.write_text(text.replace('pipelines = (', programs(program_row(tmp_path, "bone", BONE)) + "pipelines = (\n"
                                     + pipeline("bone", "bone") + ",").replace('pipeline = "head-ct"', 'pipeline = "bone"'))
    files = phantom(tmp_path / "in", *SIZE)
    d.start()
    drop(files, d.inbox)
    (job,) = d.wait_jobs(1)
    assert job["state"] == "DONE", dict(job)
    (row,) = d.query("SELECT * FROM v_program_runs")
    stored = d.root / "programs" / str(row["run"]) / "mask"
    wanted = (d.root / "outbox" / str(job["job"]) / "seg.dcm").read_bytes()
    (tmp_path / "run").mkdir()
    site = Site(tmp_path / "run")
    site.config, site.folder = d.config, tmp_path
    printed = site.run("bone", tmp_path / "a", "--keep-masks", tmp_path / "in").stdout
    assert f"{tmp_path}/a/bone.mask\n" in printed
    assert (tmp_path / "a" / "seg.dcm").read_bytes() == wanted
    assert (tmp_path / "a" / "bone.mask").read_bytes() == stored.read_bytes()
    for number, mask in enumerate((stored, tmp_path / "a" / "bone.mask")):
        site.run("bone", tmp_path / f"b{number}", "--mask", f"bone={mask}", tmp_path / "in")
        assert (tmp_path / f"b{number}" / "seg.dcm").read_bytes() == wanted
        assert not (tmp_path / f"b{number}" / "bone.mask").exists()
    assert segments(tmp_path / "a" / "seg.dcm") == {"Label 1": truth(files)}


def test_a_program_runs_once_for_all_segments(site, tmp_path):
    phantom(tmp_path / "in", *SIZE)
    site.run("split", tmp_path / "a", "--keep-masks", tmp_path / "in")
    found = segments(tmp_path / "a" / "seg.dcm")
    assert sum(found.values()) == 40 * 32 * 10 and all(found.values())
    site.run("split", tmp_path / "b", "--mask", f"split={tmp_path}/a/split.mask", tmp_path / "in")
    assert (tmp_path / "b" / "seg.dcm").read_bytes() == (tmp_path / "a" / "seg.dcm").read_bytes()


def test_a_warm_program_serves_all_series(site, tmp_path):
    """Its second case gets the label 2, which a program that was started again would not write."""
    row = program_row(tmp_path, "counter", "", warm="true").replace(', "{in}", "{out}"', "")
    (tmp_path / "counter" / "program.py").write_text(
        "import sys\nfor number, line in enumerate(sys.stdin, 1):\n    sys.argv[1:] = line.split()\n"
        + textwrap.indent(PROGRAM + "write(number for value in values)\nprint('OK', flush=True)\n", "    "))
    text = site.config.read_text().replace("programs = (\n", "programs = (\n" + row + ",\n")
    site.config.write_text(text.replace("pipelines = (\n", "pipelines = (\n" + pipeline("counter", "counter", 1, 2, 3) + ","))
    for number in range(3):
        phantom(tmp_path / "in" / str(number), *SIZE, "--seed", number)
    jobs = json.loads(site.run("counter", tmp_path / "out", tmp_path / "in", "--json").stdout)["jobs"]
    assert [job["outcome"] for job in jobs] == ["DONE"] * 3
    for number, job in enumerate(jobs, 1):
        found = segments(pathlib.Path(job["output"]) / "seg.dcm")
        assert {label for label, voxels in found.items() if voxels} == {f"Label {number}"}


def test_a_failing_program_refuses_its_series_only(site, tmp_path):
    phantom(tmp_path / "in" / "a", "--size", "32x32x6", "--seed", "1")
    phantom(tmp_path / "in" / "b", *SIZE, "--seed", "2")
    phantom(tmp_path / "in" / "c", "--size", "44x32x6", "--seed", "3")
    result = site.run("picky", tmp_path / "out", tmp_path / "in", "--json", "--keep-masks", status=1)
    jobs = json.loads(result.stdout)["jobs"]
    assert [(job["outcome"], job["code"]) for job in jobs] == [("REJECT", "PROGRAM_FAILED"), ("DONE", ""), ("DONE", "")]
    assert [os.path.exists(job["output"]) for job in jobs] == [False, True, True]
    for job in jobs[1:]:
        assert sorted(path.name for path in pathlib.Path(job["output"]).iterdir()) == [
            "job.json", "picky.mask", "preview.png", "seg.dcm"]
    lines = result.stderr.splitlines()
    at = lines.index("noctule: end of the output of picky:")
    assert lines[at + 1:at + 3] == ["program program.py", "this one not"]
    assert lines[at + 3].endswith(": PROGRAM_FAILED: picky: the program ended with exit status 3")


@pytest.mark.parametrize("number, group", [(signal.SIGINT, True), (signal.SIGTERM, False)], ids=["ctrl-c", "term"])
def test_an_interrupt_leaves_no_process_and_no_folder(site, tmp_path, number, group):
    phantom(tmp_path / "in", *SIZE)
    process = site.start("hang", tmp_path / "out", tmp_path / "in")
    wait_for(lambda: len(left_over(tmp_path)) >= 2, 60, "the program and its child")
    os.killpg(process.pid, number) if group else process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 128 + number, complaint
    assert not left_over(tmp_path)
    assert not list(site.temporary.iterdir()) and not (tmp_path / "out").exists()


def test_a_killed_command_leaves_no_process(site, tmp_path):
    """The next one removes its folder."""
    phantom(tmp_path / "in", *SIZE)
    process = site.start("hang", tmp_path / "out", tmp_path / "in")
    wait_for(lambda: len(left_over(tmp_path)) >= 2, 60, "the program and its child")
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not left_over(tmp_path), 60, "the end of the program")
    site.run("bone", tmp_path / "out", tmp_path / "in")


@pytest.mark.skipif(bool(glob.glob("/dev/nvidia*")), reason="this machine has a GPU")
def test_a_program_that_needs_a_gpu_is_refused_without_one(site, tmp_path):
    """As by the service, also if it has a cpu_command, which serves a lack of GPU memory only."""
    phantom(tmp_path / "in", *SIZE)
    text = site.config.read_text().replace('weights = [ "' + str(tmp_path / "bone"),
                                           'gpu = "whole"; cpu_command = [ "/bin/true", "{in}", "{out}" ]; weights = [ "'
                                           + str(tmp_path / "bone"))
    site.config.write_text(text)
    result = site.run("bone", tmp_path / "out", tmp_path / "in", status=1)
    assert "PROGRAM_UNAVAILABLE: no GPU of this machine can be used for bone" in result.stderr


@needs_emulator
def test_a_lack_of_gpu_memory_leads_to_the_cpu_command(site, tmp_path):
    """First the share, then the whole GPU, then the other command without a GPU."""
    phantom(tmp_path / "in", *SIZE)
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / GPU).touch()
    script = tmp_path / "bone" / "program.py"
    script.write_text("import os\nif os.environ['CUDA_VISIBLE_DEVICES']:\n"
                      f"    assert os.environ['CUDA_VISIBLE_DEVICES'] == '{GPU}'\n"
                      "    raise SystemExit('RuntimeError: CUDA out of memory')\n" + script.read_text())
    place = f'weights = [ "{tmp_path}/bone'
    command = f'cpu_command = [ "/usr/bin/python3", "{script}", "{{in}}", "{{out}}" ];'
    site.config.write_text(site.config.read_text().replace(
        place, f'gpu = "shared"; gpu_memory_mib = 100; {command} {place}'))
    site.bin, site.more = EMULATED, {"NOCTULE_EMULATOR_GPUS": str(tmp_path / "gpus")}
    result = site.run("bone", tmp_path / "out", tmp_path / "in")
    assert [line for line in result.stderr.splitlines() if "GPU memory" in line] == [
        "noctule: bone ran out of GPU memory: it runs once more, with the whole GPU",
        "noctule: bone ran out of GPU memory: it runs once more, with its cpu_command"]


def test_wrong_masks_are_refused(site, tmp_path):
    phantom(tmp_path / "in", *SIZE)
    phantom(tmp_path / "other", "--size", "40x32x9")
    site.run("bone", tmp_path / "a", "--keep-masks", tmp_path / "in")
    mask = tmp_path / "a" / "bone.mask"
    for given, status, text in (
            ("bone", 2, "--mask takes NAME=FILE"),
            (f"split={mask}", 3, 'pipeline bone has no segment of a program "split"'),
            (f"bone={tmp_path}/none", 3, f"{tmp_path}/none: No such file or directory")):
        result = site.run("bone", tmp_path / "b", "--mask", given, tmp_path / "in", status=status)
        assert text in result.stderr and not (tmp_path / "b").exists()
    result = site.run("bone", tmp_path / "b", "--mask", f"bone={mask}", tmp_path / "other", status=1)
    assert "PROGRAM_MASK_DAMAGED" in result.stderr
    shutil.copytree(tmp_path / "other", tmp_path / "in" / "other")
    result = site.run("bone", tmp_path / "b", "--mask", f"bone={mask}", tmp_path / "in", status=2)
    assert "--mask is of one stack, and there are 2: select it with --stack" in result.stderr
    mask.write_bytes(mask.read_bytes()[:-1])
    shutil.rmtree(tmp_path / "in" / "other")
    result = site.run("bone", tmp_path / "b", "--mask", f"bone={mask}", tmp_path / "in", status=1)
    assert "PROGRAM_MASK_DAMAGED" in result.stderr and not (tmp_path / "b").exists()
