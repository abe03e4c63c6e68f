#!/usr/bin/env python3
"""Times image types and features of pyradiomics: `noctule run --image FILE --mask FILE` with the pipeline that `noctule profiles
--pyradiomics` prints of a parameter file, and pyradiomics with the same file. From NRRD files to 93 features of each image.

    build/venv/bin/python tests/bench/peers_image_types.py --bin build/ci/bin [--size 160 160 100] [--only Wavelet] [--backend cuda]

Values are smooth with noise, int16, in an ellipsoid in an eighth of the volume. Seconds are those of the processor and of the clock,
of processes that have loaded their modules. All features are compared: a difference of more than 1e-6 fails the run. Prints one JSON
line per image type, and one of all but LBP3D in one job. pyradiomics' LBP3D takes 10 kB per voxel, and its icosphere is that of
the tests. `_job` is the least of the seconds that eight jobs report which run one after the other in one process, as in the service,
where the GPU and its memory are there before the job. `pyradiomics_job_ratio` compares it with the clock of pyradiomics.
"""

import argparse
import csv
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy
import SimpleITK

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integ"))
from feature_volumes import ellipsoid, volume_of
from peers_filters import Clock, record

TYPES = {"Original": "{}", "Square": "{}", "SquareRoot": "{}", "Logarithm": "{}", "Exponential": "{}", "Gradient": "{}",
         "LBP2D": "{ binWidth: 1 }", "LBP3D": "{ binWidth: 0.37 }", "LoG": "{ sigma: [1.0, 3.0] }", "Wavelet": "{ binWidth: 10 }"}
CLASSES = "firstorder", "glcm", "glrlm", "glszm", "gldm", "ngtdm"


def of_noctule(programs, folder, file, backend):
    """Returns seconds, and the row of the cohort table."""
    from test_run_images import UNUSED
    printed = subprocess.run([programs / "noctule", "profiles", "--pyradiomics", file], check=True, capture_output=True, text=True)
    (folder / "noctule.conf").write_text(f'root = "{folder / "root"}"; compute = {{ backend = "{backend}"; }}; '
                                         f'pipelines = ( {{ name = "measure"; min_slices = 1; '
                                         f'results = [ "seg" ]; segments = ( {UNUSED} ); {printed.stdout} }} );')
    clock = Clock(children=True)
    subprocess.run([programs / "noctule", "--config", folder / "noctule.conf", "run", "--pipeline", "measure", "-o", folder / "out",
                    "--cohort", "--image", folder / "image.nrrd", "--mask", folder / "mask.nrrd"], check=True, capture_output=True)
    seconds = clock.end()
    with open(folder / "out" / "cohort.csv") as table:
        (row,) = csv.DictReader(table)
    return seconds, row


def of_job(programs, folder):
    """Returns the least seconds of jobs of one process, with the configuration of of_noctule()."""
    pair = f"{folder / 'image.nrrd'},{folder / 'mask.nrrd'}\n"
    (folder / "pairs.csv").write_text("Image,Mask\n" + 8 * pair)
    printed = subprocess.run([programs / "noctule", "--config", folder / "noctule.conf", "run", "--pipeline", "measure", "-o",
                              folder / "jobs", "--json", "--pairs", folder / "pairs.csv"], check=True, capture_output=True, text=True)
    return min(job["seconds"]["total"] for job in json.loads(printed.stdout)["jobs"])


def of_pyradiomics(folder, file):
    import radiomics.featureextractor
    extractor = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file))
    clock = Clock()
    found = extractor.execute(str(folder / "image.nrrd"), str(folder / "mask.nrrd"))
    return clock.end(), found


def provide_modules():
    """pyradiomics 3.0.1 imports names of SciPy before 1.17, and trimesh."""
    import scipy.ndimage
    import scipy.special
    from test_image_types import icosphere
    scipy.special.sph_harm = lambda m, n, theta, phi: scipy.special.sph_harm_y(n, m, phi, theta)
    for name, members in (("scipy.ndimage.interpolation", {"map_coordinates": scipy.ndimage.map_coordinates}),
                          ("trimesh", {}), ("trimesh.creation", {"icosphere": icosphere})):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="the folder of the programs")
    parser.add_argument("--size", type=int, nargs=3, default=(160, 160, 100), help="columns, rows, slices")
    parser.add_argument("--only", choices=(*TYPES, "all"))
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    programs = options.bin.resolve()
    os.environ.setdefault("NOCTULE_BIN", str(programs))
    provide_modules()
    from test_image_types import assert_equal
    image = volume_of(tuple(options.size[::-1]), 32)
    mask = numpy.zeros(image.shape, numpy.uint8)
    part = tuple(slice(side // 4, side // 4 + side // 2) for side in image.shape)
    mask[part] = ellipsoid(mask[part].shape)
    for name in [options.only] if options.only else (*TYPES, "all"):
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            for each, values in (("image", image), ("mask", mask)):
                picture = SimpleITK.GetImageFromArray(values)
                picture.SetSpacing((0.8, 0.8, 1.0))
                SimpleITK.WriteImage(picture, str(folder / f"{each}.nrrd"))
            chosen = {key: TYPES[key] for key in TYPES if key == name or (name == "all" and key != "LBP3D")}
            file = folder / "parameters.yaml"
            file.write_text("setting: { binWidth: 25 }\nimageType:\n" + "".join(f"  {key}: {value}\n" for key, value in chosen.items())
                            + "featureClass:\n" + "".join(f"  {each}:\n" for each in CLASSES))
            ours, row = min((of_noctule(programs, folder, file, options.backend) for _ in range(3)), key=lambda found: found[0])
            line = {"image_type": name, "voxels": int(mask.sum())}
            record(line, "noctule", ours)
            theirs, found = of_pyradiomics(folder, file)
            record(line, "pyradiomics", theirs, ours)
            line["noctule_job"] = round(of_job(programs, folder), 4)
            line["pyradiomics_job_ratio"] = round(theirs[1] / line["noctule_job"], 1)
            # Equal responses differ in their last bit, which decides how many are within the percentiles (docs/features.md).
            found = {key: value for key, value in found.items() if not (key.startswith("lbp-3D") and "RobustMean" in key)}
            line["features"] = assert_equal(row, found)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
