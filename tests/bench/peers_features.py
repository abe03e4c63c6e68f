#!/usr/bin/env python3
"""Times each family of features of bench_features beside pyradiomics' class of it, in processor seconds.

    build/venv/bin/python tests/bench/peers_features.py --bench build/release/bin/bench_features

Values are smooth with noise, int16, in an ellipsoid of 8.2 million; levels are 25 wide. What pyradiomics does not
have stands by itself. --shape: its shape, too, which takes minutes. One JSON line a family.
"""

import argparse
import json
import logging
import os
import subprocess
import tempfile
import time

import numpy
import SimpleITK
from radiomics import firstorder, glcm, gldm, glrlm, glszm, ngtdm, setVerbosity, shape

PEERS = {"first-order": firstorder.RadiomicsFirstOrder, "glcm": glcm.RadiomicsGLCM, "glrlm": glrlm.RadiomicsGLRLM,
         "glszm": glszm.RadiomicsGLSZM, "ngtdm": ngtdm.RadiomicsNGTDM, "ngldm": gldm.RadiomicsGLDM,
         "morphology": shape.RadiomicsShape}
SPACING = 0.8, 0.8, 1.0


def volume_of(size, levels):
    """[z, y, x]: sums of noise, rescaled, and noise again; as many levels of 25."""
    random = numpy.random.default_rng(1)
    noise = random.integers(0, 4096, size, numpy.int16)
    smooth = numpy.cumsum(numpy.cumsum(noise - 2047.5, axis=1), axis=2)
    smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min())
    return (smooth * 25 * (levels - 4) + noise % 100 - 500).astype(numpy.int16)


def ellipsoid(size):
    axes = numpy.ogrid[tuple(slice(-1, 1, count * 1j) for count in size)]
    return sum(axis**2 for axis in axes) <= 0.71


def processor_of(family, image, mask):
    image, mask = map(SimpleITK.GetImageFromArray, (image, mask.astype(numpy.uint8)))
    for each in image, mask:
        each.SetSpacing(SPACING)
    used = time.process_time()
    features = PEERS[family](image, mask, binWidth=25)
    features.enableAllFeatures()
    features.execute()
    return time.process_time() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program bench_features")
    parser.add_argument("--size", type=int, nargs=3, default=(512, 512, 100), help="columns, rows, slices")
    parser.add_argument("--levels", type=int, default=32)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--repeat", default="3")
    parser.add_argument("--shape", action="store_true")
    options = parser.parse_args()
    setVerbosity(logging.ERROR)
    image = volume_of(tuple(options.size[::-1]), options.levels)
    mask = ellipsoid(image.shape)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("voxels", "mask")]
        image.tofile(paths[0])
        mask.astype(numpy.uint8).tofile(paths[1])
        result = subprocess.run([options.bench, *paths, ",".join(map(str, options.size)), ",".join(map(str, SPACING)),
                                 options.threads, options.repeat], check=True, stdout=subprocess.PIPE, text=True)
    for line in map(json.loads, result.stdout.splitlines()):
        line["voxels"] = int(mask.sum())
        if line["family"] in PEERS and (line["family"] != "morphology" or options.shape):
            line["pyradiomics_processor_seconds"] = round(processor_of(line["family"], image, mask), 3)
            line["ratio"] = round(line["pyradiomics_processor_seconds"] / line["processor_seconds"], 1)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
