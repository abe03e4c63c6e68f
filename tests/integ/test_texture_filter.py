"""Texture of filtered volumes: statistics of responses equal to SciPy, on processors and emulated GPUs, and around regions as in the whole volume."""

import json
import math
import shutil
import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN, EMULATED, needs_emulator
from scipy import ndimage, signal
from test_texture_grid import SPACING, blobs, shifted
from texture_runs import features, pipeline, segment, series

FILTERS = {
    "mean": 'kind = "mean"; size = 5;',
    "log": 'kind = "log"; sigma_mm = 1.2; boundary = "zero";',
    "laws": 'kind = "laws"; kernels = "L5E5S5"; pooling = "max"; energy = 7; boundary = "nearest";',
    "wavelet": 'kind = "wavelet"; wavelet = "coif1"; kernels = "LHL"; level = 2; pooling = "mean";',
    "periodic": 'kind = "wavelet"; wavelet = "db3"; kernels = "HL"; in_slice = true; boundary = "periodic";',
    "gabor": 'kind = "gabor"; sigma_mm = 1.5; gamma = 0.8; lambda_mm = 3.0; theta_degrees = 45.0; pooling = "mean";',
    "simoncelli": 'kind = "simoncelli"; level = 2; in_slice = true;',
    "riesz-log": 'kind = "riesz-log"; sigma_mm = 1.2; kernels = "11"; boundary = "zero"; in_slice = true;',
}
RANGE = ('{ label = "Part"; method = "range"; range = [ -100.0, 200.0 ]; '
         'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; }')


@pytest.fixture
def measure(tmp_path):
    """Runs noctule run with texture groups. Returns the features."""
    config = tmp_path / "noctule.conf"

    def call(source, groups, segments, programs=BIN, backend="cpu"):
        text = pipeline("@", segments, ("seg", "sr")).replace("{ @ }", f"( {', '.join('{ ' + g + ' }' for g in groups)} )")
        config.write_text(f'root = "{tmp_path / "root"}"; compute = {{ backend = "{backend}"; }};' + text)
        subprocess.run([programs / "noctule", "--config", config, "run", "--pipeline", "texture", "--output", tmp_path / "out",
                        source], check=True, timeout=300)
        assert json.loads((tmp_path / "out" / "job.json").read_text())["backend"] == backend
        found = features(tmp_path / "out")
        shutil.rmtree(tmp_path / "out")
        return found

    return call


def convolved(values, kernels, mode):
    for axis, kernel in zip((2, 1, 0), kernels):
        values = ndimage.convolve1d(values, kernel, axis, mode=mode)
    return values


def gabor(values):
    """The mean modulus of four directions in each plane, by convolutions of the mirrored volume."""
    sums = 0
    for slices, b, a in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):  # z, y, x
        reach = [math.ceil(6 * 1.5 / 0.8 / SPACING[2 - axis]) for axis in (b, a)]
        y, x = np.meshgrid(*[np.arange(-r, r + 1) * SPACING[2 - axis] for r, axis in zip(reach, (b, a))], indexing="ij")
        padded = np.pad(np.moveaxis(values, slices, 0), ((0, 0), *[(r, r) for r in reach]), mode="symmetric")
        for angle in np.radians(np.arange(0, 180, 45)):
            u, w = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
            kernel = np.exp(-(u * u + (0.8 * w) ** 2) / (2 * 1.5 ** 2) + 2j * np.pi * u / 3)
            sums = sums + np.moveaxis(np.abs(signal.fftconvolve(padded, kernel[None], mode="valid", axes=(1, 2))), 0, slices)
    return sums / 12


def simoncelli(values):
    """Level 2 in each slice: the real part on a grid that is off centre for even sides."""
    y, x = np.meshgrid(*[np.fft.ifftshift(2 * np.arange(n) - (n - 1)) / (n - 1) for n in values.shape[1:]], indexing="ij")
    radius = 2 * np.hypot(y, x)
    ring = np.where((radius >= 0.25) & (radius <= 1), np.cos(np.pi / 2 * np.log2(np.maximum(2 * radius, 1e-9))), 0)
    return np.fft.ifft2(np.fft.fft2(values) * ring).real


def laplacian_of_gaussian(values, axes):
    log = np.zeros(values.shape)
    for second in range(axes):
        kernels = []
        for axis, mm in enumerate(SPACING[:axes]):
            s = 1.2 / mm
            t = np.arange(-int(4 * s + 0.5), int(4 * s + 0.5) + 1)
            kernel = np.exp(-t * t / (2 * s * s)) / (np.sqrt(2 * np.pi) * s)
            kernels.append(kernel * (t * t / s ** 4 - 1 / s ** 2) * (SPACING[0] / mm) ** 2 if axis == second else kernel)
        log += convolved(values, kernels, "constant")
    return log


