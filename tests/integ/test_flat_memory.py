"""Memory of large 2-D images: what a job takes while it reads each encoding is at most what it says that it needs."""

import json
import re
import shutil
import subprocess

import numpy as np
import pydicom
import pytest
from pydicom.uid import UID, DeflatedExplicitVRLittleEndian, ExplicitVRBigEndian, JPEG2000Lossless, RLELossless
from conftest import BIN
from test_flat import COMPRESSED, RNG, US, compressed, image, palette, part, save

ROWS, COLUMNS = 2600, 3000  # several parts of the reader
MIB = 1 << 20


def grey(path, syntax, bits=16):
    ds = image(path, RNG.integers(0, 2**bits, (ROWS, COLUMNS)).astype(f"u{bits // 8}"), US)
    ds.compress(UID(syntax), generate_instance_uid=False)
    save(ds, path)


def colour(path, planar=0, syntax=None):
    stored = RNG.integers(0, 256, (ROWS, COLUMNS, 3)).astype(np.uint8)
    data = (np.moveaxis(stored, -1, 0) if planar else stored).tobytes()
    ds = image(path, stored, US, "RGB", PixelData=data, PlanarConfiguration=planar)
    if syntax == ExplicitVRBigEndian:
        swapped = np.frombuffer(data, "<u2").byteswap().tobytes()
        ds.PixelData, ds["PixelData"].VR, ds.file_meta.TransferSyntaxUID = swapped, "OW", syntax
        pydicom.dcmwrite(path, ds, implicit_vr=False, little_endian=False)
    elif syntax:
        ds.file_meta.TransferSyntaxUID = syntax
        save(ds, path)


def with_palette(path):
    table = RNG.integers(0, 65536, (65536, 3))
    save(palette(image(path, RNG.integers(0, 65536, (ROWS, COLUMNS)).astype(np.uint16), US, "PALETTE COLOR"), table), path)


MAKERS = {
    "rgb": colour, "planar": lambda path: colour(path, 1), "palette": with_palette,
    "deflated-planar": lambda path: colour(path, 1, DeflatedExplicitVRLittleEndian),
    "big-endian": lambda path: colour(path, 0, ExplicitVRBigEndian),
    **{kind: lambda path, kind=kind: compressed(path, kind, RNG.integers(0, 256, (ROWS, COLUMNS, 3)).astype(np.uint8))
       for kind in COMPRESSED},
    "grey-rle": lambda path: grey(path, RLELossless), "grey-jpeg2000": lambda path: grey(path, JPEG2000Lossless),
    "grey-rle-8": lambda path: grey(path, RLELossless, 8), "grey-jpeg2000-8": lambda path: grey(path, JPEG2000Lossless, 8),
}


def run(tmp_path, path, memory_mib, status):
    """Runs a job, forked by a shell: the high-water mark of a process begins with that of the one that started it."""
    config = tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "flat"; flat = true; results = [ "seg" ]; '
                      f'segments = ( {part(0, 65535)} ); memory_mib = {memory_mib:.1f}; }} );')
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    done = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", BIN / "noctule", "--config", config, "run", "--pipeline", "flat",
                           "--output", tmp_path / "out", path], text=True, capture_output=True, timeout=600)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else json.loads(next((tmp_path / "out").rglob("job.json")).read_text())["peak_bytes"]


@pytest.mark.parametrize("kind", MAKERS)
def test_the_memory_of_reading_is_predicted(tmp_path, kind):
    """A small image has what does not depend on the size. Smaller limits are refused, with the memory that is needed."""
    MAKERS[kind](tmp_path / "a.dcm")
    image(tmp_path / "small.dcm", RNG.integers(0, 256, (64, 64)).astype(np.uint8), US)
    needed = int(re.search(r"need (\d+) MiB of memory, and a job may take 1\b", run(tmp_path, tmp_path / "a.dcm", 1, 1))[1])
    taken = (run(tmp_path, tmp_path / "a.dcm", needed + 1, 0) - run(tmp_path, tmp_path / "small.dcm", 0, 0)) / MIB
    assert taken <= needed
