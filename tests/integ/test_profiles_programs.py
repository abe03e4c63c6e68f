"""Profiles of programs: what a program of each kind receives, and that its output is taken. A recorder takes the place
of nnU-Net, TotalSegmentator, a module of mercure, and podman: it prints its arguments, environment and files, and writes
the output where such a program writes it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pydicom
import pytest
from conftest import phantom, put, wait_for
from test_container import ENGINES

VENV = pathlib.Path(sys.prefix).resolve()
TYPE = 'type = { code = "10200004"; scheme = "SCT"; meaning = "Liver"; };'
DIGEST = "sha256:" + "0" * 64

# Common to all recorders: prints what it received, as one line of JSON.
HEAD = """\
import gzip, json, os, pathlib, struct, sys

def record(folder):
    files = {path.name: path.read_bytes()[:4].hex() for path in pathlib.Path(folder).iterdir()}
    print("RECORD", json.dumps({"argv": sys.argv[1:], "environment": dict(os.environ), "files": files}), flush=True)

# Labels the voxels of at least 20 with 5.
def label(source, target):
    raw = gzip.open(source).read()
    head = bytearray(raw[:352])
    nx, ny, nz = struct.unpack_from("<3h", head, 42)
    values = struct.unpack_from("<%d%s" % (nx * ny * nz, {4: "h", 16: "f"}[struct.unpack_from("<h", head, 70)[0]]), raw, 352)
    struct.pack_into("<hh", head, 70, 2, 8)
    struct.pack_into("<ff", head, 112, 1.0, 0.0)
    with gzip.open(target, "wb") as out:
        out.write(bytes(head) + bytes(5 * (value >= 20) for value in values))
"""
# nnU-Net takes each NAME_0000.nii.gz of its input folder, and writes NAME.nii.gz.
NNUNET = HEAD + """
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
record(arguments["-i"])
for case in pathlib.Path(arguments["-i"]).glob("*_0000.nii.gz"):
    label(case, arguments["-o"] + "/" + case.name[:-len("_0000.nii.gz")] + ".nii.gz")
"""
TOTALSEGMENTATOR = HEAD + """
assert sys.argv[1] == "-i" and sys.argv[3] == "-o" and sys.argv[5] == "--ml"
record(os.path.dirname(sys.argv[2]))
label(sys.argv[2], sys.argv[4])
"""
# A module of mercure reads DICOM files and task.json, and writes DICOM files.
MERCURE = HEAD + """
import highdicom, numpy, pydicom
folder = pathlib.Path(os.environ["MERCURE_IN_DIR"])
record(folder)
json.loads((folder / "task.json").read_text())["process"]["settings"]
images = sorted((pydicom.dcmread(path) for path in folder.glob("*.dcm")), key=lambda image: image.ImagePositionPatient[2])
code = highdicom.sr.CodedConcept("10200004", "SCT", "Liver")
described = highdicom.seg.SegmentDescription(
    1, "liver", code, code, highdicom.seg.SegmentAlgorithmTypeValues.AUTOMATIC,
    highdicom.AlgorithmIdentificationSequence("net", highdicom.sr.CodedConcept("123110", "DCM", "Artificial Intelligence"), "1"))
mask = numpy.stack([image.pixel_array * float(image.RescaleSlope) + float(image.RescaleIntercept) >= 20 for image in images])
highdicom.seg.Segmentation(
    images, mask, highdicom.seg.SegmentationTypeValues.BINARY, [described], pydicom.uid.generate_uid(), 1,
    pydicom.uid.generate_uid(), 1, "m", "m", "1", "1").save_as(os.environ["MERCURE_OUT_DIR"] + "/seg.dcm")
"""
# podman run ... -v HOST:CONTAINER ... IMAGE /in /out
PODMAN = HEAD + """
if sys.argv[1] != "run":
    sys.exit(0)
