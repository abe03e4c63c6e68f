#!/usr/bin/env python3
"""Times `noctule run` of a series of 512x512x300 whose segment a program of the site makes, and whose segment is a range. The
program copies a label map, so its own time is near 0. Prints one JSON line per case and the difference.

    build/venv/bin/python tests/bench/program_overhead.py BIN FOLDER [REPEATS]    FOLDER: scratch, for 300 MB
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import nibabel
import numpy as np
import pydicom

LOW = 250.5
TYPE = 'type = { code = "272673000"; scheme = "SCT"; meaning = "Bone"; };'


def label_map(files, path):
    """Writes the voxels above the threshold as nibabel does."""
    planes = sorted((pydicom.dcmread(file) for file in files), key=lambda plane: plane.ImagePositionPatient[2])
    first, last = (np.array(planes[i].ImagePositionPatient, float) for i in (0, -1))
    rows, columns = (float(mm) for mm in planes[0].PixelSpacing)
    matrix = np.diag([columns, rows, 1.0, 1.0])
    matrix[:3, 2] = (last - first) / (len(planes) - 1)
    matrix[:3, 3] = first
    slope, intercept = float(planes[0].RescaleSlope), float(planes[0].RescaleIntercept)
    values = np.stack([plane.pixel_array * slope + intercept > LOW for plane in planes])
    nibabel.save(nibabel.Nifti1Image(values.T.astype(np.uint8), np.diag([-1, -1, 1, 1]) @ matrix), path)


def timed(command, repeats):
    seconds = []
    for _ in range(repeats):
        begun = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.monotonic() - begun)
    return {"seconds": round(statistics.median(seconds), 3), "least": round(min(seconds), 3)}


def main(programs, folder, repeats=5):
    programs, folder = pathlib.Path(programs).resolve(), pathlib.Path(folder).resolve() / "overhead"
    (folder / "labels").mkdir(parents=True)
    subprocess.run([programs / "noctule-phantom", "--output", folder / "in", "--size", "512x512x300"], check=True)
    label_map(list((folder / "in").rglob("*.dcm")), folder / "labels" / "case.nii.gz")
    (folder / "noctule.conf").write_text(f"""root = "{folder}/root";
programs = ( {{ name = "copy"; command = [ "/bin/sh", "-c", "cp $0 $2/case.nii.gz", "{folder}/labels/case.nii.gz", "{{in}}",
    "{{out}}" ]; read = [ "{folder}/labels" ]; algorithm = {{ name = "copy"; version = "1"; }}; }} );
pipelines = (
  {{ name = "range"; segments = ( {{ label = "Bone"; method = "range"; range = [ {LOW}, 1e9 ]; {TYPE} }} ); }},
  {{ name = "program"; unreviewed = true;
     segments = ( {{ label = "Bone"; method = "program"; program = "copy"; value = 1; {TYPE} }} ); }} );
""")
    figures = {}
    for pipeline in ("range", "program"):
        command = [programs / "noctule", "--config", folder / "noctule.conf", "run", "--quiet", "-p", pipeline,
                   "-o", folder / f"out-{pipeline}", folder / "in"]
        subprocess.run(command, check=True)
        figures[pipeline] = timed(command, int(repeats))
        print(json.dumps({"case": pipeline, **figures[pipeline]}), flush=True)
    voxels = {json.loads(next((folder / f"out-{pipeline}").rglob("job.json")).read_text())["segments"][0]["voxels"]
              for pipeline in figures}
    assert len(voxels) == 1, voxels
    print(json.dumps({"case": "difference", **{key: round(figures["program"][key] - figures["range"][key], 3)
                                               for key in figures["range"]}}))
    shutil.rmtree(folder)


main(*sys.argv[1:])
