"""Results in OHIF 3.10, in headless Chromium, over Debian's Orthanc with DICOMweb. The daemon receives a series and sends the
results by C-STORE. OHIF's voxels, contours and pixels are compared with regions that are defined in patient coordinates.

A test waits for the state of OHIF's services and for the pixels of its canvas, so a busy machine only delays it. The folder in
NOCTULE_PICTURES receives the screenshots."""

import base64
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import tempfile
import time

import numpy as np
import PIL.Image
import pydicom
import pytest
import scipy.ndimage
import skimage.color
import skimage.measure
from chromium import HANG, PROGRAM, Browser
from conftest import daemons, orthanc, put, released_only, run_program, storescu, wait_for
from known_masks import COLORS, VALUES, known
from test_deliveries import to_archive
from test_flat import CR, image
from texture_runs import lbp

pytestmark = [released_only, pytest.mark.skipif(not PROGRAM, reason="chromium is not here")]

OHIF = pathlib.Path(importlib.util.find_spec("monailabel").submodule_search_locations[0]) / "endpoints" / "static" / "ohif"
PLUGINS = pathlib.Path("/usr/share/orthanc/plugins")
# Without requestTransferSyntaxUID, OHIF requests frames in any transfer syntax. For deflated objects Orthanc 1.10 then answers 500.
CONFIG = """window.config = { routerBasename: '/ohif/', showStudyList: true, extensions: [], modes: [], useSharedArrayBuffer: 'FALSE',
  showCPUFallbackMessage: false, showWarningMessageForCrossOrigin: false, strictZSpacingForVolumeViewport: true,
  investigationalUseDialog: { option: 'never' }, defaultDataSourceName: 'dicomweb', dataSources: [ {
  namespace: '@ohif/extension-default.dataSourcesModule.dicomweb', sourceName: 'dicomweb', configuration: { friendlyName: 'Orthanc',
  name: 'Orthanc', wadoUriRoot: '/dicom-web', qidoRoot: '/dicom-web', wadoRoot: '/dicom-web', qidoSupportsIncludeField: false,
  imageRendering: 'wadors', thumbnailRendering: 'wadors', enableStudyLazyLoad: true, supportsFuzzyMatching: false,
  supportsWildcard: true, requestTransferSyntaxUID: '1.2.840.10008.1.2.1',
  bulkDataURI: { enabled: true, relativeResolution: 'studies' } } } ] };"""
