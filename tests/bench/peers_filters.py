#!/usr/bin/env python3
"""Times image filters: Noctule, MIRP and z-rad with the settings of IBSI 2, phase 2, on IBSI's CT phantom (../shared/data/ibsi).

    build/venv/bin/python tests/bench/peers_filters.py --bin build/ci/bin --mirp --zrad [--only ibsi2-3b] [--repeat 3]

Jobs: each program reads the DICOM files, resamples to 1 mm by cubic splines, filters, and measures 18 statistics of the
responses in GTV-1, which are compared. Noctule filters what the region needs, the others the whole volume.

Filters (`_filter`): each program filters one whole volume of 200 x 197 x 180 voxels in memory, and every voxel is compared:
`_voxels` is the largest difference relative to the range of the responses. The volume is that of Noctule's job, or with --volume
that of a file, 200 x 197 x 180 voxels as int16; then there are no jobs. --backend cuda filters on the GPU: from a volume in its
memory to responses in the host's.

Seconds are those of the processor and of the clock, of processes that have loaded their modules, the least of the
repetitions. A peer that differs by more than TOLERANCE fails the run. Jobs differ by more than filters because interpolated
values beyond the outermost voxels differ. Prints one JSON line per filter.
"""

import argparse
import json
import logging
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import nibabel
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integ"))
WITHOUT = "ibsi2-1b"
# Of statistics of jobs, and of voxels of filters. Simoncelli: z-rad sets the frequency of one place per axis of an even number
# of voxels to 0, and MIRP exchanges two axes of its grid. Noctule's is the formula of IBSI within 7e-9. LoG: z-rad scales the
# Gaussian that is cut at 4 deviations to a sum of 1. Gabor: z-rad computes with 32 bits.
TOLERANCE = {None: (2e-4, 1e-6), "ibsi2-3b": (2e-4, 5e-5), "ibsi2-5b": (2e-4, 3e-6), "ibsi2-8b": (5e-4, 3e-4), "ibsi2-9b": (2e-3, 2e-3)}
# Settings of filter_volume (tests/tools).
OURS = {
    "ibsi2-2b": "kind=mean size=5",
    "ibsi2-3b": "kind=log sigma_mm=1.5",
    "ibsi2-4b": "kind=laws laws=L5,E5,E5 pooling=max energy=15",
    "ibsi2-5b": "kind=gabor sigma_mm=5 gamma=1.5 lambda_mm=2 theta_degrees=22.5 pooling=mean",
    "ibsi2-6b": "kind=wavelet wavelet=db3 high=LLH level=1 pooling=mean",
    "ibsi2-7b": "kind=wavelet wavelet=db3 high=HHH level=2 pooling=mean",
    "ibsi2-8b": "kind=simoncelli level=1",
    "ibsi2-9b": "kind=simoncelli level=2",
}


def wavelet_of_mirp(family, kernels, level):
    return {"filter_kernels": "separable_wavelet", "separable_wavelet_families": family, "separable_wavelet_set": kernels,
            "separable_wavelet_decomposition_level": level, "separable_wavelet_rotation_invariance": True,
            "separable_wavelet_pooling_method": "mean"}


def simoncelli_of_mirp(level):
    return {"filter_kernels": "nonseparable_wavelet", "nonseparable_wavelet_families": "simoncelli",
            "nonseparable_wavelet_decomposition_level": level, "nonseparable_wavelet_response": "real"}


