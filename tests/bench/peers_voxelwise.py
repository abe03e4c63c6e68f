"""Times maps of GLCM features of Noctule (CPU) and of pyradiomics on the same image: a ball of noise with 32 grey levels.

    NOCTULE_BIN=build/release/bin build/venv/bin/python tests/bench/peers_voxelwise.py [VOXELS] [RADIUS] [THREADS]

Prints the seconds of processor time of both, per voxel and for half a million voxels in proportion. pyradiomics needs memory for
all matrices at once; it computes 1000 voxels at a time here, as its documentation advises for large regions."""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import radiomics.featureextractor
import SimpleITK

voxels, radius, threads = (int(sys.argv[i]) if i < len(sys.argv) else default for i, default in ((1, 2000), (2, 2), (3, 1)))
side = int((voxels * 6 / np.pi) ** (1 / 3)) + 3
place = np.indices((side,) * 3) - (side - 1) / 2
inside = (place ** 2).sum(0) <= np.sort((place ** 2).sum(0), axis=None)[voxels - 1]
values = np.random.default_rng(1).integers(0, 3200, inside.shape).astype(np.int16)


def report(name, wall, processor):
    each = processor / inside.sum()
    print(f"{name}: {inside.sum()} voxels, {wall:.2f} s, {processor:.2f} s of processor, {each * 1e6:.0f} us per voxel, "
          f"{each * 5e5 / 3600:.2f} hours of processor for 500,000 voxels", flush=True)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name, array in (("image", values), ("mask", inside.astype(np.uint8))):
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(array), str(folder / f"{name}.nrrd"))
    (folder / "noctule.conf").write_text(
        f'root = "{folder}/root"; compute = {{ backend = "cpu"; threads = {threads}; }}; pipelines = ( {{ name = "maps"; min_slices = 1; '
        'results = [ "seg" ]; segments = ( { label = "Part"; method = "range"; range = [ 0.0, 1.0 ]; type = { code = "12738006"; '
        'scheme = "SCT"; meaning = "Brain"; }; } ); texture = { first_order = false; discretisation = "fixed-bin-number"; levels = 32; '
        f'voxelwise = {{ radius = {radius}; glcm = [ "all" ]; files = [ "nifti" ]; }}; }}; }} );')
    begun = time.monotonic()
    subprocess.run([pathlib.Path(os.environ["NOCTULE_BIN"]) / "noctule", "--config", folder / "noctule.conf", "run", "--pipeline", "maps", "-o",
                    folder / "out", "--image", folder / "image.nrrd", "--mask", folder / "mask.nrrd"], check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report("noctule run", time.monotonic() - begun, used.ru_utime + used.ru_stime)
    extractor = radiomics.featureextractor.RadiomicsFeatureExtractor(binCount=32, kernelRadius=radius, voxelBatch=1000)
    extractor.disableAllFeatures()
    extractor.enableFeatureClassByName("glcm")
    begun, before = time.monotonic(), time.process_time()
    maps = extractor.execute(str(folder / "image.nrrd"), str(folder / "mask.nrrd"), voxelBased=True)
    report("pyradiomics", time.monotonic() - begun, time.process_time() - before)
