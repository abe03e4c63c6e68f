#!/usr/bin/env python3
"""
Runs the presets on patients, on other regions and on changed series, and prints a table of their outcomes.

    accept_presets.py [SHARED] [--only TEXT] [--preset NAME] [--sheets FOLDER]

SHARED is the folder of shared data; without it, only phantoms run. NOCTULE_BIN is the folder of the programs. --only
selects series by a part of their name. A result is wrong if it is DONE and has less than the preset's Dice with the
truth, or if it is DONE in a series without the anatomy. The exit status is 1 if there is one. The truth of a changed
series is the result of the series before, which was checked by eye, or the truth of a phantom. --sheets writes a contact
sheet per series and preset: outlines on 20 slices.
"""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pydicom
from PIL import Image
from scipy import ndimage

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integ"))
from conftest import read_truth  # noqa: E402

BIN = pathlib.Path(os.environ["NOCTULE_BIN"])
DICE = {"body": 0.98, "head-ct": 0.97, "lung": 0.95, "fat": 0.9}
SEGMENT = {"body": "Body", "head-ct": "Intracranial", "lung": "Aerated lungs", "fat": "Inner fat"}
WINDOW = {"body": (-1000, 300), "head-ct": (-60, 140), "lung": (-1100, 200), "fat": (-200, 200)}
COLORS = [(255, 60, 60), (60, 255, 60), (60, 255, 255)]

# Series of patients, the presets that find their anatomy, and the variants of these.
SERIES = {
    "ct-head-tilted": ["head-ct", "body"], "abdomen/low-dose": ["fat", "body"], "chest/planning": ["lung", "body"],
    "chest/lung-kernel": ["lung"], "chest/low-dose-5mm": ["lung", "body"], "neck/contrast": [], "ct-head-5mm": [], "mr-brain-t1": [],
    "sarcoma/STS_001/CT/image": [], "sarcoma/STS_002/CT/image": [], "sarcoma/STS_006/CT/image": [], "sarcoma/STS_008/CT/image": [],
    "ibsi/ibsi_1_ct_radiomics_phantom/dicom/image": [],
}
# Kinds of noctule-phantom with sizes, and the tissues of the truth.
PHANTOMS = {
    "ct-head": ("head-ct", ["180x210x80", "256x256x40", "128x128x128", "300x300x54"], {"grey matter", "white matter", "ventricle", "cord"}),
    "chest": ("lung", ["210x190x75", "256x256x110", "160x160x60", "320x320x50"], {"right lung", "left lung", "emphysema", "vessel"}),
    "body": ("fat", ["230x230x40", "300x300x66", "170x170x90", "400x400x26"], {"visceral fat"}),
}

# Round fields of view: mm within the mask, at the right only or not, and the values outside.
FIELDS = [(3, False, np.nan, "padding"), (10, False, np.nan, "padding"), (10, False, -1024, "-1024 HU"), (-3, True, np.nan, "padding"),
          (10, True, np.nan, "padding"), (10, True, -2000, "-2000 HU"), (25, True, -1024, "-1024 HU")]

# ---------------------------------------------------------------------------------------- series


@functools.cache
def read(folder):
    """Returns the images of a series along their normal, and their HU."""
    images = [pydicom.dcmread(path) for path in pathlib.Path(folder).rglob("*.dcm")]
    images = [image for image in images if "PixelData" in image and "ImageOrientationPatient" in image]
    normal = np.cross(*np.array(images[0].ImageOrientationPatient, float).reshape(2, 3))
    images.sort(key=lambda image: float(np.dot(normal, np.array(image.ImagePositionPatient, float))))
    values = np.stack([image.pixel_array * float(image.get("RescaleSlope", 1)) + float(image.get("RescaleIntercept", 0))
                       for image in images])
    return images, values


def spacing(images):
    """Returns mm between slices, rows and columns."""
    first, second = (np.array(image.ImagePositionPatient, float) for image in images[:2])
    return float(np.linalg.norm(second - first)), *(float(mm) for mm in images[0].PixelSpacing)


