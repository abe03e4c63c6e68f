"""The slice viewer: planes of the web UI compared with pydicom and highdicom, voxel for voxel; damage, limits, retention."""

import concurrent.futures
import io
import json
import struct
import urllib.request

import highdicom
import nibabel
import numpy as np
import PIL.Image
import pydicom
import pytest
from conftest import SHARED, drop, needs_shared, phantom, wait_for
from test_page import Site
from test_report_night import SEGMENT

VIEWS = ("ax", "cor", "sag")
CODES = """category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };"""
PIPELINE = f"""
pipelines = ( {{ name = "both"; results = [ "seg", "nifti" ]; seg_grid = "upright"; omit_empty_frames = false;
  segments = ( {{ label = "High"; method = "range"; range = [ 120.0, 1000000.0 ]; color = [ 1.0, 0.2, 0.0 ]; {CODES} }},
               {{ label = "Low"; method = "range"; range = [ -300.0, 60.0 ]; color = [ 0.0, 0.5, 1.0 ]; {CODES} }} ); }} );
rules = ( {{ match = {{ }}; pipeline = "both"; }} );
"""
SERIES = {
    "axial": "ct-head-5mm", "tilted": "ct-head-tilted", "feet first, sharp": "chest/lung-kernel/dicom",
    "sagittal": "brain/mprage-sagittal/dicom", "oblique": "brain/ms01-1-t1w/dicom", "a rescale per slice": "sarcoma/STS_006/PET/image",
}


def settings(root, pipelines=PIPELINE):
    return f"""
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 2.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
compute = {{ lanes = 1; backend = "cpu"; }};
min_free_mib = 1;
""" + pipelines


def site_of(daemon, tmp_path, options="slices = true;", **others):
    return Site(daemon, options, settings=settings(tmp_path / "daemon0" / "root", **others)).start()


class Plane:
    """A plane as the script reads it."""

    def __init__(self, data):
        assert data[:8] == b"NOCTPLN1"
        head, self.file, self.columns, self.rows, signed, count, along, layers = struct.unpack_from("<8I", data, 8)
        self.place = data[40:72].rstrip(b"\0").decode()
        rescales = np.frombuffer(data, "<f8", 2 * count, 72).reshape(count, 2)
        numbers = np.frombuffer(data, "<u4", layers, 72 + 16 * count)
        shape, pitch = (self.rows, self.columns), (self.columns + 7) // 8
        self.stored = np.frombuffer(data, "<i2" if signed else "<u2", self.rows * self.columns, head).reshape(shape)
        slopes, intercepts = (rescales[:, i].reshape((count, 1) if along == 1 else (1, count)) for i in (0, 1))
        self.values = self.stored * slopes + intercepts
        bits = np.frombuffer(data, np.uint8, layers * self.rows * pitch, head + 2 * self.rows * self.columns)
        bits = np.unpackbits(bits.reshape(layers, self.rows, pitch), axis=2, bitorder="little")[:, :, :self.columns]
        self.layers = {int(number): layer.astype(bool) for number, layer in zip(numbers, bits)}
        assert len(data) == head + 2 * self.stored.size + layers * self.rows * pitch


def to_patient(volume, axes):
    """Turns an array, whose axes have these directions in LPS, so that its axes lead to the head, posterior and left."""
    axes = np.array(axes, float)
    order, left = {}, np.abs(axes)
    for _ in range(3):  # the largest component first
        axis, along = np.unravel_index(np.argmax(left), left.shape)
        order[2 - along] = axis
        left[axis, :], left[:, along] = -1, -1
    turned = np.transpose(volume, [order[i] for i in range(3)])
    return turned[tuple(slice(None, None, -1 if axes[order[i]][2 - i] < 0 else 1) for i in range(3))]


def cut(volume, view, at):
    """The plane as readers of images expect it, of an array that leads to the head, posterior and left."""
    return {"ax": lambda: volume[at], "cor": lambda: volume[::-1, at], "sag": lambda: volume[::-1, :, at]}[view]()


def source(folder):
    """Reads a series with pydicom: real values, and the directions of the array's axes."""
    files = [pydicom.dcmread(path) for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in ("", ".dcm")]
    files = [file for file in files if "PixelData" in file]
    across, down = np.array(files[0].ImageOrientationPatient, float).reshape(2, 3)
    normal = np.cross(across, down)
    files.sort(key=lambda file: float(np.dot(normal, file.ImagePositionPatient)))
    values = np.stack([file.pixel_array * float(file.get("RescaleSlope", 1)) + float(file.get("RescaleIntercept", 0))
                       for file in files])
    return values, (normal, down, across), [file.SOPInstanceUID for file in files]


def masks_of(seg, uids):
    """Reads the segments with highdicom, in the order of the instances."""
    frames = highdicom.seg.segread(seg).get_pixels_by_source_instance(uids)
    return [frames[:, :, :, i].astype(bool) for i in range(frames.shape[3])]


