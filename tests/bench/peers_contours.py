"""Compares contours as masks with platipy, dcmrtstruct2nii and plastimatch, on structure sets with published masks.

    PEERS/bin/python tests/bench/peers_contours.py build/ci/bin ../shared/data [PLASTIMATCH [REPEAT]]

PEERS is a separate virtual environment, because platipy needs an older pydicom than the tests: `pip install
platipy==0.7.2 dcmrtstruct2nii==5`. PLASTIMATCH is the program of that name (Debian's package), or "" to skip it.

Prints one line per structure set and peer. Its first figure is the median milliseconds from the file to the mask in
memory. The images are read before, except by plastimatch: its time is that of the whole command, which reads them and
writes the mask. The other figures are the voxels that differ from the published mask, by their distance to the
nearest edge of a contour of their plane: 0, an error of single precision, half a pixel's diagonal (the maximum shift
of an edge if corners are rounded to pixel centres), or more. The last structure set is synthetic: 200 contours of
2,000 points on 512 x 512, without a published mask; its voxels are compared with Noctule's.
"""

import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import pydicom
import SimpleITK
from dcmrtstruct2nii.adapters.convert.rtstructcontour2mask import DcmPatientCoords2Mask
from dcmrtstruct2nii.adapters.input.contours.rtstructinputadapter import RtStructInputAdapter
from platipy.dicom.io.rtstruct_to_nifti import transform_point_set_from_dicom_struct

KINDS = {"on an edge": 1e-6, "of single precision": 1e-4, "of a moved corner": math.sqrt(0.5) + 1e-6, "further": math.inf}
ENOUGH = 10.0  # seconds; slower peers are not repeated


class Ours:
    def __init__(self, programs, images, scratch):
        self.command = [programs / "draw_contours", scratch / "masks.raw"]
        self.images, self.raw = images, scratch / "masks.raw"

    def __call__(self, image, structures):
        report = json.loads(subprocess.run([*self.command, structures, *self.images], check=True, capture_output=True,
                                           text=True).stdout)
        (roi,) = report["rois"]
        mask = numpy.fromfile(self.raw, numpy.uint8).reshape(report["extent"][::-1]).astype(bool)
        return mask, report["open_seconds"] + roi["parse_seconds"] + roi["draw_seconds"]


def clocked(work):
    def timed(image, structures):
        begun = time.perf_counter()
        mask = work(image, structures)
        return mask, time.perf_counter() - begun
    return timed


def platipy(image, structures):
    (mask,), _ = transform_point_set_from_dicom_struct(image, pydicom.dcmread(structures))
    return SimpleITK.GetArrayFromImage(mask).astype(bool)


def dcmrtstruct2nii(image, structures):
    (roi,) = RtStructInputAdapter().ingest(str(structures))
    return SimpleITK.GetArrayFromImage(DcmPatientCoords2Mask().convert(roi["sequence"], image, 0, 1)).astype(bool)


def plastimatch(program, folder, scratch):
    def convert(image, structures):
        out = scratch / "plastimatch"
        subprocess.run([program, "convert", "--input", structures, "--referenced-ct", folder, "--output-prefix", out,
                        "--prefix-format", "nrrd"], check=True, capture_output=True)
        (file,) = out.iterdir()
        mask = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(file))).astype(bool)
        file.unlink()
        return mask
    return convert


# ---- differing voxels

def edges_of(image, structures):
    """Returns the edges of the contours of each plane in pixels: starts and steps."""
    planes = {}
    to_pixels = numpy.linalg.inv(numpy.array(image.GetDirection()).reshape(3, 3) * image.GetSpacing())
    for contour in pydicom.dcmread(structures).ROIContourSequence[0].ContourSequence:
        points = numpy.array(contour.ContourData, float).reshape(-1, 3) - image.GetOrigin()
        points = points @ to_pixels.T
        edges = numpy.hstack([points[:, :2], numpy.roll(points[:, :2], -1, axis=0) - points[:, :2]])
        planes.setdefault(round(points[0, 2]), []).append(edges)
    return {z: numpy.vstack(edges) for z, edges in planes.items()}


def distance(edges, x, y):
    along = (x - edges[:, 0]) * edges[:, 2] + (y - edges[:, 1]) * edges[:, 3]
    length = (edges[:, 2:] ** 2).sum(axis=1)
    part = numpy.clip(numpy.divide(along, length, out=numpy.zeros_like(along), where=length > 0), 0, 1)
    return numpy.hypot(x - edges[:, 0] - part * edges[:, 2], y - edges[:, 1] - part * edges[:, 3]).min()


