"""Responses to the digital phantoms of IBSI 2: within 1 % of the range of the reference maps, in every voxel. Wavelets: their
table, and periodic volumes by PyWavelets' stationary transform, rounded to a step, or as pyradiomics calls it, bit for bit."""

import fractions
import os
import pathlib
import re
import subprocess
import textwrap

import nibabel
import numpy
import pytest
import pywt
import SimpleITK
from radiomics import imageoperations

from conftest import SHARED, SOURCE

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


WAVELETS = ("haar", *(f"db{n}" for n in range(1, 21)), *(f"sym{n}" for n in range(2, 21)), *(f"coif{n}" for n in range(1, 6)),
            *pywt.wavelist("bior"), *pywt.wavelist("rbio"))
TABLE = SOURCE / "base" / "wavelets.def"


def test_the_table_of_wavelets():
    """Taps are those of PyWavelets, so that responses to constant parts, which are errors of rounding, have the same sign."""
    rows = (f'WAVELET({name.upper().replace(".", "_")}, "{name}", {", ".join(map(repr, pywt.Wavelet(name).dec_lo))})'
            for name in WAVELETS)
    head, _, _ = TABLE.read_text().partition("WAVELET(HAAR")
    text = head + "".join(textwrap.fill(row, 119, subsequent_indent=" " * 8) + "\n" for row in rows) + "#undef WAVELET\n"
    if "NOCTULE_WRITE_WAVELETS" in os.environ:
        TABLE.write_text(text)
    assert TABLE.read_text() == text


@pytest.mark.parametrize("name", WAVELETS)
def test_the_taps_solve_the_equations_of_the_wavelet(name):
    """Perfect reconstruction, and the vanishing moments of the family (Daubechies, Ten Lectures on Wavelets, chapters 6 to 8), in
    exact arithmetic. Of several solutions dbN is the one of minimum phase: its zeros are not outside the unit circle. PyWavelets
    has up to 1.5e-11 of rounding in its tables of sym, and its rbio5.5 has four moments."""
    wavelet = pywt.Wavelet(name)
    low, synthesis, high = ([fractions.Fraction(tap) for tap in taps] for taps in (wavelet.dec_lo, wavelet.rec_lo, wavelet.dec_hi))
    count = len(low)
    assert abs(float(sum(low)) ** 2 - 2) < 1e-10 and abs(float(sum(synthesis)) ** 2 - 2) < 1e-10
    for shift in range(2 - count, count, 2):
        product = sum(low[count - 1 - i] * synthesis[i + shift] for i in range(count) if 0 <= i + shift < count)
        assert abs(product - (shift == 0)) < 1e-10
    kind, orders = re.fullmatch(r"(haar|[a-z]+)([\d.]*)", name).groups()
    moments = {"haar": lambda: 1, "db": lambda: int(orders), "sym": lambda: int(orders), "coif": lambda: 2 * int(orders),
               "bior": lambda: int(orders[0]), "rbio": lambda: int(orders[2])}[kind]() - (name == "rbio5.5")
    middle = fractions.Fraction(count - 1, 2)
    for moment in range(moments):
        assert abs(sum(tap * ((i - middle) / middle) ** moment for i, tap in enumerate(high))) < 1e-10
    if kind == "coif":  # moments of the low-pass filter about its centre
        centre = sum(i * tap for i, tap in enumerate(low)) / sum(low)
        for moment in range(1, moments):
            assert abs(sum(tap * ((i - centre) / middle) ** moment for i, tap in enumerate(low))) < 1e-10
    if kind == "db" and moments < 8:  # multiple zeros at -1 spread in double precision
        zeros = numpy.roots(wavelet.dec_lo[::-1])
        assert (abs(zeros[abs(zeros + 1) > 0.2]) < 1).all()


@pytest.mark.parametrize("wavelet, level", [*((name, 1) for name in WAVELETS), ("haar", 2), ("db3", 3), ("coif1", 3), ("coif3", 3),
                                            ("sym20", 2), ("coif5", 2), ("bior2.2", 2), ("rbio3.9", 3), ("bior6.8", 3)])
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


@pytest.mark.parametrize("wavelet", WAVELETS)
def test_image_types_have_the_bits_of_pywavelets(tmp_path, wavelet):
    """Sums that are 0 in exact arithmetic have the same error of rounding. The level of a voxel may depend on it."""
    random = numpy.random.default_rng(0)
    for shape, level, start_level, axes in (((16, 24, 32), 1, 0, (2, 1, 0)), ((5, 7, 3), 2, 1, (2, 1, 0)), ((9, 38, 67), 3, 0, (2, 1, 0)),
                                            ((2, 1, 4), 4, 2, (2, 1, 0)), ((1, 6, 40), 1, 3, (2, 1)), ((14, 41, 70), 2, 0, (2, 1))):
        whole = random.integers(-1000, 2000, shape).astype("<i2")
        whole[:, :shape[1] // 2] = 40
        whole[:, :, shape[2] // 2:] = -1024
        for values in (whole, random.normal(size=shape) * 300):
            values.astype(float).tofile(tmp_path / "raw")
            subprocess.run([TOOL, "cpu", ",".join(map(str, shape[::-1])), "1,1,1", tmp_path / "raw", tmp_path / "out",
                            "kind=pyradiomics-wavelet", f"wavelet={wavelet}", f"level={level}", f"start_level={start_level}",
                            *(["in_slice"] if len(axes) == 2 else [])], check=True)
            found = numpy.fromfile(tmp_path / "out", float).reshape(-1, *shape)
            low, bands = imageoperations._swt3(SimpleITK.GetImageFromArray(values), axes, wavelet=wavelet, level=level, start_level=start_level)
            bands[-1]["L" * len(axes)] = low
            assert len(found) == len(bands[-1]) == 2 ** len(axes)
            for band, image in bands[-1].items():
                ours = found[sum((letter == "H") << axis for axis, letter in enumerate(band))]
                assert ours.tobytes() == SimpleITK.GetArrayFromImage(image).tobytes(), (shape, band)
