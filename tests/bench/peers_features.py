#!/usr/bin/env python3
"""Times each family of features of bench_features, pyradiomics' class and MIRP's family, in CPU seconds.

    build/venv/bin/python tests/bench/peers_features.py --bench build/ci/bin/bench_features

Values are smooth with noise, int16, in an ellipsoid of 8.2 million voxels; levels are 25 wide. Families that pyradiomics
lacks have no peer. --shape: also its shape, which takes minutes. --mirp: also MIRP, which takes longer still (--size
128 128 100). MIRP's morphology has Moran's I and Geary's C of samples; here they are spatial-correlation, of all pairs.
Prints one JSON line per family.
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
from mirp import extract_features
from mirp.data_import.import_image import import_image
from mirp.data_import.import_mask import import_mask
from radiomics import firstorder, glcm, gldm, glrlm, glszm, ngtdm, setVerbosity, shape

from feature_volumes import ellipsoid, volume_of

PEERS = {"first-order": firstorder.RadiomicsFirstOrder, "glcm": glcm.RadiomicsGLCM, "glrlm": glrlm.RadiomicsGLRLM,
         "glszm": glszm.RadiomicsGLSZM, "ngtdm": ngtdm.RadiomicsNGTDM, "ngldm": gldm.RadiomicsGLDM,
         "morphology": shape.RadiomicsShape}
MIRP = {"morphology": "morphology", "local-intensity": "local_intensity", "first-order": "statistics",
        "intensity-histogram": "intensity_histogram", "intensity-volume-histogram": "intensity_volume_histogram",
        "glcm": "glcm", "glrlm": "glrlm", "glszm": "glszm", "gldzm": "gldzm", "ngtdm": "ngtdm", "ngldm": "ngldm", "all": "all"}
SPACING = 0.8, 0.8, 1.0


def processor_of(family, image, mask):
    image, mask = map(SimpleITK.GetImageFromArray, (image, mask.astype(numpy.uint8)))
    for each in image, mask:
        each.SetSpacing(SPACING)
    used = time.process_time()
    features = PEERS[family](image, mask, binWidth=25)
    features.enableAllFeatures()
    features.execute()
    return time.process_time() - used


def processor_of_mirp(family, image, mask):
    (values,), (region,) = import_image(image.astype(float), image_modality="ct"), import_mask(mask.astype(int))
    values.image_spacing = region.image_spacing = SPACING[::-1]
    used = time.process_time()
    extract_features(image=values, mask=region, base_feature_families=MIRP[family],
                     base_discretisation_method="fixed_bin_size_pyradiomics", base_discretisation_bin_width=25.0, ibsi_compliant=False,
                     **{f"{each}_spatial_method": "3d_average" for each in ("glcm", "glrlm")},
                     **{f"{each}_spatial_method": "3d" for each in ("glszm", "gldzm", "ngtdm", "ngldm")})
    return time.process_time() - used


def compare(line, name, seconds):
    line[f"{name}_processor_seconds"] = round(seconds, 3)
    line[f"{name}_ratio"] = round(seconds / line["processor_seconds"], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program bench_features")
    parser.add_argument("--size", type=int, nargs=3, default=(512, 512, 100), help="columns, rows, slices")
    parser.add_argument("--levels", type=int, default=32)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--repeat", default="3")
    parser.add_argument("--shape", action="store_true")
    parser.add_argument("--mirp", action="store_true")
    options = parser.parse_args()
    setVerbosity(logging.ERROR)
    logging.disable(logging.WARNING)
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
            compare(line, "pyradiomics", processor_of(line["family"], image, mask))
        if line["family"] in MIRP and options.mirp:
            compare(line, "mirp", processor_of_mirp(line["family"], image, mask))
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