def kinds(mask, expected, edges):
    """Returns the numbers of extra and of missing voxels, and of both per kind."""
    found = {"more": int((mask & ~expected).sum()), "fewer": int((expected & ~mask).sum()), **dict.fromkeys(KINDS, 0)}
    for z, y, x in numpy.argwhere(mask != expected):
        off = distance(edges[z], x, y) if z in edges else math.inf
        found[next(kind for kind, most in KINDS.items() if off <= most)] += 1
    return found


def repeated(work, image, structures, repeat):
    mask, seconds = work(image, structures)
    every = [seconds]
    while len(every) < repeat and sum(every) < ENOUGH:
        every.append(work(image, structures)[1])
    return mask, statistics.median(every)


def compare(name, image, structures, expected, tools, repeat):
    edges = edges_of(image, structures)
    for tool, work in tools.items():
        mask, seconds = repeated(work, image, structures, repeat)
        expected = mask if expected is None else expected
        print(f"{name:16} {tool:16} {1e3 * seconds:9.2f} ms", *(f"{count} {kind}" for kind, count in
              kinds(mask, expected, edges).items()), f"of {int(expected.sum())}", sep=", ", flush=True)


# ---- structure sets

def published(data):
    phantom = data / "ibsi" / "ibsi_1_ct_radiomics_phantom"
    yield "ibsi", phantom / "dicom" / "image", phantom / "dicom" / "mask", phantom / "nifti" / "mask" / "mask.nii.gz"
    for patient in ("STS_001", "STS_002"):
        for modality in ("CT", "PET", "MR_T1"):
            home = data / "sarcoma" / patient
            yield (f"{patient} {modality}", home / modality / "image", home / modality / "mask",
                   home / "nifti" / f"{modality}_mask.nii.gz")


def rings(count, points):
    """Returns waved rings in mm, one per slice, in 512 x 512 pixels of 0.8 mm around the origin of noctule-phantom."""
    turns = numpy.linspace(0, 2 * math.pi, points, endpoint=False)
    for z in range(count):
        radius = 140 + 15 * numpy.sin(23 * turns + z)
        yield numpy.stack([radius * numpy.cos(turns), radius * numpy.sin(turns)], axis=1), z


def made(programs, data, scratch):
    """Makes a series of 200 slices, and the structure set of IBSI's phantom with other contours on it."""
    series = scratch / "series"
    subprocess.run([programs / "noctule-phantom", "--output", series, "--size", "512x512x200", "--spacing", "0.8,0.8,1"],
                   check=True, capture_output=True)
    images = sorted((pydicom.dcmread(file, stop_before_pixels=True) for file in series.glob("*.dcm")),
                    key=lambda image: float(image.ImagePositionPatient[2]))
    (source,) = (data / "ibsi" / "ibsi_1_ct_radiomics_phantom" / "dicom" / "mask").glob("*.dcm")
    structures = pydicom.dcmread(source)
    corner = numpy.array(images[0].ImagePositionPatient, float)
    structures.StructureSetROISequence[0].ReferencedFrameOfReferenceUID = images[0].FrameOfReferenceUID
    of_frame = structures.ReferencedFrameOfReferenceSequence[0]
    of_frame.FrameOfReferenceUID = images[0].FrameOfReferenceUID
    of_series = of_frame.RTReferencedStudySequence[0].RTReferencedSeriesSequence[0]
    of_series.SeriesInstanceUID = images[0].SeriesInstanceUID
    contours = []
    for ring, z in rings(200, 2000):
        contour = pydicom.Dataset()
        contour.ContourGeometricType, contour.NumberOfContourPoints = "CLOSED_PLANAR", len(ring)
        middle = corner[:2] + 0.8 * 256
        contour.ContourData = [f"{value:.4f}" for x, y in ring + middle for value in
                               (x, y, float(images[z].ImagePositionPatient[2]))]
        contours.append(contour)
    structures.ROIContourSequence[0].ContourSequence = contours
    structures.save_as(scratch / "made.dcm")
    return series, scratch / "made.dcm"


def main():
    programs, data = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    program = sys.argv[3] if len(sys.argv) > 3 else ""
    repeat = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        cases = [(name, images, next(structures.glob("*.dcm")), mask) for name, images, structures, mask in
                 published(data)]
        cases.append(("200 x 2000", *made(programs, data, scratch), None))
        for name, images, structures, mask in cases:
            image = SimpleITK.ReadImage(SimpleITK.ImageSeriesReader().GetGDCMSeriesFileNames(str(images)))
            expected = mask and SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(mask))).astype(bool)
            tools = {"noctule": Ours(programs, sorted(images.glob("*.dcm")), scratch), "platipy": clocked(platipy),
                     "dcmrtstruct2nii": clocked(dcmrtstruct2nii)}
            if program:
                tools["plastimatch"] = clocked(plastimatch(program, images, scratch))
            compare(name, image, structures, expected, tools, repeat)


main()
