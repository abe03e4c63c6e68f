"""Responses to the digital phantoms of IBSI 2: within 1 % of the range of the reference maps, in every voxel. Wavelets of
periodic volumes: PyWavelets' stationary transform, rounded to a step."""

import os
import pathlib
import subprocess

import nibabel
import numpy
import pytest
import pywt

from conftest import SHARED

DATA = SHARED / "ibsi2"
TOOL = pathlib.Path(os.environ["NOCTULE_BIN"]) / "filter_volume"

# Map, phantom, boundary and settings of the filter.
MAPS = """
1_a_1 checkerboard zero kind=mean size=15
1_a_2 checkerboard nearest kind=mean size=15
1_a_3 checkerboard periodic kind=mean size=15
1_a_4 checkerboard mirror kind=mean size=15
1_b_1 impulse zero kind=mean size=15 in_slice
2_a impulse zero kind=log sigma_mm=3
2_b checkerboard mirror kind=log sigma_mm=5
2_c checkerboard mirror kind=log sigma_mm=5 in_slice
3_a_1 impulse zero kind=laws laws=E5,L5,S5
3_a_2 impulse zero kind=laws laws=E5,L5,S5 pooling=max
3_a_3 impulse zero kind=laws laws=E5,L5,S5 pooling=max energy=15
3_b_1 checkerboard mirror kind=laws laws=E3,W5,R5
3_b_2 checkerboard mirror kind=laws laws=E3,W5,R5 pooling=max
3_b_3 checkerboard mirror kind=laws laws=E3,W5,R5 pooling=max energy=15
3_c_1 checkerboard mirror kind=laws laws=L5,S5 in_slice
3_c_2 checkerboard mirror kind=laws laws=L5,S5 in_slice pooling=max
3_c_3 checkerboard mirror kind=laws laws=L5,S5 in_slice pooling=max energy=15
4_a_1 impulse zero kind=gabor sigma_mm=10 gamma=0.5 lambda_mm=4 theta_degrees=60 in_slice
4_a_2 impulse zero kind=gabor sigma_mm=10 gamma=0.5 lambda_mm=4 theta_degrees=45 pooling=mean
4_b_1 sphere mirror kind=gabor sigma_mm=20 gamma=2.5 lambda_mm=8 theta_degrees=225 in_slice
4_b_2 sphere mirror kind=gabor sigma_mm=20 gamma=2.5 lambda_mm=8 theta_degrees=22.5 pooling=mean
5_a_1 impulse zero kind=wavelet wavelet=db2 high=LHL level=1
5_a_2 impulse zero kind=wavelet wavelet=db2 high=LHL level=1 pooling=mean
6_a_1 sphere periodic kind=wavelet wavelet=coif1 high=HHL level=1
6_a_2 sphere periodic kind=wavelet wavelet=coif1 high=HHL level=1 pooling=mean
7_a_1 checkerboard mirror kind=wavelet wavelet=haar high=LLL level=2 pooling=mean
7_a_2 checkerboard mirror kind=wavelet wavelet=haar high=HHH level=2 pooling=mean
8_a_1 checkerboard periodic kind=simoncelli level=1
8_a_2 checkerboard periodic kind=simoncelli level=2
8_a_3 checkerboard periodic kind=simoncelli level=3
9_a impulse zero kind=riesz-log sigma_mm=3 riesz=1,0,0
9_b_1 sphere zero kind=riesz-log sigma_mm=3 riesz=0,2,0
10_b_1 pattern_1 periodic kind=riesz-simoncelli level=1 riesz=0,2,0
""".strip().splitlines()


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data/ibsi2")
@pytest.mark.parametrize("line", MAPS, ids=lambda line: line.split()[0])
def test_the_reference_map(tmp_path, line):
    name, phantom, boundary, *settings = line.split()
    image = nibabel.load(next((DATA / "phantoms/nifti" / phantom / "image").glob("*.nii*")))
    expected = numpy.asarray(nibabel.load(DATA / "maps" / f"{name}.nii.gz").dataobj, float)
    numpy.asarray(image.dataobj).astype("<i2").T.tofile(tmp_path / "raw")
    subprocess.run([TOOL, "cpu", ",".join(map(str, image.shape)), ",".join(map(str, image.header.get_zooms()[:3])),
                    tmp_path / "raw", tmp_path / "out", f"boundary={boundary}", *settings], check=True)
    found = numpy.fromfile(tmp_path / "out", float).reshape(image.shape[::-1]).T
    assert numpy.abs(found - expected).max() <= 0.01 * (expected.max() - expected.min())


@pytest.mark.parametrize("wavelet", ["haar", "db2", "db3", "coif1", "coif3"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_pywavelets_has_the_same_responses(tmp_path, wavelet, level):
    values = numpy.random.default_rng(level).integers(-1000, 2000, (16, 24, 32)).astype("<i2")
    values.tofile(tmp_path / "raw")
    bands = pywt.swtn(values.astype(float), wavelet, level)[0]
    for band in ("LLL", "HLL", "LHL", "LLH", "HHL", "HLH", "LHH", "HHH"):
        done = subprocess.run([TOOL, "cpu", "32,24,16", "1,1,1", tmp_path / "raw", tmp_path / "out", "kind=wavelet", "boundary=periodic",
                               f"wavelet={wavelet}", f"high={band}", f"level={level}"], check=True, text=True, capture_output=True)
        found = numpy.fromfile(tmp_path / "out", float).reshape(values.shape)
        expected = bands[band[::-1].replace("L", "a").replace("H", "d")]
        assert numpy.abs(found - expected).max() <= 0.5001 * float.fromhex(done.stdout.split()[0]) + 1e-10