mounts = {words[1]: words[0] for words in (sys.argv[i + 1].split(":") for i, word in enumerate(sys.argv) if word == "-v")}
record(mounts["/in"])
label(mounts["/in"] + "/case.nii.gz", mounts["/out"] + "/any-name.nii.gz")
"""


class Kind:
    """A program of a profile: the recorder, its arguments, further settings, and the label value of its output."""

    def __init__(self, source, arguments, settings="", value=5, name="recorder.py", python="/usr/bin/python3"):
        self.source, self.arguments, self.settings = source, arguments, settings
        self.value, self.name, self.python = value, name, python

    def command(self, folder):
        script = folder / self.name
        script.write_text(f"#!{self.python}\n{self.source}")
        script.chmod(0o755)
        return script


KINDS = {
    "nnunet": Kind(NNUNET, ["-i", "{in}", "-o", "{out}", "-d", "27"],
                   'weights = [ "FOLDER" ]; environment = [ "nnUNet_results=FOLDER" ];'),
    "totalsegmentator": Kind(TOTALSEGMENTATOR, ["-i", "{in_file}", "-o", "{out_file}", "--ml"], 'weights = [ "FOLDER" ];'),
    "mercure": Kind(MERCURE, [], f'weights = [ "FOLDER" ]; read = [ "{VENV}" ];', value=1, python=f"{VENV}/bin/python"),
    "podman": Kind(PODMAN, ["run", "--rm", "--network", "none", "-v", "{in}:/in:ro", "-v", "{out}:/out",
                            f"registry/net@{DIGEST}", "/in", "/out"], name="podman"),
}


def configure(d, folder, profile, kind):
    words = ", ".join(f'"{word}"' for word in [kind.command(folder), *kind.arguments])
    d.config.write_text(f"""
        root = "{d.root}";
        inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
        series = {{ quiet_seconds = 60.0; complete_seconds = 0.3; }};
        min_free_mib = 1;
        jobs = {{ max_attempts = 1; }};
        programs = ( {{ name = "net"; profile = "{profile}"; command = [ {words} ];
          algorithm = {{ name = "net"; version = "1"; }}; max_attempts = 1;
          {kind.settings.replace("FOLDER", str(folder))} }} );
        pipelines = ( {{ name = "one"; unreviewed = true; segments = ( {{ label = "Liver"; method = "program"; program = "net";
          value = {kind.value}; {TYPE} }} ); }} );
        rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "one"; }} );""")


def voxels_of(files):
    """Returns the number of voxels of at least 20 HU."""
    images = map(pydicom.dcmread, files)
    return sum(int((image.pixel_array * float(image.RescaleSlope) + float(image.RescaleIntercept) >= 20).sum())
               for image in images)


def run_kind(d, tmp_path, profile, kind):
    """Runs one series. Returns its files, and the text that the program wrote."""
    folder = tmp_path / "tool"
    folder.mkdir()
    configure(d, folder, profile, kind)
    d.start()
    files = phantom(tmp_path / "series", "--size", "40x32x12")
    put(files, d.inbox / "series")
    (job,) = d.wait_jobs(seconds=180)
    assert job["state"] == "DONE", (tuple(job), d.log.read_text()[-4000:])
    (run,) = d.query("SELECT * FROM v_program_runs")
    assert d.query("SELECT voxels FROM v_segments")[0]["voxels"] == run["labelled_voxels"] == voxels_of(files) > 0
    return files, (d.root / run["output_path"]).read_text(), run


@pytest.mark.parametrize("profile", KINDS)
def test_a_program_of_the_profile_receives_what_it_expects(daemon, tmp_path, profile):
    d = daemon(settings="root = 1;")
    files, text, run = run_kind(d, tmp_path, profile, KINDS[profile])
    (line,) = [line for line in text.splitlines() if line.startswith("RECORD ")]
    got = json.loads(line.removeprefix("RECORD "))
    known = {"PATH", "HOME", "TMPDIR", "LANG", "CUDA_VISIBLE_DEVICES"}
    own = {"nnunet": {"nnUNet_results"}, "mercure": {"MERCURE_IN_DIR", "MERCURE_OUT_DIR"}}.get(profile, set())
    if profile != "podman":  # podman needs those of its own storage
        assert known <= set(got["environment"]) and set(got["environment"]) - known - {"LC_CTYPE", "PWD"} == own
        assert got["environment"]["CUDA_VISIBLE_DEVICES"] == ""
        assert run["sandbox"] in ("bubblewrap", "own", "weak")
    gzip = "1f8b"
    if profile == "nnunet":
        assert {name: magic[:4] for name, magic in got["files"].items()} == {"case_0000.nii.gz": gzip}
        assert got["argv"][::2] == ["-i", "-o", "-d"] and got["argv"][5] == "27"
        assert pathlib.Path(got["argv"][1]).name == "in" and pathlib.Path(got["argv"][3]).name == "out"
    elif profile == "totalsegmentator":
        assert {name: magic[:4] for name, magic in got["files"].items()} == {"case.nii.gz": gzip}
        assert got["argv"][1].endswith("/in/case.nii.gz") and got["argv"][3].endswith("/out/case.nii.gz")
        assert got["argv"][4:] == ["--ml"]
    elif profile == "mercure":
        assert set(got["files"]) == {"task.json", *(f"{i + 1:06}.dcm" for i in range(len(files)))}
        assert got["argv"] == []
    else:
        words = got["argv"]
        assert run["sandbox"] == "container"
        assert words[0] == "run" and words[words.index("--network") + 1] == "none" and f"registry/net@{DIGEST}" in words
        assert words[-2:] == ["/in", "/out"] and any(word.endswith("/in:/in:ro") for word in words)
        assert {name: magic[:4] for name, magic in got["files"].items()} == {"case.nii.gz": gzip}
    assert d.stop() == 0


# The program of the container: labels each voxel of at least 20 with 5, in a file without compression.
IN_CONTAINER = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    static unsigned char head[352];
    int16_t size[3], type[2] = {2, 8};
    float scale[2] = {1, 0};
    FILE *in = fopen("/in/case.nii", "rb"), *out = fopen("/out/case.nii", "wb");
    if (!in || !out || fread(head, 1, 352, in) != 352)
        return 1;
    memcpy(size, head + 42, 6);
    const int is_float = head[70] == 16;
    memcpy(head + 70, type, 4);
    memcpy(head + 112, scale, 8);
    fwrite(head, 1, 352, out);
    for (long i = 0; i < (long)size[0] * size[1] * size[2]; i++) {
        int16_t whole = 0;
        float value = 0;
        if (fread(is_float ? (void *)&value : &whole, is_float ? 4 : 2, 1, in) != 1)
            return 1;
        fputc(5 * ((is_float ? value : whole) >= 20), out);
    }
    puts("in a container");
    return fclose(out) != 0;
}
"""