def write(images, values, folder):
    """Writes a series with other values in HU, NAN for padding, and UIDs of its own. `images` may be a part of those of
    the series."""
    folder.mkdir(parents=True)
    series = pydicom.uid.generate_uid()
    for number, (image, plane) in enumerate(zip(images, values)):
        copy = pydicom.Dataset(image)
        copy.file_meta = pydicom.dataset.FileMetaDataset()
        copy.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        copy.file_meta.MediaStorageSOPClassUID = copy.SOPClassUID
        copy.SeriesInstanceUID, copy.SOPInstanceUID = series, pydicom.uid.generate_uid()
        copy.file_meta.MediaStorageSOPInstanceUID = copy.SOPInstanceUID
        copy.InstanceNumber = number + 1
        copy.Rows, copy.Columns = plane.shape
        copy.PixelRepresentation, copy.BitsAllocated, copy.BitsStored, copy.HighBit = 1, 16, 16, 15
        copy.RescaleSlope, copy.RescaleIntercept = "1", "0"
        for keyword in ("ImagesInAcquisition", "PixelPaddingValue", "SmallestImagePixelValue", "LargestImagePixelValue", "PixelPaddingRangeLimit"):
            if keyword in copy:
                del copy[keyword]
        if np.isnan(values).any():
            copy.add_new("PixelPaddingValue", "SS", -2000)
        copy.PixelData = np.clip(np.rint(np.nan_to_num(plane, nan=-2000)), -32768, 32767).astype("<i2").tobytes()
        copy.save_as(folder / f"{number:04}.dcm", enforce_file_format=True)
    return folder


# -------------------------------------------------------------------------------------- variants


def noise(values, sigma, correlated=False):
    field = np.random.default_rng(7).normal(size=values.shape)
    if correlated:
        field = ndimage.gaussian_filter(field, (0, 1, 1))
        field /= field.std()
    return values + sigma * field


def ball(shape, mm, center, radius):
    at = np.ogrid[tuple(slice(0, size) for size in shape)]
    return sum(((a - c) * step) ** 2 for a, c, step in zip(at, center, mm)) <= radius ** 2