def riesz(values):
    """Orders 1, 1 along columns and rows of slices; the highest frequency of even sides has no sign."""
    v, u = np.meshgrid(*[np.fft.fftfreq(n) for n in values.shape[1:]], indexing="ij")
    signs = np.where((u == -0.5) | (v == -0.5), 0, u * v)
    return np.fft.ifft2(np.fft.fft2(values) * -math.sqrt(2) * signs / np.maximum(u * u + v * v, 1e-30)).real


def responses(values):
    """Responses of some of the filters, by SciPy."""
    mean = convolved(values, [np.full(5, 0.2)] * 3, "reflect")
    low = np.array([0.035226291882100656, -0.08544127388224149, -0.13501102001039084, 0.4598775021193313, 0.8068915093133388,
                    0.3326705529509569])
    return {"mean": mean, "log": laplacian_of_gaussian(values, 3), "gabor": gabor(values), "simoncelli": simoncelli(values),
            "riesz-log": riesz(laplacian_of_gaussian(values, 2)),
            "periodic": convolved(values, [low[::-1] * [-1, 1, -1, 1, -1, 1], low], "wrap")}


@pytest.mark.parametrize("rescale", ["common", "each"])
def test_statistics_of_responses(measure, tmp_path, rescale):
    """Of whole numbers, and of real numbers of slices with a rescale each; the range is of the values themselves."""
    slopes = np.linspace(0.5, 2.5, 9) if rescale == "each" else 1
    source = series(tmp_path / "in", shifted(), SPACING, slopes=slopes, intercepts=-24)
    values = shifted() * np.reshape(slopes, (-1, 1, 1)) - 24.0
    kept = (values >= -90) & (values <= 200)
    expected = responses(values)
    found = measure(source, [f'filter = {{ {FILTERS[name]} }}; range = [ -90.0, 400.0 ];' for name in expected], [RANGE])
    for name, response in expected.items():
        kind = "wavelet" if name == "periodic" else name
        told = {f["name"]: f["value"] for f in found if f["filter"] == kind}
        of_region = response[kept]
        for feature, value in (("minimum", of_region.min()), ("maximum", of_region.max()), ("mean", of_region.mean()),
                               ("variance", of_region.var()), ("median", np.median(of_region))):
            assert math.isclose(told[feature], value, rel_tol=1e-7, abs_tol=1e-5), (name, feature)
    assert {f["value"] for f in found if f["name"] == "voxel_count"} == {((values >= -100) & (values <= 200)).sum()}
    assert all(f["range"] == [-90, 400] for f in found if f["family"] == "first-order")


# Codes of IBSI (arXiv:2006.05470) and of 99NOCTULE in docs/conformance.md.
CODES = {'kind = "mean"; size = 3;': "S60F", 'kind = "log"; sigma_mm = 1.2;': "L6PA", 'kind = "laws"; kernels = "L5E5S5";': "JTXT",
         'kind = "wavelet"; wavelet = "sym4"; kernels = "LHL";': "25BO",
         'kind = "gabor"; sigma_mm = 1.5; gamma = 0.8; lambda_mm = 3.0; theta_degrees = 45.0;': "Q88H",
         'kind = "simoncelli";': "SIMONCELLI", 'kind = "riesz-log"; sigma_mm = 1.2; kernels = "110";': "RIESZ_LOG",
         'kind = "riesz-simoncelli"; kernels = "110";': "RIESZ_SIMONCELLI", 'kind = "pyradiomics-square";': "PYRAD_SQUARE",
         'kind = "pyradiomics-squareroot";': "PYRAD_SQUAREROOT", 'kind = "pyradiomics-logarithm";': "PYRAD_LOGARITHM",
         'kind = "pyradiomics-exponential";': "PYRAD_EXP", 'kind = "pyradiomics-gradient";': "PYRAD_GRADIENT",
         'kind = "pyradiomics-lbp-2d";': "PYRAD_LBP_2D", 'kind = "pyradiomics-lbp-3d"; harmonic = "m2";': "PYRAD_LBP_3D",
         'kind = "pyradiomics-wavelet"; wavelet = "bior2.2"; kernels = "HLL";': "PYRAD_WAVELET",
         'kind = "pyradiomics-log"; sigma_mm = 1.0;': "PYRAD_LOG"}