MIRP = {
    WITHOUT: {},
    "ibsi2-2b": {"filter_kernels": "mean", "mean_filter_kernel_size": 5},
    "ibsi2-3b": {"filter_kernels": "laplacian_of_gaussian", "laplacian_of_gaussian_sigma": 1.5,
                 "laplacian_of_gaussian_kernel_truncate": 4.0},
    "ibsi2-4b": {"filter_kernels": "laws", "laws_kernel": "l5e5e5", "laws_compute_energy": True, "laws_delta": 7,
                 "laws_rotation_invariance": True, "laws_pooling_method": "max"},
    "ibsi2-5b": {"filter_kernels": "gabor", "gabor_sigma": 5.0, "gabor_gamma": 1.5, "gabor_lambda": 2.0, "gabor_theta": 22.5,
                 "gabor_theta_step": 22.5, "gabor_rotation_invariance": True, "gabor_pooling_method": "mean"},
    "ibsi2-6b": wavelet_of_mirp("db3", "llh", 1),
    "ibsi2-7b": wavelet_of_mirp("db3", "hhh", 2),
    "ibsi2-8b": simoncelli_of_mirp(1),
    "ibsi2-9b": simoncelli_of_mirp(2),
}


def zrad_filter(profile):
    from zrad import filtering

    def wavelet(kernels, level):
        return filtering.Wavelets3D(wavelet_type="db3", padding_type="reflect", response_map=kernels, decomposition_level=level,
                                    rotation_invariance=True)

    return {
        WITHOUT: lambda: None,
        "ibsi2-2b": lambda: filtering.Mean(padding_type="reflect", support=5, dimensionality="3D"),
        "ibsi2-3b": lambda: filtering.LoG(padding_type="reflect", sigma_mm=1.5, cutoff=4, dimensionality="3D"),
        "ibsi2-4b": lambda: filtering.Laws(response_map="L5E5E5", padding_type="reflect", dimensionality="3D",
                                           rotation_invariance=True, pooling="max", energy_map=True, distance=7),
        "ibsi2-5b": lambda: filtering.Gabor(padding_type="reflect", res_mm=1.0, sigma_mm=5.0, lambda_mm=2.0, gamma=1.5,
                                            theta=math.radians(22.5), rotation_invariance=True, orthogonal_planes=True, n_stds=12),
        "ibsi2-6b": lambda: wavelet("LLH", 1),
        "ibsi2-7b": lambda: wavelet("HHH", 2),
        "ibsi2-8b": lambda: filtering.Simoncelli(padding_type="wrap", decomposition_level=1, dimensionality="3D"),
        "ibsi2-9b": lambda: filtering.Simoncelli(padding_type="wrap", decomposition_level=2, dimensionality="3D"),
    }[profile]()


class Clock:
    """Seconds of the processor, of this process or of its children, and of the clock."""

    def __init__(self, children=False):
        self.of = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
        self.begin = self.used(), time.perf_counter()

    def used(self):
        used = resource.getrusage(self.of)
        return used.ru_utime + used.ru_stime

    def end(self):
        return self.used() - self.begin[0], time.perf_counter() - self.begin[1]


def noctule(programs, folder, groups):
    """Runs a job with these texture groups, whose result is an SR, as no peer writes a volume. Returns its seconds."""
    from test_ibsi_chain import IMAGES, OBJECTS, SEGMENT
    (structures,) = OBJECTS.glob("*.dcm")
    (folder / "noctule.conf").write_text(f'root = "{folder / "root"}"; pipelines = ( {{ name = "filter"; segments = ( {SEGMENT} ); '
                                         f'results = [ "sr" ]; texture = ( {groups} ); }} );')
    clock = Clock(children=True)
    subprocess.run([programs / "noctule", "--config", folder / "noctule.conf", "run", "-p", "filter", "-o", folder / "out", "--object",
                    structures, IMAGES], check=True, capture_output=True)
    return clock.end()


def job_of_noctule(programs, profile):
    from test_ibsi2_values import NAMES
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        seconds = noctule(programs, folder, f'{{ profile = "{profile}"; }}')
        found = {feature["name"]: feature["value"] for feature in json.loads((folder / "out" / "features.json").read_text())
                 if feature["family"] == "first-order"}
    return seconds, {theirs: found[ours] for theirs, ours in NAMES.items()}