# OHIF loads fonts from the network, and an icon from a folder that it does not have.
OWN_ERRORS = ("https://fonts.googleapis.com/", "/assets/android-chrome-144x144.png")

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; }};
pipelines = ( {{ name = "known"; unreviewed = true; deliver = [ "PACS" ]; results = [ "seg", "labelmap", "rtstruct", "sr", "picture" ];
    texture = {{ first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }};
    segments = ( {segments} ); }},
  {{ name = "deflated"; unreviewed = true; deliver = [ "PACS" ]; results = [ "seg", "picture" ];
    compression = "deflated"; picture_frames = "single"; segments = ( {segments} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "known"; }}, {{ match = {{ modality = "CT"; }}; pipeline = "deflated"; }} );
destinations = ( {destination} );
"""
SEGMENT = """{{ label = "{label}"; method = "range"; range = [ {low}, {high} ]; color = [ {color} ];
  type = {{ code = "272673000"; scheme = "SCT"; meaning = "Bone"; }}; }}"""
SLICES = 20
RESULTS = 6 + 1 + SLICES + 1  # of the pipelines; the second one has a picture per slice and an overview


def segments():
    return ", ".join(SEGMENT.format(label=label, low=value - 50.0, high=value + 50.0, color=", ".join(map(str, COLORS[label])))
                     for label, value in VALUES.items())


class Site:
    """An Orthanc that serves OHIF, with the images of a series and the results that a daemon sent."""

    def __init__(self, folder, archive, make_daemon):
        self.orthanc = archive
        self.source = known(folder / "in", ("--size", f"96x80x{SLICES}", "--spacing", "2,2,4"))
        storescu(self.orthanc.port, *self.source.files, called="ORTHANC")
        daemon = make_daemon(settings=SETTINGS.format(
            root=folder / "daemon0" / "root", segments=segments(), destination=to_archive(self.orthanc.port, ae_title="ORTHANC")))
        daemon.start()
        put(map(pathlib.Path, self.source.files), daemon.inbox)
        jobs = daemon.wait_jobs(2, states=("DONE", "REVIEW", "EMPTY", "FAILED"), seconds=HANG)
        assert [job["state"] for job in jobs] == ["DONE", "DONE"], [job["message"] for job in jobs]
        wait_for(lambda: daemon.query("SELECT count(*) FROM v_deliveries WHERE state = 'SENT'")[0][0] == RESULTS, HANG,
                 "the results in Orthanc")
        self.objects = {f"{job['pipeline']} {path.stem}": pydicom.dcmread(path)
                        for job in jobs for path in (daemon.root / job["result_path"]).parent.glob("*.dcm")}
        assert len(self.objects) == RESULTS


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ohif")
    pages = folder / "ohif"
    pages.mkdir()
    for part in OHIF.iterdir():
        if part.name != "app-config.js":
            (pages / part.name).symlink_to(part)
    (pages / "app-config.js").write_text(CONFIG)
    # Debian's Orthanc of 2022 does not know Label Map Segmentation Storage.
    options = {"UnknownSopClassAccepted": True, "Plugins": [str(PLUGINS / "libOrthancDicomWeb.so"), str(PLUGINS / "libServeFolders.so")],
               "DicomWeb": {"Enable": True, "Root": "/dicom-web/"}, "ServeFolders": {"/ohif": str(pages)}}
    with orthanc(folder / "orthanc", options) as archive, daemons(folder) as make:
        yield Site(folder, archive, make)


def displayed(dataset):
    """Returns an expression of the display set that OHIF made of a data set."""
    return ("services.displaySetService.activeDisplaySets.find(set => [...(set.instances ?? []), set.instance ?? set]"
            f".some(instance => instance.SOPInstanceUID == '{dataset.SOPInstanceUID}'))")


class Viewer(Browser):
    """OHIF, one page per test."""

    def open(self, site):
        self.errors.clear()
        self.call("Page.navigate", url=f"http://127.0.0.1:{site.orthanc.http_port}/ohif/index.html")
        self.wait("document.body && new Set(window.services?.displaySetService?.activeDisplaySets.map(set => set.SeriesInstanceUID)).size"
                  f" == {len(site.orthanc.rest('/series'))}", "the list of series")
        self.wait(f"{displayed(site.source.planes.files[0])}?.imageIds?.every(id => cornerstone.cache.getImage(id)) && "
                  "!!document.querySelector('[data-cy=viewport-overlay-bottom-right]')", "the images")

    def show(self, dataset):
        """Opens the series of a dataset with a double click. The list may move at any time, so the event names its item."""
        self.wait(f"""(item => item && (item.scrollIntoView(), item.dispatchEvent(new MouseEvent('dblclick', {{ bubbles: true }})), true))
            (document.getElementById('thumbnail-' + {displayed(dataset)}?.displaySetInstanceUID))""", "the thumbnail")

    def press(self, button):
        self.wait(f"(button => button && (button.click(), true))({button})", button)

    def drawn(self, index, points):
        """Returns the image that is shown, the colours of the pixels at points of the patient in mm, and OHIF's vector drawing.
        Scrolls to the image of the given index first, unless it is shown. A view that is still being set up throws."""
        answer = json.loads(self.evaluate(f"""(view => {{ try {{
            if (!view?.getCurrentImageId()) return '{{}}';
            if (view.getCurrentImageIdIndex() != {index}) cornerstone.utilities.jumpToSlice(view.element, {{ imageIndex: {index} }});
            const to_world = view.getImageData()?.imageData;
            return JSON.stringify({{ index: view.getCurrentImageIdIndex(), canvas: view.getCanvas().toDataURL(),
                uid: cornerstone.metaData.get('instance', view.getCurrentImageId()).SOPInstanceUID,
                at: {json.dumps(points)}.map(point => view.worldToCanvas(point.length == 3 ? point : to_world.indexToWorld([...point, 0]))),
                paths: [...view.element.querySelectorAll('svg.svg-layer path')].map(path =>
                    [getComputedStyle(path).stroke, path.getAttribute('d')]) }}); }} catch {{ return '{{}}'; }} }})
            (services.cornerstoneViewportService.getCornerstoneViewport(services.viewportGridService.getActiveViewportId()))"""))
        return answer if answer.get("index") == index else None

    def keep(self, path):
        self.picture(path)
        if pictures := os.environ.get("NOCTULE_PICTURES"):
            shutil.copy(path, pictures)

    def own_errors(self):
        """Returns the console errors that results or OHIF's work on them caused."""
        self.evaluate("1")  # receives pending events
        return [error for error in self.errors if not any(known in error for known in OWN_ERRORS)]


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    with Viewer(tmp_path_factory.mktemp("profile")) as made:
        # Orthanc has files only, and OHIF reads its route from the address.
        study = pydicom.dcmread(site.source.files[0]).StudyInstanceUID
        made.call("Page.addScriptToEvaluateOnNewDocument",
                  source=f"history.replaceState(null, '', '/ohif/viewer?StudyInstanceUIDs={study}')")
        yield made


@pytest.fixture
def viewer(site, browser):
    browser.open(site)
    return browser


def shown_color(segment):
    """Returns the colour in which OHIF shows a segment. Its white is D65, where DICOM has D50, so it shows another blue."""
    lightness, a, b = segment.RecommendedDisplayCIELabValue
    lab = [lightness / 65535 * 100, a / 65535 * 255 - 128, b / 65535 * 255 - 128]
    return skimage.color.lab2rgb(np.array(lab).reshape(1, 1, 3)).ravel() * 255


def assert_drawn(viewer, index, points, expected):
    """Waits until the image of an index is shown with one of the expected colours per point. Returns the state of OHIF. One in 300 may
    differ, because OHIF interpolates tips of one voxel."""

    def is_drawn():
        if (state := viewer.drawn(index, points)) is None:
            return None
        x, y = np.rint(np.array(state["at"]).T).astype(int)
        pixels = np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(state["canvas"].partition(",")[2]))).convert("RGB"))
        inside = (x >= 0) & (y >= 0) & (x < pixels.shape[1]) & (y < pixels.shape[0])
        differences = [np.abs(pixels[y[inside], x[inside]] - colors[inside]).max(axis=-1) for colors in expected]
        is_drawn.differing = np.count_nonzero(np.min(differences, axis=0) > 6)
        return state if inside.mean() > 0.9 and 300 * is_drawn.differing <= len(points) else None

    is_drawn.differing = "all"
    begun = time.monotonic()
    while not (state := is_drawn()):
        if time.monotonic() - begun > HANG:
            viewer.keep(pathlib.Path(tempfile.mkdtemp()) / "ohif-failed.png")
            pytest.fail(f"{is_drawn.differing} of {len(points)} pixels differ; errors: {viewer.errors}")
        time.sleep(0.2)
    return state


