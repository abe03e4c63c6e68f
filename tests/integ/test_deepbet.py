"""A learned model as a site would run it: deepbet 1.0.2 on a T1 head, as docs/own-model.md configures it. The peer is the
same network on the file of dcm2niix. tests/tools/install-deps.sh models installs both."""

import json
import re
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import SHARED, SOURCE, assert_valid, needs_shared, put
from test_result_peers import Results, images_dcmqi, images_pydicom_seg
from test_run import seg_masks

MODELS = SOURCE / "build" / "models"
SERIES = SHARED / "mr-brain-t1"
PAGE = (SOURCE / "docs" / "own-model.md").read_text()

pytestmark = [needs_shared, pytest.mark.skipif(not (MODELS / "pins").exists(),
                                               reason="deepbet is not here: tests/tools/install-deps.sh models")]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Returns the script of the document."""
    path = tmp_path_factory.mktemp("deepbet") / "run.py"
    path.write_text(re.search(r"cat > /opt/deepbet/run.py <<'END'\n(.*?)END\n", PAGE, re.S)[1])
    return path


@pytest.fixture(scope="module")
def mask(script):
    """Returns the mask of deepbet without Noctule, as SimpleITK reads it."""
    subprocess.run(["dcm2niix", "-o", script.parent, "-f", "case", "-z", "y", SERIES], check=True, capture_output=True)
    subprocess.run([MODELS / "bin" / "python", script, script.parent / "case.nii.gz", script.parent / "mask.nii.gz"],
                   check=True, env={"OMP_NUM_THREADS": "2"})
    return SimpleITK.ReadImage(str(script.parent / "mask.nii.gz"))


def settings(root, script):
    """Returns a configuration with the programs and pipelines of the document."""
    (block,) = re.findall(r"```\n(programs = .*?)```", PAGE, re.S)
    (weights,) = MODELS.glob("lib/*/site-packages/data")
    block = block.replace("/opt/deepbet/run.py", str(script)).replace(
        'weights = [ "/opt/deepbet" ]', f'weights = [ "{weights}", "{script}" ]; read = [ "{MODELS}" ]')
    return (f'root = "{root}";\ninbox = ( {{ path = "inbox"; }} );\n'
            "series = { quiet_seconds = 1.0; complete_seconds = 0.3; };\n" + block.replace("/opt/deepbet", str(MODELS))
            + 'rules = ( { match = { modality = "MR"; }; pipeline = "brain"; } );\n')


def test_the_seg_is_the_mask_of_the_network(daemon, tmp_path, script, mask):
    d = daemon(settings=settings(tmp_path / "daemon0" / "root", script)).start()
    put(SERIES.glob("*.dcm"), d.inbox)
    (job,) = d.wait_jobs(states=("DONE", "REVIEW", "EMPTY", "FAILED"), seconds=240)
    assert job["state"] == "DONE", job["message"]
    path = d.root / job["result_path"]

    # Both in one orientation. The images in SimpleITK's order give the place of the SEG's frames.
    files = SimpleITK.ImageSeriesReader.GetGDCMSeriesFileNames(str(SERIES))
    voxels = seg_masks(path, [pydicom.dcmread(file, stop_before_pixels=True) for file in files])[0]
    found = SimpleITK.GetImageFromArray(voxels.astype(np.uint8))
    found.CopyInformation(SimpleITK.ReadImage(files))
    found, truth = (SimpleITK.DICOMOrient(image, "LPS") for image in (found, mask))
    assert np.allclose(found.GetOrigin(), truth.GetOrigin(), atol=0.01)
    assert np.allclose(found.GetDirection(), truth.GetDirection(), atol=1e-4)
    assert np.array_equal(SimpleITK.GetArrayFromImage(found), SimpleITK.GetArrayFromImage(truth))
    assert 900 < voxels.sum() * np.prod(found.GetSpacing()) / 1000 < 2000

    assert_valid(path)
    others = Results(None, SERIES, path.parent, tmp_path)
    for image in (*images_dcmqi(others).values(), *images_pydicom_seg(others).values()):
        image = SimpleITK.Resample(image, found, SimpleITK.Transform(), SimpleITK.sitkNearestNeighbor)
        assert np.array_equal(SimpleITK.GetArrayFromImage(image), SimpleITK.GetArrayFromImage(found))
    (segment,) = highdicom.seg.segread(path).SegmentSequence
    assert segment.SegmentAlgorithmType == "AUTOMATIC"
    (algorithm,) = segment.SegmentationAlgorithmIdentificationSequence
    assert algorithm.AlgorithmFamilyCodeSequence[0].CodeValue == "123110"
    assert (algorithm.AlgorithmName, algorithm.AlgorithmVersion) == ("deepbet", "1.0.2")
    assert algorithm.AlgorithmSource == "https://github.com/wwu-mmll/deepbet"

    (run,) = d.query("SELECT * FROM v_program_runs")
    assert run["state"] == "DONE" and run["labels"] == 1 and run["labelled_voxels"] == voxels.sum()
    (program,) = json.loads((path.parent / "job.json").read_text())["programs"]
    assert program["mask_sha256"] == run["mask_sha256"]
    assert run["mask_sha256"] in algorithm.AlgorithmParameters