def job_of_mirp(profile):
    """MIRP smooths before it resamples, unless anti_aliasing is false. IBSI's mirror is SciPy's "reflect"."""
    from mirp import extract_features
    from test_ibsi_chain import IMAGES, OBJECTS
    (structures,) = OBJECTS.glob("*.dcm")
    filtered = profile != WITHOUT
    clock = Clock()
    (found,) = extract_features(
        image=str(IMAGES), mask=str(structures), roi_name="GTV-1", new_spacing=1.0, spline_order=3, anti_aliasing=False,
        resegmentation_intensity_range=[-1000.0, 400.0], boundary_condition="reflect",
        base_feature_families="none" if filtered else "statistics",
        response_map_feature_families="statistics" if filtered else "none", **MIRP[profile])
    return clock.end(), {name.split("stat_")[1]: float(found[name].iloc[0]) for name in found.columns if "stat_" in name}


def job_of_zrad(profile):
    from test_ibsi_chain import IMAGES, OBJECTS
    from zrad import preprocessing, radiomics
    from zrad.image import Image
    (structures,) = OBJECTS.glob("*.dcm")
    clock = Clock()
    image = Image.from_dicom(str(IMAGES), "CT")
    region = preprocessing.RoiData(image=image, morphological_mask=Image.from_dicom_mask(str(structures), "GTV-1", image))
    region = preprocessing.ImageResampler(1.0, "bspline", "nearest_integer").apply(region)
    region = preprocessing.MaskResampler(1.0, "linear", 0.5).apply(region)
    chosen = zrad_filter(profile)
    region = chosen.apply(region) if chosen else region
    region = preprocessing.IntensityMaskBuilder().apply(region)
    region = preprocessing.Resegmenter(intensity_range=(-1000.0, 400.0)).apply(region)
    found = radiomics.Radiomics().extract_features(region, families="intensity_statistics")
    return clock.end(), {name.removeprefix("stat_"): float(value) for name, value in found.items()}


def volume_of_noctule(programs):
    """Returns the resampled volume, which is its response to a mean of one voxel, by slices, rows, columns."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        noctule(programs, folder, '{ profile = "ibsi2-2b"; filter = { kind = "mean"; size = 1; boundary = "mirror"; in_slice = false; }; '
                'response = [ "nifti" ]; }')
        return numpy.asarray(nibabel.load(folder / "out" / "response-1.nii.gz").dataobj, float).T


def filter_of_noctule(programs, profile, volume, backend, times):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        volume.astype("<i2").tofile(folder / "in")
        done = subprocess.run([programs / "filter_volume", backend, ",".join(map(str, volume.shape[::-1])), "1,1,1", folder / "in",
                               folder / "out", *OURS[profile].split(), f"repeat={times}"], check=True, capture_output=True, text=True)
        seconds = [map(float, line.split()[1:]) for line in done.stdout.splitlines()]
        return tuple(map(min, zip(*seconds, strict=True))), numpy.fromfile(folder / "out", float).reshape(volume.shape)


def filter_of_mirp(profile, volume):
    """MIRP's filter sets its own clock, because there is no call that only filters."""
    from mirp import extract_images
    from mirp._imagefilters import gabor, laplacian_of_gaussian, laws, mean, nonseparable_wavelet, separable_wavelet
    classes = (gabor.GaborFilter, laplacian_of_gaussian.LaplacianOfGaussianFilter, laws.LawsFilter, mean.MeanFilter,
               nonseparable_wavelet.NonseparableWaveletFilter, separable_wavelet.SeparableWaveletFilter)
    kept, seconds = [each.transform for each in classes], []

    def timed(call):
        def transform(*arguments, **named):
            clock = Clock()
            response = call(*arguments, **named)
            seconds.append(clock.end())
            return response
        return transform

    for each, transform in zip(classes, kept, strict=True):
        each.transform = timed(transform)
    try:
        ((images, _),) = extract_images(image=volume, mask=numpy.ones(volume.shape, int), boundary_condition="reflect",
                                        write_images=False, export_images=True, image_export_format="numpy", **MIRP[profile])
    finally:
        for each, transform in zip(classes, kept, strict=True):
            each.transform = transform
    (used,) = seconds
    return used, images[-1]


