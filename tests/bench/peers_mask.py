"""Compares steps of masks with scipy.ndimage, cc3d, SimpleITK and edt (PyPI), on the same voxels in the same run.

    build/venv/bin/python tests/bench/peers_mask.py build/ci/bin/noctule-bench [REPEAT]

edt is not in tests/requirements.txt: `pip install edt==3.1.2`. Prints one line per step: median wall-clock
milliseconds with all CPUs, and CPU milliseconds of one thread, which a busy machine changes less. The peers run on
one thread. `differ`: number of different voxels.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import cc3d
import edt
import numpy
import SimpleITK
from scipy import ndimage

EXTENT, SPACING = (300, 512, 512), (0.8, 0.8, 1.0)


def ball(mm):
    i, j, k = (numpy.arange(-int(mm / step) - 1, int(mm / step) + 2) * step for step in SPACING)
    i, j, k = i[None, None, :], j[None, :, None], k[:, None, None]
    return (i * i + j * j) + k * k <= mm * mm


def largest(labels):
    return labels == numpy.bincount(labels.ravel())[1:].argmax() + 1


def scipy_keep(volume):
    return largest(ndimage.label(volume)[0])


def cc3d_keep(volume):
    return largest(cc3d.connected_components(volume, connectivity=6))


def on_images(work):
    """Runs a step of SimpleITK. The time includes conversion to its images and back."""
    def peer(volume):
        image = SimpleITK.GetImageFromArray(volume.astype(numpy.uint8))
        return SimpleITK.GetArrayFromImage(work(image)).astype(bool)
    return peer


def sitk_keep(image):
    return SimpleITK.RelabelComponent(SimpleITK.ConnectedComponent(image)) == 1


def sitk_open(mm):
    """Opens with a ball in voxels; an ellipsoid of the same size in mm differs slightly from Noctule's ball."""
    radius = [int(mm / step) for step in SPACING]
    return lambda image: SimpleITK.BinaryMorphologicalOpening(image, radius, SimpleITK.sitkBall)


def edt_open(mm):
    """Opens with a ball by distances. Everything beyond the volume is outside."""
    def distance(volume, border):
        return edt.edt(volume, anisotropy=SPACING[::-1], black_border=border, parallel=1)
    return lambda volume: distance(distance(volume, True) <= mm, False) <= mm


def fill_slices(volume):
    return numpy.stack([ndimage.binary_fill_holes(plane) for plane in volume])


CASES = {
    "keep-1-body": {"scipy": scipy_keep, "cc3d": cc3d_keep, "sitk": on_images(sitk_keep)},
    "keep-1-noise": {"scipy": scipy_keep, "cc3d": cc3d_keep, "sitk": on_images(sitk_keep)},
    "fill-slices-body": {"scipy": fill_slices},
    "fill-volume-body": {"scipy": ndimage.binary_fill_holes, "sitk": on_images(SimpleITK.BinaryFillhole)},
    "open-3-body": {"scipy": lambda volume: ndimage.binary_opening(volume, ball(3.0)), "sitk": on_images(sitk_open(3.0)),
                    "edt": edt_open(3.0)},
    "open-10-body": {"sitk": on_images(sitk_open(10.0)), "edt": edt_open(10.0)},  # scipy takes minutes
    "close-5-lungs": {},
    "cut-bridges-3-lungs": {},
    "preset-body": {},
    "preset-lungs": {},
}


def bench(program, case, out, repeat, *options):
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    text = subprocess.run([program, "--backend", "cpu", "--repeat", str(repeat), "--mask-out", out, *options,
                           f"mask/{case}"], check=True, capture_output=True, text=True).stdout
    bits = numpy.fromfile(out, numpy.uint8).reshape(EXTENT[0], EXTENT[1], -1)
    return (json.loads(text), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun,
            numpy.unpackbits(bits, axis=2, bitorder="little").astype(bool))


def main():
    program, repeat = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.NamedTemporaryFile() as out:
        for case, peers in CASES.items():
            ours, _, result = bench(program, case, out.name, repeat)
            once = bench(program, case, out.name, 1, "--threads", "1")[1]
            more = bench(program, case, out.name, 1 + repeat, "--threads", "1")[1]
            print(f"{case:20} noctule {1e3 * ours['median_seconds']:9.1f} ms, processor "
                  f"{1e3 * (more - once) / repeat:9.1f} ms", flush=True)
            for name, peer in peers.items():
                volume = bench(program, f"copy-{case.split('-')[-1]}", out.name, 1)[2]
                walls, cpus = [], []
                for _ in range(min(repeat, 3)):
                    wall, cpu = time.perf_counter(), time.process_time()
                    theirs = peer(volume)
                    walls.append(time.perf_counter() - wall)
                    cpus.append(time.process_time() - cpu)
                print(f"{'':20} {name:7} {1e3 * statistics.median(walls):9.1f} ms, processor "
                      f"{1e3 * min(cpus):9.1f} ms, differ {int((theirs != result).sum())}", flush=True)


main()
