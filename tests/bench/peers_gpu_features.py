#!/usr/bin/env python3
"""Times bench_features on a GPU, flash-radiomics and fastrad on the same GPU, one after the other; one JSON line each.

    python3 tests/bench/peers_gpu_features.py --bench build/ci/bin/bench_features [--most SECONDS]

The volume is 512x512x300 int16, smooth with noise, 32 levels of 25: a ball of half a million voxels and an ellipsoid
of 24 million. Times each family alone, and "all" of a program. Noctule's data is resident on the GPU, but "all"
includes the upload. The peers take one call from arrays in memory, after a call on a small region that loads their
one-time data. Each is called --repeat times or until --most seconds, and the fastest call counts. A peer that is not
installed is skipped, with its name.
"""

import argparse
import functools
import importlib.util
import json
import os
import subprocess
import tempfile
import time

import numpy

from feature_volumes import ball, ellipsoid, volume_of

SIZE = 300, 512, 512  # z, y, x
SPACING = 0.8, 0.8, 1.0
FLASH = {"first-order": "firstorder", "morphology": "shape", "glcm": "glcm", "glrlm": "glrlm", "glszm": "glszm",
         "gldzm": "gldzm", "ngtdm": "ngtdm", "ngldm": "gldm", "intensity-histogram": "ih",
         "intensity-volume-histogram": "ivh"}
FASTRAD = {family: FLASH[family] for family in ("first-order", "morphology", "glcm", "glrlm", "glszm", "ngtdm", "ngldm")}


def flash_radiomics(classes, image, mask):
    """Returns a call that computes all features of the classes."""
    import SimpleITK
    from flash_radiomics import RadiomicsFeatureExtractor

    image, mask = map(SimpleITK.GetImageFromArray, (image, mask.astype(numpy.uint8)))
    for each in image, mask:
        each.SetSpacing(SPACING)
    extractor = RadiomicsFeatureExtractor(backend="cuda", binWidth=25, additionalInfo=False,
                                          hdf5OutputDirectory=tempfile.mkdtemp())
    extractor.disableAllFeatures()
    for each in classes:
        extractor.enableFeatureClassByName(each)
    return lambda: extractor.execute(image, mask)


def fastrad(classes, image, mask):
    import torch
    from fastrad import FeatureExtractor, FeatureSettings, Mask, MedicalImage

    image = MedicalImage(torch.from_numpy(image.astype(numpy.float32)), SPACING[::-1])
    mask = Mask(torch.from_numpy(mask.astype(numpy.float32)), SPACING[::-1])
    extractor = FeatureExtractor(FeatureSettings(feature_classes=list(classes), bin_width=25.0, device="cuda"))
    return lambda: (extractor.extract(image, mask), torch.cuda.synchronize())[0]


PEERS = {"flash_radiomics": (flash_radiomics, FLASH), "fastrad": (fastrad, FASTRAD)}


def fastest(call, repeat, most):
    begun, times = time.perf_counter(), []
    while not times or (len(times) < repeat and time.perf_counter() - begun < most):
        before = time.perf_counter()
        features = call()
        times.append(time.perf_counter() - before)
    return min(times), len(features)


def ours(arguments, image, mask):
    with tempfile.TemporaryDirectory() as folder:
        image.tofile(os.path.join(folder, "image"))
        mask.astype(numpy.uint8).tofile(os.path.join(folder, "mask"))
        output = subprocess.run([arguments.bench, "image", "mask", ",".join(map(str, SIZE[::-1])),
                                 ",".join(map(str, SPACING)), "cuda", str(max(3, arguments.repeat))],
                                check=True, stdout=subprocess.PIPE, cwd=folder).stdout
    return [json.loads(line) for line in output.splitlines()]


def peer(name, region, image, mask, arguments):
    begin, families = PEERS[name]
    for family, classes in [*((family, [each]) for family, each in families.items()), ("all", families.values())]:
        line = {"region": region, "peer": name, "family": family}
        try:
            seconds, features = fastest(begin(classes, image, mask), arguments.repeat, arguments.most)
            line.update(seconds=round(seconds, 5), features=features)
        except Exception as error:  # peers raise exceptions of their own
            line.update(failed=str(error)[:200])
        print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, type=os.path.abspath, help="the program bench_features")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--most", type=float, default=10, help="seconds for one family of a peer")
    parser.add_argument("--regions", nargs="+", default=("ball", "ellipsoid"))
    arguments = parser.parse_args()
    image = volume_of(SIZE, 32)
    regions = {"ball": functools.partial(ball, SIZE, 49), "ellipsoid": functools.partial(ellipsoid, SIZE)}
    small = numpy.s_[:16, :16, :16]
    installed = [name for name in PEERS if importlib.util.find_spec(name)]
    for name in PEERS:
        if name not in installed:
            print(json.dumps({"peer": name, "skipped": "it is not installed"}), flush=True)
            continue
        begin, families = PEERS[name]
        begin(families.values(), image[small].copy(), numpy.ones((16, 16, 16), bool))()
    for region in arguments.regions:
        mask = regions[region]()
        for line in ours(arguments, image, mask):
            print(json.dumps({"region": region, "voxels": int(mask.sum()), **line}), flush=True)
        for name in installed:
            peer(name, region, image, mask, arguments)


if __name__ == "__main__":
    main()