def upright(folder):
    """Reads volume and labels of a straightened stack from the NIfTI files: arrays, and their directions in LPS."""
    volume = nibabel.load(folder / "volume.nii.gz")
    labels = np.asanyarray(nibabel.load(folder / "labels.nii.gz").dataobj)
    axes = [np.array([-1, -1, 1]) * volume.affine[:3, i] / np.linalg.norm(volume.affine[:3, i]) for i in range(3)]
    return np.asanyarray(volume.dataobj).astype(float), [labels == 1, labels == 2], axes


@needs_shared
@pytest.mark.parametrize("name", SERIES)
def test_planes_equal_the_series(daemon, tmp_path, name):
    folder = SHARED / SERIES[name]
    site = site_of(daemon, tmp_path)
    drop([path for path in folder.rglob("*") if path.is_file() and path.suffix in ("", ".dcm")], site.daemon.inbox / "a")
    (job,) = site.daemon.wait_jobs(1, seconds=300)
    assert job["state"] == "DONE", dict(job)
    outbox = site.daemon.root / "outbox" / str(job["job"])
    if name == "tilted":
        values, masks, axes = upright(outbox)
    else:
        values, axes, uids = source(folder)
        masks = masks_of(outbox / "seg.dcm", uids)
    values, masks = to_patient(values, axes), [to_patient(mask, axes) for mask in masks]
    about = json.loads(site.text(f"api/v1/jobs/{job['job']}/planes"))
    assert [segment["label"] for segment in about["segments"]] == ["High", "Low"]
    assert [segment["rgb"] for segment in about["segments"]] == [[255, 51, 0], [0, 128, 255]]
    assert [about["planes"][view]["count"] for view in VIEWS] == list(values.shape)
    # Values are rounded by at most 4 of 256 greys, and only if the file would have more than a quarter of the bytes.
    assert about["error_max"] <= 4 / 256 * (about["window"]["high"] - about["window"]["low"])
    if name in ("tilted", "oblique"):
        assert about["error_max"] == 0
    if name == "feet first, sharp":
        assert (outbox / "slices.nslc").stat().st_size <= 2 * values.size / 4
    for view in VIEWS:
        count = about["planes"][view]["count"]
        for at in sorted({0, count // 3, count // 2, count - 1}):
            plane = Plane(site.get(f"api/v1/jobs/{job['job']}/planes/{view}/{at}")[1])
            assert plane.file == about["file"]
            np.testing.assert_allclose(plane.values, cut(values, view, at), rtol=1e-6, atol=about["error_max"] + 1e-6)
            for number, mask in enumerate(masks):
                found = plane.layers.get(number, np.zeros((plane.rows, plane.columns), bool))
                assert np.array_equal(found, cut(mask, view, at)), (view, at, number)
    assert masks[0].any() or masks[1].any()


def reviewed(daemon, tmp_path, options="", **others):
    """The web UI of a service with a small job under review."""
    pipelines = f"""
pipelines = ( {{ name = "brain"; segments = ( {{ {SEGMENT} expect = {{ volume_ml = [ 1.0, 2.0 ]; }}; }} ); }} );
rules = ( {{ match = {{ }}; pipeline = "brain"; }} );
"""
    site = site_of(daemon, tmp_path, options, pipelines=pipelines, **others)
    drop(phantom(tmp_path / "mr", "--kind", "mr-brain", "--size", "60x50x20", "--spacing", "2,2,5"), site.daemon.inbox / "a")
    (job,) = site.daemon.wait_jobs(1, states=("REVIEW",))
    return site, job["job"]


def test_slices_of_jobs_under_review_and_their_pictures(daemon, tmp_path):
    site, job = reviewed(daemon, tmp_path)
    planes = f"api/v1/jobs/{job}/planes"
    headers, text = site.get(planes)
    about = json.loads(text)
    assert headers["Content-Type"] == "application/json" and headers["Cache-Control"] == "no-store"
    assert about["planes"]["cor"] == {"count": 50, "columns": 60, "rows": 20, "pixel_mm": [2, 5], "step_mm": 2,
                                      "edges": ["R", "L", "H", "F"]}
    headers, data = site.get(f"{planes}/cor/25")
    assert headers["Content-Type"] == "application/octet-stream" and headers["Cache-Control"] == "no-store"
    plane = Plane(data)

    # The picture has true proportions, the window of the file, and an outline in the segment's colour around its voxels.
    headers, data = site.get(f"{planes}/cor/25.png")
    assert headers["Content-Type"] == "image/png"
    picture = np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    assert picture.shape == (round(384 * 100 / 120), 384, 3)
    grey = (picture[..., 0] == picture[..., 1]) & (picture[..., 1] == picture[..., 2])
    ys, xs = np.nonzero(~grey)
    assert {tuple(picture[y, x]) for y, x in zip(ys, xs)} == {tuple(about["segments"][0]["rgb"])}
    inside = plane.layers[0][(2 * ys + 1) * 20 // (2 * picture.shape[0]), (2 * xs + 1) * 60 // (2 * 384)]
    assert len(ys) > 100 and inside.all()
    low, high = about["window"]["low"], about["window"]["high"]
    for y, x in ((0, 0), (10, 30), (19, 59), (4, 41)):  # at a voxel's centre
        py, px = round((y + 0.5) * picture.shape[0] / 20 - 0.5), round((x + 0.5) * 384 / 60 - 0.5)
        if grey[py, px] and plane.values[max(y - 1, 0):y + 2, max(x - 1, 0):x + 2].std() < 1e-9:
            wanted = 255 * min(max((plane.values[y, x] - low) / (high - low), 0), 1)
            assert abs(picture[py, px, 0] - wanted) <= 3

    for path in ("0/planes", f"{job}/planes/", f"{job}/planes/ax", f"{job}/planes/ax/20", f"{job}/planes/ax/-1",
                 f"{job}/planes/ax/01", f"{job}/planes/ax/1.jpg", f"{job}/planes/up/1", f"{job}/planes/ax/1/",
                 f"{job}/planes/ax/99999999999", "999/planes", "../outbox/1/planes", f"0{job}/planes"):
        site.get("api/v1/jobs/" + path, 404)


def test_other_jobs_have_slices_only_by_option(daemon, tmp_path):
    pipelines = f"""
pipelines = ( {{ name = "brain"; segments = ( {{ {SEGMENT} }} ); }} );
rules = ( {{ match = {{ }}; pipeline = "brain"; }} );
"""
    site = site_of(daemon, tmp_path, "", pipelines=pipelines)
    drop(phantom(tmp_path / "mr", "--kind", "mr-brain", "--size", "32x32x6"), site.daemon.inbox / "a")
    (job,) = site.daemon.wait_jobs(1)
    assert "page.slices" in site.get(f"api/v1/jobs/{job['job']}/planes", 404)[1].decode()
    assert not (site.daemon.root / "outbox" / str(job["job"]) / "slices.nslc").exists()


def test_a_damaged_file_is_refused(daemon, tmp_path):
    site, job = reviewed(daemon, tmp_path)
    path = site.daemon.root / "outbox" / str(job) / "slices.nslc"
    whole = path.read_bytes()
    children = site.daemon.children("page")
    for damage in (b"", whole[:100], whole[:-1], whole[:20] + b"\xff" + whole[21:], whole[:-30] + bytes(30), whole + b"x"):
        path.write_bytes(damage)
        for view, last in zip(VIEWS, (19, 49, 59)):
            answers = [site.ask(f"api/v1/jobs/{job}/planes/{view}/{at}") for at in (0, 8, last)]
            assert any(status == 500 and b"SLICES_DAMAGED" in text for status, _, text in answers)
            assert all(status in (200, 500) for status, _, text in answers)
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert site.ask(f"api/v1/jobs/{job}/planes")[0] == 503
    path.unlink()
    path.mkdir()
    assert site.ask(f"api/v1/jobs/{job}/planes")[0] == 500
    path.rmdir()
    site.get(f"api/v1/jobs/{job}/planes", 404)
    path.write_bytes(whole)
    site.get(f"api/v1/jobs/{job}/planes/ax/3")
    assert site.daemon.children("page") == children
    site.daemon.wait_log("event=page.damaged")


def test_a_token_is_needed_for_planes(daemon, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    site, job = reviewed(daemon, tmp_path, f'token_file = "{token}";')
    for path in ("planes", "planes/ax/3", "planes/ax/3.png"):
        site.get(f"api/v1/jobs/{job}/{path}", 401)
        site.get(f"api/v1/jobs/{job}/{path}", Authorization="Bearer " + token.read_text().strip())
    site.get(f"api/v1/jobs/{job}/planes/ax/3", 421, Host="evil.example")


def test_many_requests_at_once_are_limited(daemon, tmp_path):
    """More than two at a time of one session are answered with 429; those that are served are whole."""
    site, job = reviewed(daemon, tmp_path)
    url = f"http://127.0.0.1:{site.port}/api/v1/jobs/{job}/planes/ax/3"
    wanted = site.get(url.split("/", 3)[3])[1]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(_):
        try:
            with opener.open(url, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            assert error.headers["Retry-After"] == "1"
            return error.code, b""

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(400)))
    assert {status for status, _ in answers} <= {200, 429}
    assert all(data == wanted for status, data in answers if status == 200)
    assert sum(status == 200 for status, _ in answers) > 20
    assert site.ask(url.split("/", 3)[3])[0] == 200  # no seat is lost


def test_retention_removes_the_slices(daemon, tmp_path):
    site, job = reviewed(daemon, tmp_path)
    folder = site.daemon.root / "outbox" / str(job)
    assert (folder / "slices.nslc").exists() and (folder / "preview.png").exists()
    ((uid,),) = site.daemon.query("SELECT series_uid FROM v_series")
    site.daemon.ctl("reject", str(job), "a test")
    site.daemon.ctl("purge", "--yes", "--undelivered", uid)
    wait_for(lambda: not folder.exists(), 60, "the removal of the folder")
    site.get(f"api/v1/jobs/{job}/planes", 404)
