#!/usr/bin/env python3
"""Times whole jobs with all image types of pyradiomics but LBP3D, and all families, of a region of half a million voxels.

    build/venv/bin/python tests/bench/image_types.py --bin build/plain/bin [--backend cuda] [--jobs 3] [--pyradiomics] [--contrast 1500]

The image is noise, smoothed, of 160 x 160 x 128 int16; the region is a ball of radius 49. 17 images. Jobs run one after the
other in one process, from NRRD to the SEG. Prints seconds and processor seconds per job. --pyradiomics: also its own time. --contrast:
added to the values of the ball, so that some images have more than 256 levels.
"""

import argparse
import resource
import subprocess
import tempfile
import time

import numpy
import scipy.ndimage
import SimpleITK

from pathlib import Path

PARAMETERS = """setting: { binWidth: 25 }
imageType:
  Original: {}
  Square: {}
  SquareRoot: {}
  Logarithm: {}
  Exponential: {}
  Gradient: {}
  LBP2D: { binWidth: 1 }
  Wavelet: { binWidth: 10 }
  LoG: { sigma: [1.0, 3.0] }
featureClass:
""" + "".join(f"  {name}:\n" for name in ("firstorder", "glcm", "glrlm", "glszm", "gldm", "ngtdm"))
SEGMENT = '{ label = "Unused"; method = "range"; range = [ 1.0, 2.0 ]; ' \
          'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; }'


def write_case(folder, contrast):
    values = scipy.ndimage.gaussian_filter(numpy.random.default_rng(1).normal(size=(128, 160, 160)), 2) * 1500
    z, y, x = numpy.ogrid[:128, :160, :160]
    ball = (z - 64) ** 2 + (y - 80) ** 2 + (x - 80) ** 2 <= 49 ** 2
    for name, array in (("image", numpy.round(values + contrast * ball).astype(numpy.int16)), ("mask", ball.astype(numpy.uint8))):
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(array), str(folder / f"{name}.nrrd"))
    return int(ball.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--pyradiomics", action="store_true")
    parser.add_argument("--contrast", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        voxels = write_case(folder, options.contrast)
        (folder / "parameters.yaml").write_text(PARAMETERS)
        texture = subprocess.run([options.bin / "noctule", "profiles", "--pyradiomics", folder / "parameters.yaml"],
                                 check=True, capture_output=True, text=True).stdout
        (folder / "noctule.conf").write_text(
            f'root = "{folder}/root"; compute = {{ backend = "{options.backend}"; }};\npipelines = ( {{ name = "measure"; '
            f'min_slices = 1; results = [ "seg" ]; segments = ( {SEGMENT} );\n{texture} }} );\n')
        (folder / "pairs.csv").write_text("Image,Mask\n" + f"{folder}/image.nrrd,{folder}/mask.nrrd\n" * options.jobs)
        printed = subprocess.run([options.bin / "noctule", "--config", folder / "noctule.conf", "run", "--pipeline", "measure",
                                  "--pairs", folder / "pairs.csv", "-o", folder / "out"], check=True, capture_output=True, text=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print("\n".join(line.strip() for line in printed.stdout.splitlines() if " slices of " in line))
        print(f"{voxels} voxels, {options.jobs} jobs: {(used.ru_utime + used.ru_stime) / options.jobs:.2f} processor seconds per job")
        if options.pyradiomics:
            import radiomics
            from radiomics.featureextractor import RadiomicsFeatureExtractor
            radiomics.setVerbosity(60)
            begun, used = time.monotonic(), time.process_time()
            RadiomicsFeatureExtractor(str(folder / "parameters.yaml")).execute(str(folder / "image.nrrd"), str(folder / "mask.nrrd"))
            print(f"pyradiomics: {time.process_time() - used:.2f} processor seconds, {time.monotonic() - begun:.2f} s")


if __name__ == "__main__":
    main()