def test_the_report_and_the_table_name_each_filter(tmp_path):
    """With its code and its settings. The size of the region does not depend on filters, and is there once."""
    series(tmp_path / "in", shifted(), SPACING)
    groups = ", ".join(f"{{ filter = {{ {text} }}; }}" for text in CODES)
    text = pipeline("@", [RANGE], ("seg", "sr")).replace("{ @ }", f"( {groups} )")
    (tmp_path / "noctule.conf").write_text(f'root = "{tmp_path / "root"}";' + text)
    subprocess.run([BIN / "noctule", "--config", tmp_path / "noctule.conf", "run", "--pipeline", "texture", "--output", tmp_path / "out",
                    "--cohort", tmp_path / "in"], check=True, timeout=300)
    (report,) = tmp_path.glob("out/**/sr.dcm")
    found = {}

    def visit(items):
        for item in items:
            parts = item.get("ContentSequence", [])
            named = {part.ConceptNameCodeSequence[0].CodeValue: part for part in parts if "ConceptNameCodeSequence" in part}
            if "FILTER" in named:
                code = named["FILTER"].ConceptCodeSequence[0]
                found.setdefault((code.CodeValue, code.CodingSchemeDesignator), set()).add(named["FILTER_SETTINGS"].TextValue)
            visit(parts)

    visit([pydicom.dcmread(report)])
    assert found.keys() == {(code, "IBSI" if len(code) == 4 else "99NOCTULE") for code in CODES.values()}
    assert all(len(settings) == 1 for settings in found.values())
    columns = (tmp_path / "out" / "cohort.csv").read_text().splitlines()[0]
    for text in CODES:  # a minus before a digit is "m"
        kind = text.split('"')[1].replace("-2d", "m2d").replace("-3d", "m3d").replace("-", "_")
        assert f".{kind}." in columns, kind
    assert columns.split(",").count("shape.voxel_count") == columns.count("voxel_count") == 1


def parts(folder):
    centres = {"A": (20, 20, 5), "B": (48, 47, 10)}
    return (series(folder, blobs((16, 60, 70), *centres.values()), SPACING),
            [segment(-300, 600, voxel, 2, label) for label, voxel in centres.items()])


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("resample", ["", 'resample = { isotropic_mm = 1.1; interpolation = "cubic"; };'])
def test_parts_are_filtered_like_the_whole(measure, tmp_path, name, resample):
    source, segments = parts(tmp_path / "in")
    group = f'{resample} filter = {{ {FILTERS[name]} }}; families = [ "all" ]; levels = 8; glcm = {{ matrices = "counts"; }};'
    told = [[f for f in measure(source, [regions + group], segments) if f["segment_number"]]
            for regions in ('regions = [ "segments" ];', 'regions = [ "segments", "volume" ];')]
    assert len(told[0]) > 300 and told[0] == told[1]
    assert {f["filter"] for f in told[0] if f["family"] == "glcm"} == {"wavelet" if name == "periodic" else name}


@needs_emulator
def test_gpus_give_the_same_responses(measure, tmp_path):
    source, segments = parts(tmp_path / "in")
    groups = [f'filter = {{ {settings} }}; families = [ "first-order", "glcm" ]; levels = 8;' for settings in FILTERS.values()]
    told = [json.dumps(measure(source, groups, segments, *programs)) for programs in ((BIN, "cpu"), (EMULATED, "cuda"))]
    assert told[0] == told[1]


def test_memory_is_predicted(tmp_path):
    """A filtered volume that does not fit is refused before any work. Without the filter it fits."""
    values = np.random.default_rng(3).integers(-300, 600, (60, 160, 160), np.int16)
    source, config = series(tmp_path / "in", values, (1.0, 1.0, 1.0)), tmp_path / "noctule.conf"
    for settings, status in (("", 0), (FILTERS["log"], 1)):
        group = 'regions = [ "volume" ];' + f" filter = {{ {settings} }};" * bool(settings)
        config.write_text(f'root = "{tmp_path / "root"}";' + pipeline(group, [RANGE], extra="memory_mib = 70.0;"))
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "texture", "--output", tmp_path / f"{status}",
                                 source], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stderr
    assert "JOB_TOO_LARGE" in result.stderr and "filtered" in result.stderr


def test_a_filter_beyond_its_limit_is_refused(tmp_path):
    source, config = series(tmp_path / "in", shifted(), SPACING), tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path / "root"}";' + pipeline('filter = { kind = "log"; sigma_mm = 26.0; };', [RANGE]))
    result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "texture", "--output", tmp_path / "out", source],
                            text=True, capture_output=True, timeout=300)
    assert result.returncode == 1 and "VOLUME_TOO_LARGE" in result.stderr and "smaller sigma_mm" in result.stderr


@pytest.mark.parametrize("resample", ["", 'resample = { isotropic_mm = 1.1; };'])
def test_groups_share_a_response(measure, tmp_path, resample):
    """Groups with one filter and other ranges, regions and families measure what each of them measures alone; what several of
    them measure alike is there once."""
    source, segments = parts(tmp_path / "in")
    log, mean = (f"{resample} filter = {{ {FILTERS[name]} }};" for name in ("log", "mean"))
    groups = [f'{log} families = [ "first-order", "local-intensity" ];',
              f'{mean} range = [ -90.0, 400.0 ];',
              f'{log} range = [ -50.0, 300.0 ]; families = [ "intensity-histogram" ]; levels = 8;',
              f'{mean} regions = [ "volume", "segments" ];',
              f'{log} families = [ "glcm" ]; discretisation = "fixed-bin-size"; bin_width = 5.0;']
    alone = [feature for group in groups for feature in measure(source, [group], segments)]
    together = measure(source, groups, segments)
    assert len(together) > 200
    assert sorted(map(json.dumps, together)) == sorted(set(map(json.dumps, alone)))
