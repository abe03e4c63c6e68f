#!/usr/bin/env python3
"""Times jobs of image types of pyradiomics through the whole service, as service_gpu.py does, whose options it takes.

    python3 tests/bench/service_image_types.py --bin build/ci/bin --work /tmp/service --lanes 1 --series 12 [--backend cpu]

17 images, all families, a region of 492,567 of 160 x 160 x 128 voxels. The series are CT: smooth noise, and a ball of radius 49
that is 350 HU higher, so that a range of values is the region. --source is made in --work. Needs NumPy and SciPy.
"""

import shutil
import subprocess
import sys

import numpy
import scipy.ndimage
import service_gpu

from pathlib import Path

SIZE = 128, 160, 160  # z, y, x
IMAGES = ("", 'kind = "pyradiomics-square";', 'kind = "pyradiomics-squareroot";', 'kind = "pyradiomics-logarithm";',
          'kind = "pyradiomics-exponential";', 'kind = "pyradiomics-gradient"; use_spacing = true;',
          'kind = "pyradiomics-lbp-2d"; radius = 1.0; points = 8; method = "uniform";',
          *(f'kind = "pyradiomics-wavelet"; wavelet = "coif1"; kernels = "{a}{b}{c}"; level = 1; start_level = 0;'
            for c in "LH" for b in "LH" for a in "LH"),
          *(f'kind = "pyradiomics-log"; sigma_mm = {sigma};' for sigma in ("1.0", "3.0")))
GROUP = 'families = [ "first-order", "intensity-histogram", "glcm", "glrlm", "glszm", "ngldm", "ngtdm" ]; first_order = false; ' \
        'names = "pyradiomics"; discretisation = "pyradiomics-bin-width"; aggregation = "3d-averaged";'
WIDTHS = {"pyradiomics-wavelet": 10.0, "pyradiomics-lbp-2d": 1.0}


def group(image):
    kind = image.split('"')[1] if image else ""
    return f"{{ {GROUP} bin_width = {WIDTHS.get(kind, 25.0)}; {f'filter = {{ {image} }};' if image else ''} }}"


def write_series(arguments, number, values):
    """Puts the values in place of those of a phantom, which are at the end of its files."""
    made = arguments.source / f"{number}"
    subprocess.run([arguments.bin / "noctule-phantom", "--kind", "ct-head", "--output", made, "--size", "x".join(map(str, SIZE[::-1])),
                    "--seed", f"{number}"], check=True, stdout=subprocess.DEVNULL)
    for path, plane in zip(sorted(made.rglob("*.dcm")), values, strict=True):
        pixels = (plane + 1024).astype("<u2").tobytes()
        path.write_bytes(path.read_bytes()[:-len(pixels)] + pixels)


def main():
    arguments = service_gpu.parse()
    arguments.source = arguments.work / "series"
    shutil.rmtree(arguments.source, ignore_errors=True)
    values = scipy.ndimage.gaussian_filter(numpy.random.default_rng(1).normal(size=SIZE), 2) * 750
    z, y, x = numpy.ogrid[:SIZE[0], :SIZE[1], :SIZE[2]]
    ball = (z - 64) ** 2 + (y - 80) ** 2 + (x - 80) ** 2 <= 49 ** 2
    values = numpy.clip(numpy.round(values), -170, 170).astype(int) + 350 * ball
    for number in range(1, arguments.series + 1):
        write_series(arguments, number, values)
    service_gpu.LEVEL_SET = ('segments = ( { label = "Ball"; method = "range"; range = [ 175.0, 2300.0 ]; type = { code = "12738006"; '
                             'scheme = "SCT"; meaning = "Brain"; }; } );\nresults = [ "seg" ];\ntexture = ( '
                             + ",\n".join(map(group, IMAGES)) + " );")
    sys.argv += ["--source", str(arguments.source), "--size", "160x160x128"]
    service_gpu.main()


if __name__ == "__main__":
    main()
