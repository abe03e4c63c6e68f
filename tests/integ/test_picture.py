"""Pictures as Secondary Captures, checked by independent readers: pydicom, dciodvfy, dcm2pnm, Orthanc. The overview must
equal preview.png, and slices must show the images with the outlines of the SEG, where the object says that they are."""

import hashlib
import io
import json
import subprocess

import highdicom
import numpy as np
import PIL.Image
import pydicom
import pytest

from conftest import SHARED, drop, needs_shared, orthanc, phantom, run_program, storescu
from test_seg import dciodvfy_remarks

MANY, SINGLE = "1.2.840.10008.5.1.4.1.1.7.4", "1.2.840.10008.5.1.4.1.1.7"
CONFIG = """root = "{root}"; pipelines = ( {{ name = "soft"; results = [ {results} ]; {extra}
  segments = ( {{ label = "Soft tissue"; method = "range"; range = [ 0.0, 80.0 ]; color = [ 1.0, 0.0, 0.0 ];
                  type = {{ code = "T"; scheme = "99X"; meaning = "tissue"; }}; }} ); }} );"""


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs a pipeline with pictures, and returns the output folder."""
    def run(source, name="out", extra="preview_window = [ 40.0, 80.0 ];", results='"seg", "picture"', options=(), config=CONFIG):
        path = tmp_path / f"{name}.conf"
        path.write_text(config.format(root=tmp_path / "root", extra=extra, results=results))
        run_program("noctule", "--config", path, "run", "--pipeline", "soft", "--output", tmp_path / name, *options, source)
        return tmp_path / name
    return run


def errors(path):
    return [remark for remark in dciodvfy_remarks(path) if remark.startswith("Error")]


def slices_of(folder):
    return sorted((pydicom.dcmread(path) for path in folder.iterdir()), key=lambda d: d.ImagePositionPatient[2])


def assert_frame_shows(frame, dataset, mask):
    """512 x 512 voxels are as many pixels, below a line of text. Greys are of 112 steps, so at most 2 away. Letters of
    directions are left out: they are in the middle of the sides."""
    image, outline = frame[24:24 + 512].astype(int), np.ptp(frame[24:24 + 512].astype(int), axis=2) > 60
    value = dataset.pixel_array * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
    grey = np.clip(value / 80, 0, 1) * 255
    inner = np.zeros((512, 512), bool)
    inner[40:-40, 40:-40] = True
    assert (abs(image[..., 0] - grey)[inner & ~outline] <= 2).all()
    padded = np.pad(mask, 1)
    eroded = mask & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    assert (outline == (mask & ~eroded))[inner].all() and outline[inner].sum() > 100


def test_frames_are_the_slices_with_outlines(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "512x512x9")
    output = run(tmp_path / "in")
    picture, overview = (pydicom.dcmread(output / name) for name in ("picture.dcm", "picture-overview.dcm"))
    assert (picture.SOPClassUID, overview.SOPClassUID) == (MANY, SINGLE)
    assert picture.SeriesInstanceUID == overview.SeriesInstanceUID and picture.SOPInstanceUID != overview.SOPInstanceUID
    for path in output.glob("*.dcm"):
        assert errors(path) == []
    for dataset in picture, overview:
        assert (dataset.PhotometricInterpretation, dataset.SamplesPerPixel, dataset.PlanarConfiguration) == ("RGB", 3, 0)
        assert (dataset.BurnedInAnnotation, dataset.RecognizableVisualFeatures) == ("NO", "YES")  # a head
        assert "Not for diagnosis" in dataset.ImageComments and dataset.ConversionType == "WSD"
    datasets = slices_of(tmp_path / "in")
    assert picture.FrameOfReferenceUID == datasets[0].FrameOfReferenceUID and "FrameOfReferenceUID" not in overview
    assert [s.ReferencedSOPInstanceUID for s in picture.SourceImageSequence] == [d.SOPInstanceUID for d in datasets]
    assert picture.NumberOfFrames == 9 and list(picture.PageNumberVector) == list(range(1, 10))
    # The overview is the preview.
    assert (overview.pixel_array == np.asarray(PIL.Image.open(output / "preview.png").convert("RGB"))).all()
    # Each frame shows its slice, also to DCMTK.
    masks = highdicom.seg.segread(output / "seg.dcm").get_pixels_by_source_instance(
        [d.SOPInstanceUID for d in datasets], combine_segments=False, assert_missing_frames_are_empty=True)[..., 0]
    for number, (dataset, mask) in enumerate(zip(datasets, masks.astype(bool))):
        frame = picture.pixel_array[number]
        assert_frame_shows(frame, dataset, mask)
        subprocess.run(["dcm2pnm", "--frame", str(number + 1), "--write-raw-pnm", output / "picture.dcm", tmp_path / "frame.ppm"], check=True)
        assert (np.asarray(PIL.Image.open(tmp_path / "frame.ppm")) == frame).all()
    assert len(files) == 9


def test_frames_have_their_place_in_the_patient(run, tmp_path):
    """A slice of 40 x 60 voxels of 3 x 2 mm begins below the line of text, in the middle of the frame."""
    phantom(tmp_path / "in", "--size", "40x60x7", "--spacing", "3,2,5")
    picture = pydicom.dcmread(run(tmp_path / "in") / "picture.dcm")
    shared = picture.SharedFunctionalGroupsSequence[0]
    rows, columns = map(float, shared.PixelMeasuresSequence[0].PixelSpacing)
    assert rows == pytest.approx(120 / 512, rel=1e-6) and columns == pytest.approx(120 / 512, rel=1e-6)
    assert picture.Columns == 512
    for dataset, item in zip(slices_of(tmp_path / "in"), picture.PerFrameFunctionalGroupsSequence):
        orientation = shared.PlaneOrientationSequence[0].ImageOrientationPatient
        assert orientation == dataset.ImageOrientationPatient
        position = np.array(item.PlanePositionSequence[0].ImagePositionPatient, float)
        # The outer corner of the first voxel is that of pixel (24, 0).
        corner = position + np.array(orientation[:3], float) * -0.5 * columns + np.array(orientation[3:], float) * (24 - 0.5) * rows
        voxel = np.array(dataset.ImagePositionPatient, float) - 0.5 * np.array([3.0, 2.0, 0.0])
        assert corner == pytest.approx(voxel, abs=1e-6)


def test_an_object_per_frame(run, tmp_path):
    phantom(tmp_path / "in", "--size", "64x64x4")
    many = run(tmp_path / "in", "many")
    single = run(tmp_path / "in", "single", 'preview_window = [ 40.0, 80.0 ]; picture_frames = "single";')
    names = ["picture-0001.dcm", "picture-0002.dcm", "picture-0003.dcm", "picture-0004.dcm", "picture-overview.dcm"]
    assert sorted(path.name for path in single.glob("picture*")) == names
    results = json.loads((single / "job.json").read_text())["results"]
    assert [r["file"] for r in results if r["kind"] == "picture"] == names
    datasets = [pydicom.dcmread(single / name) for name in names]
    assert len({d.SOPInstanceUID for d in datasets}) == 5 and len({d.SeriesInstanceUID for d in datasets}) == 1
    assert [d.InstanceNumber for d in datasets] == [1, 2, 3, 4, 5]
    frames = pydicom.dcmread(many / "picture.dcm").pixel_array
    for number, (dataset, source) in enumerate(zip(datasets, slices_of(tmp_path / "in"))):
        assert errors(single / names[number]) == [] and dataset.SOPClassUID == SINGLE
        assert (dataset.pixel_array == frames[number]).all()
        assert [s.ReferencedSOPInstanceUID for s in dataset.SourceImageSequence] == [source.SOPInstanceUID]


def test_any_number_of_threads_writes_the_same_bytes(run, tmp_path):
    phantom(tmp_path / "in", "--size", "96x96x13")
    digests = {tuple(hashlib.sha256((run(tmp_path / "in", f"t{threads}", options=("--threads", str(threads))) / name).read_bytes()).hexdigest()
                     for name in ("picture.dcm", "picture-overview.dcm", "preview.png")) for threads in (1, 3, 12)}
    assert len(digests) == 1


@pytest.mark.parametrize("frames", ["multi", "single"])
def test_compression_keeps_pixels_and_uids(run, tmp_path, frames):
    phantom(tmp_path / "in", "--kind", "ct-head", "--size", "64x60x12", "--spacing", "2,2,6")
    extra = f'preview_window = [ 40.0, 80.0 ]; picture_frames = "{frames}";'
    plain = run(tmp_path / "in", "plain", extra)
    names = sorted(path.name for path in plain.glob("picture*.dcm"))
    for compression, most, syntax in (("rle", 0.7, pydicom.uid.RLELossless), ("deflated", 0.5, pydicom.uid.DeflatedExplicitVRLittleEndian)):
        small = run(tmp_path / "in", compression, extra + f' compression = "{compression}";')
        assert names == sorted(path.name for path in small.glob("picture*.dcm")) and names
        for name in names:
            before, after = pydicom.dcmread(plain / name), pydicom.dcmread(small / name)
            assert after.file_meta.TransferSyntaxUID == syntax and errors(plain / name) == []
            assert (after.pixel_array == before.pixel_array).all()
            size = (small / name).stat().st_size / (plain / name).stat().st_size
            assert size < most
            # DCMTK and the sender write the bytes of the uncompressed object.
            run_program("convert_seg", "uncompressed", small / name, tmp_path / "again.dcm")
            assert (tmp_path / "again.dcm").read_bytes() == (plain / name).read_bytes()
            if compression == "rle":
                subprocess.run(["dcmdrle", small / name, tmp_path / "dcmdrle.dcm"], check=True)
                assert (pydicom.dcmread(tmp_path / "dcmdrle.dcm").pixel_array == before.pixel_array).all()
                subprocess.run(["dcm2pnm", "+Fa", "--write-raw-pnm", small / name, tmp_path / "shown"], check=True)
                shown = [np.asarray(PIL.Image.open(path)) for path in sorted(tmp_path.glob("shown*.ppm"), key=lambda p: int(p.name.split(".")[-2]))]
                assert (np.stack(shown) == before.pixel_array.reshape(len(shown), *shown[0].shape)).all()
                for path in tmp_path.glob("shown*"):
                    path.unlink()
            del before.PixelData, after.PixelData
            assert before == after


def test_the_source_may_identify_the_patient(run, tmp_path):
    for path in phantom(tmp_path / "in", "--kind", "chest", "--size", "64x64x6"):
        dataset = pydicom.dcmread(path)
        dataset.BurnedInAnnotation = "YES"
        dataset.save_as(path)
    picture = pydicom.dcmread(run(tmp_path / "in") / "picture.dcm")
    assert picture.BurnedInAnnotation == "YES" and "RecognizableVisualFeatures" not in picture


def test_a_straightened_stack_has_pictures_of_its_grid(run, tmp_path):
    phantom(tmp_path / "in", "--size", "64x64x12", "--tilt", "12")
    output = run(tmp_path / "in")
    picture = pydicom.dcmread(output / "picture.dcm")
    assert errors(output / "picture.dcm") == [] and picture.NumberOfFrames >= 12
    positions = np.array([i.PlanePositionSequence[0].ImagePositionPatient for i in picture.PerFrameFunctionalGroupsSequence], float)
    normal = np.cross(*np.array(picture.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0].ImageOrientationPatient, float).reshape(2, 3))
    steps = np.diff(positions, axis=0)
    assert np.allclose(np.cross(steps, normal), 0, atol=1e-5), "slices are shifted"
    assert len(picture.SourceImageSequence) == 12


@needs_shared
def test_orthanc_stores_and_renders_pictures(run, tmp_path):
    output = run(SHARED / "ct-head-tilted")
    with orthanc(tmp_path / "orthanc") as peer:
        storescu(peer.port, output / "picture.dcm", output / "picture-overview.dcm", called="ORTHANC", options=("-R",))
        assert len(peer.instances()) == 2
        for instance in peer.instances():
            stored = pydicom.dcmread(io.BytesIO(peer.file(instance)))
            frames = stored.pixel_array.reshape(-1, stored.Rows, stored.Columns, 3)
            for number in {0, len(frames) - 1}:
                shown = PIL.Image.open(io.BytesIO(peer.rest(f"/instances/{instance}/frames/{number}/preview"))).convert("RGB")
                assert (np.asarray(shown) == frames[number]).all()


def test_pictures_beyond_four_gib_fail_once(daemon, tmp_path):
    """5000 frames of at least 512 x 512 x 3 bytes exceed 4 GiB. The limit is the format's, so that no retry can help."""
    d = daemon(quiet=1.0, pipeline_extra='results = [ "picture" ];')
    d.start()
    drop(phantom(tmp_path / "in", "--size", "16x16x5000", "--multi-frame"), d.inbox)
    (job,) = d.wait_jobs(1)
    assert (job["state"], job["code"], job["attempts"]) == ("FAILED", "PICTURE_TOO_LARGE", 1), job["message"]


def test_memory_of_pictures_counts_before_the_job(run, tmp_path):
    """Eight frames in colour and the overview need more than the volume of 1 MB."""
    phantom(tmp_path / "in", "--size", "96x96x64")
    assert run(tmp_path / "in", "seg", "memory_mib = 16.0;", '"seg"').exists()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run(tmp_path / "in", "picture", "memory_mib = 16.0;", '"picture"')
    assert "JOB_TOO_LARGE" in refused.value.stderr and "(memory_mib of pipeline soft)" in refused.value.stderr