def averaged(images, values, count):
    """Returns thicker slices: the images in the middle of each `count`, and their means."""
    ends = range(0, len(values) - count + 1, count)
    return [images[first + count // 2] for first in ends], np.stack([values[first:first + count].mean(axis=0) for first in ends])


def middle(mask):
    return [float(at.mean()) for at in np.nonzero(mask)]


def field_of_view(values, mask, mm, inside, beside, fill):
    """Returns the values with `fill` outside of a circle, and the voxels of the mask there. The circle ends as many mm
    within the mask: at both ends of its longer axis, or beside it at the patient's right only."""
    _, y, x = np.nonzero(mask)
    half = [(at.max() - at.min() + 1) / 2 * step for at, step in ((y, mm[1]), (x, mm[2]))]
    radius = max(half) + (20 if beside else -inside)
    shift = radius - half[1] + inside if beside else 0
    down, right = np.ogrid[:values.shape[1], :values.shape[2]]
    outside = (((down - (y.max() + y.min()) / 2) * mm[1]) ** 2
               + ((right - (x.max() + x.min()) / 2) * mm[2] - shift) ** 2 > radius ** 2)
    return np.where(outside, fill, values), mask & outside


def flap(values, mask, mm):
    """Bone of the skull on one side becomes soft tissue, and the brain swells into it."""
    z, y, x = middle(mask)
    there = ball(values.shape, mm, (z, y, x + 60 / mm[2]), 45)
    return np.where(there & (values > 60), 35, values)


def lost_lobe(values, mask, mm):
    """The upper third of one lung is consolidated."""
    z, _, x = middle(mask)
    low, high = np.flatnonzero(mask.any(axis=(1, 2)))[[0, -1]]
    there = mask.copy()
    there[:int(high - (high - low) / 3)] = False
    there[:, :, int(x):] = False
    return np.where(there, 35, values)


def stomach(values, mask, mm):
    """A large bubble of gas below the left lung."""
    low = np.flatnonzero(mask.any(axis=(1, 2)))[0]
    _, y, x = middle(mask)
    return np.where(ball(values.shape, mm, (low + 5 / mm[0], y, x + 70 / mm[2]), 32), -1000, values)


def thicker(images, values, mask):
    """Yields variants of about 3, 5 and 7 mm."""
    step = spacing(images)[0]
    for count in sorted({round(thick / step) for thick in (3, 5, 7)} - {0, 1}):
        yield f"slices of {count * step:.3g} mm", *averaged(images, values, count), averaged(images, mask, count)[1]


def variants(preset, images, values, mask):
    """Yields names, images, values and the truth: None if the result must not be DONE. Then the voxels of an organ that the
    images lack, if any."""
    mm, size = spacing(images), values.shape
    for sigma in (15, 30, 45, 60):
        yield f"white noise of {sigma} HU", images, noise(values, sigma), mask
        yield f"correlated noise of {sigma} HU", images, noise(values, sigma, True), mask
    for offset in (-15, 15):
        yield f"{offset} HU", images, values + offset, mask
    yield "+1024 HU", images, values + 1024, None
    yield "an 8th of the contrast", images, values / 8, None
    yield from thicker(images, values, mask)
    whole = preset in ("head-ct", "lung")
    at = np.flatnonzero(mask.any(axis=(1, 2)))
    for share in (0.1, 0.25, 0.5):
        cut = int(share * (at[-1] - at[0]))
        low, high = at[0] + cut, at[-1] - cut
        yield f"{share:.0%} cut off at the head", images[:high], values[:high], mask[:high], mask[high:].sum() if whole else 0
        yield f"{share:.0%} cut off at the feet", images[low:], values[low:], mask[low:], mask[:low].sum() if whole else 0
    columns = np.flatnonzero(mask.any(axis=(0, 1)))
    side = int(columns[0] + 0.2 * (columns[-1] - columns[0]))
    yield "a fifth cut off at the right", images, values[:, :, side:], None
    for inside, beside, fill, padding in FIELDS:
        changed, lost = field_of_view(values, mask, mm, inside, beside, fill)
        # A body without its sides, and fat without its skin, are wrong. Half an organ is compared with the whole one.
        expected = mask & ~lost if whole or preset == "body" and inside < 0 else None
        yield (f"a field of view that ends {abs(inside)} mm {'within' if inside > 0 else 'outside of'} it at "
               f"{'the right' if beside else 'both ends'}, {padding}"), images, changed, expected, lost.sum()
    if preset == "head-ct":
        yield "a flap off", images, flap(values, mask, mm), None
        yield "gas", images, np.where(ball(size, mm, middle(mask), 16), -1000, values), None
        yield "a bleed", images, np.where(ball(size, mm, middle(mask), 20), 75, values), mask
    if preset == "lung":
        yield "an upper lobe lost", images, lost_lobe(values, mask, mm), None
        yield "gas of a stomach", images, stomach(values, mask, mm), mask


# ------------------------------------------------------------------------------------------ runs


def segments(path, images):
    """Returns the masks of a SEG by label."""
    dataset = pydicom.dcmread(path)
    place = {image.SOPInstanceUID: number for number, image in enumerate(images)}
    labels = [segment.SegmentLabel for segment in dataset.SegmentSequence]
    masks = {label: np.zeros((len(images), dataset.Rows, dataset.Columns), bool) for label in labels}
    frames = np.atleast_3d(dataset.pixel_array).reshape(-1, dataset.Rows, dataset.Columns)
    for frame, groups in zip(frames, dataset.PerFrameFunctionalGroupsSequence):
        label = labels[groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber - 1]
        source = groups.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        masks[label][place[source]] = frame > 0
    return masks


class Table:
    """Runs and their rows."""

    def __init__(self, folder, sheets):
        self.folder, self.sheets, self.rows = folder, sheets, []

    def run(self, preset, series):
        """Returns the outcome, the reasons, and the masks by label."""
        output = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        result = subprocess.run([BIN / "noctule", "presets", preset, "--test", series, "--output", output, "--json"],
                                text=True, capture_output=True, timeout=600)
        jobs = json.loads(result.stdout)["jobs"] if result.stdout else []
        if len(jobs) != 1:
            raise SystemExit(f"{preset} on {series}: {result.stderr}")
        job = jobs[0]
        images = [pydicom.dcmread(path, stop_before_pixels=True) for path in pathlib.Path(series).rglob("*.dcm")]
        normal = np.cross(*np.array(images[0].get("ImageOrientationPatient", [1, 0, 0, 0, 1, 0]), float).reshape(2, 3))
        images = sorted((image for image in images if "ImagePositionPatient" in image and "Rows" in image),
                        key=lambda image: float(np.dot(normal, np.array(image.ImagePositionPatient, float))))
        seg = output / "seg.dcm"
        return job["outcome"], job.get("message", ""), segments(seg, images) if seg.exists() else {}

    def add(self, preset, name, outcome, reasons, dice, expected):
        """`expected`: whether the series has the anatomy."""
        done = outcome == "DONE"
        verdict = "held"
        if done:
            verdict = "right" if expected and dice >= DICE[preset] else "WRONG"
        self.rows.append((preset, verdict, expected, dice))
        shown = "" if dice is None else f"{dice:.4f}"
        print(f"{verdict:6} {preset:8} {shown:6} {name}: {outcome}{'' if done else ', ' + reasons}", flush=True)

    def sheet(self, preset, name, values, masks):
        if self.sheets and masks:
            draw(values, masks, WINDOW[preset], self.sheets / f"{preset}-{name.replace('/', '-')}.png")

    def summary(self):
        """Returns a table in Markdown. Its share is that of the runs with the anatomy."""
        lines = ["| preset | runs | with the anatomy | right and DONE | share | held | wrong and DONE | lowest Dice of these DONE |",
                 "|---|---|---|---|---|---|---|---|"]
        for preset in DICE:
            rows = [row[1:] for row in self.rows if row[0] == preset]
            count = {verdict: sum(row[0] == verdict for row in rows) for verdict in ("right", "held", "WRONG")}
            able = sum(expected for _, expected, _ in rows)
            lowest = min((dice for verdict, expected, dice in rows if expected and verdict != "held"), default=None)
            lines.append(f"| {preset} | {len(rows)} | {able} | {count['right']} | {count['right'] / max(1, able):.0%} | {count['held']} | "
                         f"{count['WRONG']} | {'' if lowest is None else f'{lowest:.4f}'} |")
        return "\n".join(lines)

    def wrong(self):
        return sum(row[1] == "WRONG" for row in self.rows)


def dice(one, other, lost=0):
    """`other`: a mask, or the shares of voxels that belong to it. A voxel of which just a half does is not compared."""
    if other.dtype != bool:
        one, other = one & (other != 0.5), other > 0.5
    return float(2 * (one & other).sum() / max(1, one.sum() + other.sum() + lost))


def draw(values, masks, window, path):
    used = np.flatnonzero(np.logical_or.reduce(list(masks.values())).any(axis=(1, 2)))
    first, last = (used[0], used[-1]) if len(used) else (0, len(values) - 1)
    tiles = []
    for z in np.linspace(first, last, 20).astype(int):
        grey = np.clip((values[z] - window[0]) / (window[1] - window[0]), 0, 1) * 255
        tile = np.repeat(grey[..., None], 3, axis=2)
        for mask, color in zip(masks.values(), COLORS):
            tile[mask[z] & ~ndimage.binary_erosion(mask[z])] = color
        tiles.append(np.asarray(Image.fromarray(tile.astype(np.uint8)).resize((300, 300 * values.shape[1] // values.shape[2]))))
    rows = [np.concatenate(tiles[n:n + 5], axis=1) for n in range(0, 20, 5)]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(rows)).save(path)


def run_variants(table, preset, name, changes):
    """Runs the variants of a right result. A held one has none."""
    for variant, images, changed, expected, *lost in changes:
        folder = write(images, changed, pathlib.Path(tempfile.mkdtemp(dir=table.folder)) / "series")
        outcome, reasons, masks = table.run(preset, folder)
        found = masks.get(SEGMENT[preset])
        score = dice(found, expected, *lost) if found is not None and expected is not None else None
        table.add(preset, f"{name}, {variant}", outcome, reasons, score, expected is not None)


def run_patients(table, shared, only, presets):
    for name, anatomy in SERIES.items():
        if only not in name:
            continue
        images, values = read(shared / name)
        folder = shared / name
        if images[0].Modality != "CT":
            for image in images:
                image.Modality, image.SOPClassUID = "CT", pydicom.uid.CTImageStorage
            folder = write(images, values, table.folder / "as-ct")
        for preset in presets:
            if preset == "body" and preset not in anatomy:
                continue
            outcome, reasons, masks = table.run(preset, folder)
            table.sheet(preset, name, values, masks)
            # A DONE result of the anatomy was checked by eye.
            table.add(preset, name, outcome, reasons, 1.0 if preset in anatomy and outcome == "DONE" else None, preset in anatomy)
            if preset in anatomy and outcome == "DONE":
                mask = masks[SEGMENT[preset]]
                run_variants(table, preset, name, variants(preset, images, values, mask))


def run_phantoms(table, only, presets):
    for kind, (preset, sizes, tissues) in PHANTOMS.items():
        for number, size in enumerate(sizes):
            name = f"phantom {kind} {size}"
            if only not in name:
                continue
            folder = table.folder / f"{kind}-{size}"
            subprocess.run([BIN / "noctule-phantom", "--output", folder, "--kind", kind, "--size", size, "--truth", f"{folder}.seg.nrrd"],
                           check=True, capture_output=True)
            for other in presets:
                if other not in (preset, "body"):
                    outcome, reasons, _ = table.run(other, folder)
                    table.add(other, name, outcome, reasons, None, False)
            if preset not in presets:
                continue
            truth = read_truth(f"{folder}.seg.nrrd")
            expected = np.logical_or.reduce([truth[tissue] for tissue in tissues & set(truth)])
            images, values = read(folder)
            outcome, reasons, masks = table.run(preset, folder)
            table.sheet(preset, name, values, masks)
            table.add(preset, name, outcome, reasons, dice(masks.get(SEGMENT[preset], expected & False), expected), True)
            every = variants(preset, images, values, expected) if number == 0 else thicker(images, values, expected)
            run_variants(table, preset, name, every)


def accept(shared, only="", presets=tuple(DICE), sheets=None):
    """Returns the table of runs. `shared`: the folder of shared data, or None."""
    with tempfile.TemporaryDirectory() as folder:
        table = Table(pathlib.Path(folder), sheets)
        if shared:
            run_patients(table, shared, only, presets)
        run_phantoms(table, only, presets)
        return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shared", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--preset", choices=DICE)
    parser.add_argument("--sheets", type=pathlib.Path)
    options = parser.parse_args()
    table = accept(options.shared, options.only, [options.preset] if options.preset else list(DICE), options.sheets)
    print(f"\n{table.summary()}")
    return 1 if table.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