@pytest.fixture
def container(tmp_path):
    """Returns podman's options and an image by its digest, if containers can be run here."""
    podman = [engine for engine in ENGINES if engine.program[0] == "podman"]
    if not shutil.which("podman") or os.geteuid() != 0:
        pytest.skip("podman is not here, or this is not root")
    (tmp_path / "label.c").write_text(IN_CONTAINER)
    built = subprocess.run(["cc", "-static", "-o", tmp_path / "label", tmp_path / "label.c"], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"no static program can be built here: {built.stderr[-200:]}")
    subprocess.run(["tar", "-C", tmp_path, "-cf", tmp_path / "image.tar", "label"], check=True)
    name = f"localhost/noctule-label-{os.getpid()}"
    if podman[0]("import", "-q", tmp_path / "image.tar", name, check=False).returncode:
        pytest.skip("podman cannot import an image here")
    try:
        digest = podman[0]("image", "inspect", "--format", "{{.Digest}}", name).stdout.strip()
        works = [engine for engine in podman if engine.runs(name, "/label", check=False).returncode == 1]
        if not works:
            pytest.skip("containers cannot be run here: " + podman[-1].runs(name, "/label", check=False).stderr.strip()[-200:])
        yield works[0].program[1:], works[0].options, f"{name}@{digest}"
    finally:
        podman[0]("image", "rm", "-f", name, check=False)


def test_podman_itself(daemon, tmp_path, container):
    before, options, image = container
    d = daemon(settings="root = 1;")
    kind = Kind("", [*before, "run", "--rm", "--pull", "never", "--network", "none", *options, "-v", "{in}:/in:ro",
                     "-v", "{out}:/out", image, "/label"], 'input_file = "{case}.nii";')
    kind.command = lambda folder: shutil.which("podman")
    _, text, run = run_kind(d, tmp_path, "podman", kind)
    assert "in a container" in text and run["sandbox"] == "container"
    wait_for(lambda: image not in subprocess.run(["podman", "ps", "-a", "--format", "{{.Image}}"], text=True,
                                                 capture_output=True).stdout, 60, "the end of the container")


def test_settings_of_the_profiles(daemon):
    """A site gives only what its profile lacks; a setting of the site wins."""
    d = daemon(settings="root = 1;")
    d.config.write_text("""programs = ( { name = "net"; profile = "nnunet"; command = [ "/n", "{in}", "{out}" ];
        output_file = "case.nii"; algorithm = { name = "net"; version = "1"; }; } );""")
    text = d.ctl("check-config", "--print", d.config).stdout
    assert 'input_file = "{case}_0000.nii.gz";' in text and 'output_file = "case.nii";' in text and "profile" not in text
