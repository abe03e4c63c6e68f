#!/usr/bin/env python3
"""The main job as a typical Python program: pydicom, scipy (or cc3d), highdicom.

    peer_pipeline.py --range LO HI [--radius R] [--label scipy|cc3d] OUTPUT.dcm FOLDER

Reads every DICOM file of a folder, sorts the slices, runs the level set of Trapani 2018 (in its equivalent
form: connected components of the voxels in and out of range) from a ball of R voxels in the middle, and
writes a BINARY SEG, synced. It is the baseline of `noctule run`. The integration tests use its functions
as references for masks.
"""

import argparse
import os
import pathlib
import time

import numpy as np
import pydicom


def read_series(folder):
    """Returns the images of a folder in ascending order along the normal, and their values: (slice, row, column)."""
    datasets = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        try:
            dataset = pydicom.dcmread(path)
        except pydicom.errors.InvalidDicomError:
            continue
        if "PixelData" in dataset:
            datasets.append(dataset)
    row, column = np.reshape([float(v) for v in datasets[0].ImageOrientationPatient], (2, 3))
    normal = np.cross(row, column)
    datasets.sort(key=lambda d: float(np.dot(normal, [float(v) for v in d.ImagePositionPatient])))
    values = np.stack([d.pixel_array for d in datasets])
    slopes = [float(d.get("RescaleSlope", 1)) for d in datasets]
    intercepts = [float(d.get("RescaleIntercept", 0)) for d in datasets]
    if any(s != 1 for s in slopes) or any(i != 0 for i in intercepts):
        values = values * np.reshape(slopes, (-1, 1, 1)) + np.reshape(intercepts, (-1, 1, 1))
    return datasets, values


def ellipsoid(shape, center, radius):
    """Returns the voxels of a volume (slice, row, column) in an ellipsoid given as (column, row, slice)."""
    z, y, x = np.ogrid[tuple(slice(n) for n in shape)]
    parts = [((axis - c) / r) ** 2 for axis, c, r in zip((x, y, z), center, radius)]
    return (parts[0] + parts[1]) + parts[2] <= 1


def sphere(shape, center, radius):
    z, y, x = np.ogrid[tuple(slice(n) for n in shape)]
    parts = [(axis - c) ** 2 for axis, c in zip((x, y, z), center)]
    return (parts[0] + parts[1]) + parts[2] <= radius**2


def components(mask, engine):
    """Returns the 6-connected components, as an array of labels from 1, and their number."""
    if engine == "cc3d":
        import cc3d

        return cc3d.connected_components(mask, connectivity=6, return_N=True)
    import scipy.ndimage

    return scipy.ndimage.label(mask)


def level_set(in_range, initial, engine="scipy"):
    """Returns the final region: every in-range component that touches the initial region."""
    labels, count = components(in_range, engine)
    reached = np.zeros(count + 1, bool)
    reached[labels[initial]] = True
    reached[0] = False
    return reached[labels]


def write_seg(datasets, mask, path):
    import highdicom

    code = highdicom.sr.CodedConcept
    description = highdicom.seg.SegmentDescription(
        segment_number=1,
        segment_label="White matter",
        segmented_property_category=code("123037004", "SCT", "Anatomical Structure"),
        segmented_property_type=code("68523003", "SCT", "Cerebral white matter"),
        algorithm_type=highdicom.seg.SegmentAlgorithmTypeValues.AUTOMATIC,
        algorithm_identification=highdicom.AlgorithmIdentificationSequence(
            "level set", code("123109", "DCM", "Region Growing"), "1"
        ),
    )
    seg = highdicom.seg.Segmentation(
        source_images=datasets,
        pixel_array=mask.astype(np.uint8),
        segmentation_type=highdicom.seg.SegmentationTypeValues.BINARY,
        segment_descriptions=[description],
        series_instance_uid=highdicom.UID(),
        series_number=9001,
        sop_instance_uid=highdicom.UID(),
        instance_number=1,
        manufacturer="Peer",
        manufacturer_model_name="Peer",
        software_versions="1",
        device_serial_number="1",
        omit_empty_frames=True,
    )
    with open(path, "wb") as out:
        seg.save_as(out)
        out.flush()
        os.fsync(out.fileno())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--range", nargs=2, type=float, required=True)
    parser.add_argument("--radius", type=float, default=50)
    parser.add_argument("--label", choices=("scipy", "cc3d"), default="scipy")
    parser.add_argument("output")
    parser.add_argument("folder")
    options = parser.parse_args()
    times = [time.perf_counter()]
    datasets, values = read_series(options.folder)
    times.append(time.perf_counter())
    in_range = (values >= options.range[0]) & (values <= options.range[1])
    center = [(n - 1) / 2 for n in reversed(values.shape)]
    mask = level_set(in_range, sphere(values.shape, center, options.radius), options.label)
    times.append(time.perf_counter())
    write_seg(datasets, mask, options.output)
    times.append(time.perf_counter())
    stages = (f"{name} {b - a:.2f} s" for name, a, b in zip(("read", "compute", "write"), times, times[1:]))
    print(f"{int(mask.sum())} voxels;", ", ".join(stages))


if __name__ == "__main__":
    main()