LABELMAPS = """JSON.stringify(services.segmentationService.getSegmentations().map(segmentation =>
  segmentation.representationData.Labelmap.imageIds.map(id => {
    const image = cornerstone.cache.getImage(id);
    return [cornerstone.metaData.get('instance', image.referencedImageId).SOPInstanceUID,
            Array.from(image.voxelManager.getScalarData())]; })))"""
ROI_COLORS = """services.segmentationService.getSegmentations()[0].representationData.Contour.geometryIds.map(
  id => cornerstone.cache.getGeometry(id).data.color)"""
ROWS = """[...document.querySelectorAll('[data-cy=data-row]')].map(row => [...row.querySelectorAll('span')]
  .filter(part => part.innerText || part.style.backgroundColor).map(part => part.innerText || part.style.backgroundColor))"""
MIDDLE = SLICES // 2  # a slice with all segments
# The first colours of OHIF's own table, for objects of which it does not use the colours.
OHIF_COLORS = [(221, 84, 84), (77, 228, 121)]


def assert_listed(viewer, expected):
    """Loads the segments of the open series, and checks their names and colours in the panel."""
    viewer.press("[...document.querySelectorAll('button')].find(button => button.innerText == 'Yes')")
    viewer.wait("services.segmentationService.getSegmentations().length == 1", "the segmentation")
    viewer.press("document.querySelector('[data-cy=panelSegmentation-btn]')")
    viewer.wait(f"document.querySelectorAll('[data-cy=data-row]').length == {len(expected)}", "the segments")
    for (label, color), (found_color, found_label) in zip(expected, viewer.evaluate(ROWS), strict=True):
        assert found_label == label
        found = np.array(found_color.removeprefix("rgb(").removesuffix(")").split(","), float)
        assert np.abs(found - color).max() <= 1, label