def filter_of_zrad(profile, volume):
    from zrad.image import Image
    image = Image(array=volume, origin=(0, 0, 0), spacing=(1.0, 1.0, 1.0), direction=numpy.eye(3).ravel(), shape=volume.shape[::-1])
    chosen = zrad_filter(profile)
    clock = Clock()
    response = chosen.apply(image)
    return clock.end(), response.array


def difference(ours, theirs):
    """Returns the largest difference of a statistic, relative to the statistic, and its name. Positions are relative to the
    deviation if they are smaller; the quotients by a mean near 0 are left out."""
    deviation = ours["var"] ** 0.5
    scale = {name: abs(value) for name, value in ours.items()}
    scale |= {name: max(scale[name], deviation) for name in ("mean", "median", "min", "max", "p10", "p90")}
    scale |= {name: max(scale[name], 1) for name in ("skew", "kurt")}
    near_zero = abs(ours["mean"]) < deviation / 10
    return max((abs(ours[name] - theirs[name]) / scale[name], name) for name in ours
               if not (near_zero and name in ("cov", "qcod")))


def least(measure, repeat):
    """Returns the least seconds of the processor and of the clock, and the result."""
    seconds, found = zip(*(measure() for _ in range(repeat)), strict=True)
    return tuple(map(min, zip(*seconds, strict=True))), found[0]


def record(line, name, seconds, ours=None):
    line |= {f"{name}_processor": round(seconds[0], 4), f"{name}_wall": round(seconds[1], 4)}
    if ours and ours[0] > 0:
        line |= {f"{name}_ratio": round(seconds[0] / ours[0], 1), f"{name}_wall_ratio": round(seconds[1] / ours[1], 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="the folder of the programs")
    parser.add_argument("--only", choices=MIRP)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="of the filters")
    parser.add_argument("--volume", type=pathlib.Path, help="filters only, of this file")
    parser.add_argument("--mirp", action="store_true", help="also MIRP")
    parser.add_argument("--zrad", action="store_true", help="also z-rad")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    programs = options.bin.resolve()
    os.environ.setdefault("NOCTULE_BIN", str(programs))
    peers = [each for each in (("mirp", job_of_mirp, filter_of_mirp), ("zrad", job_of_zrad, filter_of_zrad))
             if getattr(options, each[0])]
    volume = (numpy.fromfile(options.volume, "<i2").reshape(180, 197, 200).astype(float) if options.volume
              else volume_of_noctule(programs))
    failed = False
    for _, job, _ in peers if not options.volume else ():
        job(WITHOUT)  # loads modules
    for profile in [options.only] if options.only else MIRP:
        line = {"profile": profile}
        of_statistics, of_voxels = TOLERANCE.get(profile, TOLERANCE[None])
        if not options.volume:
            ours, expected = least(lambda: job_of_noctule(programs, profile), max(options.repeat, 3))
            record(line, "job", ours)
        if profile != WITHOUT:
            own, response = filter_of_noctule(programs, profile, volume, options.backend, max(options.repeat, 3))
            record(line, "filter", own)
        for name, job, filtered in peers:
            if not options.volume:
                seconds, found = least(lambda job=job: job(profile), options.repeat)
                record(line, f"{name}_job", seconds, ours)
                line[f"{name}_statistics"], line[f"{name}_differs_most"] = difference(expected, found)
                failed |= line[f"{name}_statistics"] > of_statistics
            if profile != WITHOUT:
                seconds, found = least(lambda filtered=filtered: filtered(profile, volume), options.repeat)
                record(line, f"{name}_filter", seconds, own)
                line[f"{name}_voxels"] = float(abs(found - response).max() / numpy.ptp(response))
                failed |= line[f"{name}_voxels"] > of_voxels
        print(json.dumps(line), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
