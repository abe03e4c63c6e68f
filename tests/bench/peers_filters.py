#!/usr/bin/env python3
"""Times image filters: `noctule run` with profiles of IBSI 2, and MIRP and z-rad with the same settings, on IBSI's CT phantom
(../shared/data/ibsi), from DICOM files to the statistics of the responses in GTV-1. Processor seconds of whole jobs.

    build/venv/bin/python tests/bench/peers_filters.py --bin build/ci/bin --mirp [--zrad] [--only ibsi2-3b]

z-rad reads the volume and the mask of the job, resampled by SciPy, and its time is that of its filter alone. It is no
requirement of the tests: use a private environment. Prints one JSON line per filter, with the mean of each program.
"""

import argparse
import json
import logging
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
SETTINGS = {
    "ibsi2-2b": {"filter_kernels": "mean", "mean_filter_kernel_size": 5},
    "ibsi2-3b": {"filter_kernels": "laplacian_of_gaussian", "laplacian_of_gaussian_sigma": 1.5,
                 "laplacian_of_gaussian_kernel_truncate": 4.0},
    "ibsi2-4b": {"filter_kernels": "laws", "laws_kernel": "l5e5e5", "laws_compute_energy": True, "laws_delta": 7,
                 "laws_rotation_invariance": True, "laws_pooling_method": "max"},
    "ibsi2-5b": {"filter_kernels": "gabor", "gabor_sigma": 5.0, "gabor_gamma": 1.5, "gabor_lambda": 2.0, "gabor_theta": 22.5,
                 "gabor_theta_step": 22.5, "gabor_rotation_invariance": True, "gabor_pooling_method": "mean"},
    "ibsi2-6b": {"filter_kernels": "separable_wavelet", "separable_wavelet_families": "db3", "separable_wavelet_set": "llh",
                 "separable_wavelet_decomposition_level": 1, "separable_wavelet_rotation_invariance": True,
                 "separable_wavelet_pooling_method": "mean"},
}


def of_noctule(programs, folder, profile):
    """Returns processor seconds, and the mean of the responses."""
    from test_ibsi_chain import IMAGES, OBJECTS, SEGMENT
    config = folder / "noctule.conf"
    config.write_text(f'root = "{folder / "root"}"; pipelines = ( {{ name = "filter"; segments = ( {SEGMENT} ); results = [ "nifti" ]; '
                      f'texture = {{ profile = "{profile}"; }}; }} );')
    (structures,) = OBJECTS.glob("*.dcm")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([programs / "noctule", "--config", config, "run", "-p", "filter", "-o", folder / profile, "--object",
                    structures, IMAGES], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads((folder / profile / "features.json").read_text())
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            next(f["value"] for f in told if f["name"] == "mean" and f["family"] == "first-order"))


def of_mirp(profile):
    """Returns processor seconds, and the mean of the responses."""
    from test_ibsi_chain import IMAGES, OBJECTS
    from mirp import extract_features
    (structures,) = OBJECTS.glob("*.dcm")
    used = time.process_time()
    (found,) = extract_features(image=str(IMAGES), mask=str(structures), roi_name="GTV-1", new_spacing=1.0, spline_order=3,
                                resegmentation_intensity_range=[-1000.0, 400.0], base_feature_families="none",
                                response_map_feature_families="statistics", boundary_condition="mirror", **SETTINGS[profile])
    used = time.process_time() - used
    return used, float(found[next(name for name in found.columns if "stat_mean" in name)].iloc[0])


def of_zrad(profile, folder):
    """z-rad's filter on the volume of the job by 1 mm."""
    from scipy import ndimage
    from zrad.filtering import spatial, wavelet

    image = nibabel.load(folder / profile / "volume.nii.gz")
    values = ndimage.zoom(numpy.asarray(image.dataobj, float), image.header.get_zooms()[:3], order=1)
    filters = {
        "ibsi2-2b": lambda: spatial.Mean(padding_type="reflect", support=5, dimensionality="3D"),
        "ibsi2-3b": lambda: spatial.LoG(padding_type="reflect", sigma_mm=1.5, cutoff=4, dimensionality="3D"),
        "ibsi2-4b": lambda: spatial.Laws(response_map="L5E5E5", padding_type="reflect", dimensionality="3D", rotation_invariance=True,
                                      pooling="max", energy_map=True, distance=7),
        "ibsi2-5b": lambda: spatial.Gabor(padding_type="reflect", res_mm=1.0, sigma_mm=5.0, lambda_mm=2.0, gamma=1.5, theta=22.5,
                                       rotation_invariance=True, orthogonal_planes=True),
        "ibsi2-6b": lambda: wavelet.Wavelets3D(wavelet_type="db3", padding_type="reflect", response_map="LLH", decomposition_level=1,
                                            rotation_invariance=True),
    }
    chosen = filters[profile]()
    if profile == "ibsi2-3b":
        chosen.res_mm = 1.0
    used = time.process_time()
    chosen._apply_array(values)
    return time.process_time() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="the folder of the programs")
    parser.add_argument("--only", choices=SETTINGS)
    parser.add_argument("--mirp", action="store_true", help="also MIRP")
    parser.add_argument("--zrad", action="store_true", help="also z-rad, if it is installed")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    programs = options.bin.resolve()
    os.environ.setdefault("NOCTULE_BIN", str(programs))
    for profile in [options.only] if options.only else SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            line = {"profile": profile}
            seconds, line["mean"] = of_noctule(programs, pathlib.Path(folder), profile)
            line["processor_seconds"] = round(seconds, 3)
            if options.mirp:
                peers, line["mirp_mean"] = of_mirp(profile)
                line |= {"mirp_processor_seconds": round(peers, 3), "mirp_ratio": round(peers / seconds, 1)}
            if options.zrad:
                peers = of_zrad(profile, pathlib.Path(folder))
                line |= {"zrad_processor_seconds": round(peers, 3), "zrad_ratio": round(peers / seconds, 1)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