@pytest.mark.parametrize("name", ["known seg", "deflated seg"])
def test_a_segmentation(site, viewer, tmp_path, name):
    seg = site.objects[name]
    assert (seg.file_meta.TransferSyntaxUID == pydicom.uid.DeflatedExplicitVRLittleEndian) == (name == "deflated seg")
    viewer.show(seg)
    colors = {segment.SegmentLabel: shown_color(segment) for segment in seg.SegmentSequence}
    assert_listed(viewer, colors.items())
    # Segments are white in the window of the series, 40 +- 50 HU. OHIF covers them to a half with their colours, and draws outlines in
    # their colours. It does not always draw the outlines, and they cover parts that are one voxel wide.
    fill, outline = np.zeros((2, *site.source.planes.shape[1:], 3))
    for label, mask in site.source.masks.items():
        fill[mask[MIDDLE]], outline[mask[MIDDLE]] = (255 + colors[label]) / 2, colors[label]
    state = assert_drawn(viewer, MIDDLE, site.source.points[MIDDLE].reshape(-1, 3).tolist(),
                         [fill.reshape(-1, 3), outline.reshape(-1, 3)])
    assert state["uid"] == site.source.planes.files[MIDDLE].SOPInstanceUID
    viewer.keep(tmp_path / f"ohif-{name.replace(' ', '-')}.png")
    (labelmap,) = json.loads(viewer.evaluate(LABELMAPS))
    slices = dict(labelmap)
    _, rows, columns = site.source.planes.shape
    found = np.stack([np.reshape(slices[plane.SOPInstanceUID], (rows, columns)) for plane in site.source.planes.files])
    for number, (label, mask) in enumerate(site.source.masks.items(), start=1):
        assert np.count_nonzero((found == number) != mask) == 0, label
    assert viewer.own_errors() == []


def inside(state, color):
    """Returns which points are inside of the contours that OHIF drew in a colour. A keyhole is a contour that runs back along itself."""
    found = np.zeros(len(state["at"]), bool)
    for stroke, path in state["paths"]:
        if stroke.replace(" ", "") == f"rgb({','.join(map(str, color))})":
            for outline in path.split("M")[1:]:
                found ^= skimage.measure.points_in_poly(state["at"], np.array(re.findall(r"-?[\d.]+", outline), float).reshape(-1, 2))
    return found


def test_a_structure_set(site, viewer, tmp_path):
    """OHIF 3.10 reads ROI Display Color, but draws contours in colours of its own: it has no colour table for structure sets."""
    rtstruct = site.objects["known rtstruct"]
    viewer.show(rtstruct)
    labels = [roi.ROIName for roi in rtstruct.StructureSetROISequence]
    assert_listed(viewer, list(zip(labels, OHIF_COLORS, strict=True)))
    assert np.abs(np.array(viewer.evaluate(ROI_COLORS)) - 255 * np.array([COLORS[label] for label in labels])).max() <= 1
    masks = [site.source.masks[label][MIDDLE].ravel() for label in labels]
    points = site.source.points[MIDDLE].reshape(-1, 3).tolist()
    assert_drawn(viewer, MIDDLE, points, [255 * np.stack([np.any(masks, axis=0)] * 3, axis=-1)])

    def is_contoured():
        state = viewer.drawn(MIDDLE, points)
        return state and all(np.array_equal(inside(state, color), mask) for color, mask in zip(OHIF_COLORS, masks))

    wait_for(is_contoured, HANG, "the contours of the segments")
    viewer.keep(tmp_path / "ohif-known-rtstruct.png")
    assert viewer.own_errors() == []


@pytest.mark.parametrize("name", ["known picture", "known picture-overview", "deflated picture-0011"])
def test_a_picture(site, viewer, tmp_path, name):
    """Compares pixels in areas of one colour, because OHIF resamples pictures. The squares before the names of segments are such areas."""
    picture = site.objects[name]
    viewer.show(picture)
    if picture.get("NumberOfFrames", 1) > 1:
        index, pixels = MIDDLE, picture.pixel_array[MIDDLE]
    else:
        index = viewer.wait(f"1 + {displayed(picture)}.images.findIndex(image => image.SOPInstanceUID == '{picture.SOPInstanceUID}')",
                            "the picture") - 1
        pixels = picture.pixel_array
    size = 2 * (picture.Rows // 256) + 1  # pixels that OHIF may merge
    least, most = (filtered(pixels, size=(size, size, 1)) for filtered in (scipy.ndimage.minimum_filter, scipy.ndimage.maximum_filter))
    y, x = 8 + np.array(np.nonzero((least == most).all(axis=-1)[8:-8, 8:-8]))
    of_segments = [np.flatnonzero(np.abs(pixels[y, x] - 255.0 * np.array(color)).max(axis=-1) <= 1) for color in COLORS.values()]
    assert all(map(len, of_segments))
    chosen = np.concatenate([np.arange(0, len(y), 1 + len(y) // 4000), *of_segments])
    y, x = y[chosen], x[chosen]
    state = assert_drawn(viewer, index, np.stack([x, y], axis=-1).tolist(), [pixels[y, x]])
    assert state["uid"] == picture.SOPInstanceUID
    viewer.keep(tmp_path / f"ohif-{name.replace(' ', '-')}.png")
    assert viewer.own_errors() == []


def test_a_label_map_is_not_supported(site, viewer):
    """OHIF 3.10 does not know the class. It lists the series with a warning."""
    assert viewer.evaluate(f"{displayed(site.objects['known labelmap'])}.unsupported") is True
    assert viewer.own_errors() == []


def test_measurements_do_not_open(site, viewer, tmp_path):
    """OHIF 3.10 opens an Enhanced SR of TID 1500 only if each measurement has content items below it. Those of a segment have none."""
    sr = site.objects["known sr"]
    viewer.show(sr)
    viewer.wait("document.body.innerText.includes('Something went wrong')", "OHIF's message")
    viewer.keep(tmp_path / "ohif-known-sr.png")
    assert ("Cannot destructure property 'ValueType' of 'ContentSequence' as it is undefined"
            in viewer.evaluate(f"{displayed(sr)}.load().then(() => 'opened', error => error.message)"))


def test_a_map_of_a_2d_image(site, browser, tmp_path):
    """The capture of LBP of an image with an even half and a ramp, whose codes are areas of one grey each."""
    stored = np.full((128, 160), 500, np.uint16)
    stored[:, 80:] += np.arange(80, dtype=np.uint16)
    study = pydicom.dcmread(site.source.files[0])
    image(tmp_path / "in.dcm", stored, CR, StudyInstanceUID=study.StudyInstanceUID, PatientID=study.PatientID, PatientName=study.PatientName)
    (tmp_path / "flat.conf").write_text(f"""root = "{tmp_path / 'root'}"; pipelines = ( {{ name = "flat"; flat = true; results = [ "pmap" ];
        texture = {{ regions = [ "volume" ]; first_order = false; patterns = [ "lbp" ]; }};
        segments = ( {SEGMENT.format(label="Part", low=0.0, high=900.0, color="1.0, 0.0, 0.0")} ); }} );""")
    run_program("noctule", "--config", tmp_path / "flat.conf", "run", "-p", "flat", "-o", tmp_path / "out", tmp_path / "in.dcm")
    capture = pydicom.dcmread(tmp_path / "out" / "capture-lbp.dcm")
    storescu(site.orthanc.port, tmp_path / "out" / "capture-lbp.dcm", called="ORTHANC")
    browser.open(site)
    browser.show(capture)
    y, x = (axis.ravel() for axis in np.mgrid[8:120:4, 8:152:4])
    chosen = abs(x - 80) > 8
    y, x = y[chosen], x[chosen]
    codes = lbp(stored.astype(int))[y - 1, x - 1].astype(float)
    assert len(set(codes)) == 2
    state = assert_drawn(browser, 0, np.stack([x, y], axis=-1).tolist(), [np.repeat(codes[:, None], 3, axis=1)])
    assert state["uid"] == capture.SOPInstanceUID
    browser.keep(tmp_path / "ohif-capture.png")
    assert browser.own_errors() == []
