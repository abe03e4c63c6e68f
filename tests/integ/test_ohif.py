"""Results in OHIF 3.10, in headless Chromium, over Debian's Orthanc with DICOMweb. The daemon receives a series and sends the
results by C-STORE. OHIF's voxels are compared with regions that are defined in patient coordinates.

The folder in NOCTULE_PICTURES receives the screenshots."""

import importlib.util
import json
import os
import pathlib
import shutil

import numpy as np
import PIL.Image
import pydicom
import pytest
import skimage.color
from chromium import HANG, PROGRAM, Browser
from conftest import daemons, orthanc, put, released_only, storescu, wait_for
from known_masks import COLORS, VALUES, known
from test_deliveries import to_archive

pytestmark = [released_only, pytest.mark.skipif(not PROGRAM, reason="chromium is not here")]

OHIF = pathlib.Path(importlib.util.find_spec("monailabel").submodule_search_locations[0]) / "endpoints" / "static" / "ohif"
PLUGINS = pathlib.Path("/usr/share/orthanc/plugins")
CONFIG = """window.config = { routerBasename: '/ohif/', showStudyList: true, extensions: [], modes: [], useSharedArrayBuffer: 'FALSE',
  showCPUFallbackMessage: false, showWarningMessageForCrossOrigin: false, strictZSpacingForVolumeViewport: true,
  investigationalUseDialog: { option: 'never' }, defaultDataSourceName: 'dicomweb', dataSources: [ {
  namespace: '@ohif/extension-default.dataSourcesModule.dicomweb', sourceName: 'dicomweb', configuration: { friendlyName: 'Orthanc',
  name: 'Orthanc', wadoUriRoot: '/dicom-web', qidoRoot: '/dicom-web', wadoRoot: '/dicom-web', qidoSupportsIncludeField: false,
  imageRendering: 'wadors', thumbnailRendering: 'wadors', enableStudyLazyLoad: true, supportsFuzzyMatching: false,
  supportsWildcard: true, bulkDataURI: { enabled: true, relativeResolution: 'studies' } } } ] };"""
# OHIF loads fonts from the network, and an icon from a folder that it does not have.
OWN_ERRORS = ("https://fonts.googleapis.com/", "/assets/android-chrome-144x144.png")

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; }};
pipelines = ( {{ name = "known"; unreviewed = true; deliver = [ "PACS" ]; results = [ "seg", "labelmap", "rtstruct", "sr" ];
    texture = {{ first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }};
    segments = ( {segments} ); }},
  {{ name = "deflated"; unreviewed = true; deliver = [ "PACS" ]; results = [ "seg" ];
    compression = "deflated"; segments = ( {segments} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "known"; }}, {{ match = {{ modality = "CT"; }}; pipeline = "deflated"; }} );
destinations = ( {destination} );
"""
SEGMENT = """{{ label = "{label}"; method = "range"; range = [ {low}, {high} ]; color = [ {color} ];
  type = {{ code = "272673000"; scheme = "SCT"; meaning = "Bone"; }}; }}"""
RESULTS = 5


def segments():
    return ", ".join(SEGMENT.format(label=label, low=value - 50.0, high=value + 50.0, color=", ".join(map(str, COLORS[label])))
                     for label, value in VALUES.items())


class Site:
    """An Orthanc that serves OHIF, with the images of a series and the results that a daemon sent."""

    def __init__(self, folder, archive, make_daemon):
        self.orthanc = archive
        self.source = known(folder / "in", ("--size", "96x80x20", "--spacing", "2,2,4"))
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


class Viewer(Browser):
    """OHIF, one page per test."""

    def open(self, site):
        self.errors.clear()
        self.call("Page.navigate", url=f"http://127.0.0.1:{site.orthanc.http_port}/ohif/index.html")
        self.wait("document.body && window.services?.displaySetService?.activeDisplaySets.length == "
                  f"{len(site.orthanc.rest('/series'))}", "the list of series")
        self.wait("services.displaySetService.activeDisplaySets.find(set => set.Modality == 'CT').images.length == "
                  f"{len(site.source.files)} && !!document.querySelector('[data-cy=viewport-overlay-bottom-right]')", "the series")
        self.wait("(sets => sets.find(set => set.Modality == 'CT').imageIds.every(id => cornerstone.cache.getImage(id)))"
                  "(services.displaySetService.activeDisplaySets)", "the images")

    def show(self, dataset):
        """Opens the series of a dataset with a double click. Returns an expression of its display set."""
        found = f"services.displaySetService.activeDisplaySets.find(set => set.SeriesInstanceUID == '{dataset.SeriesInstanceUID}')"
        x, y = self.wait(f"""(() => {{
            const item = document.getElementById('thumbnail-' + {found}.displaySetInstanceUID);
            item?.scrollIntoView({{ block: 'center' }});
            const box = item?.getBoundingClientRect();
            return box && [box.x + box.width / 2, box.y + box.height / 2]; }})()""", "the thumbnail")
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
        return found

    def press(self, text):
        self.wait(f"(button => button && (button.click(), true))([...document.querySelectorAll('button')].find("
                  f"button => button.innerText == '{text}'))", f"the button {text}")

    def keep(self, path):
        self.picture(path)
        if pictures := os.environ.get("NOCTULE_PICTURES"):
            shutil.copy(path, pictures)
        return np.asarray(PIL.Image.open(path).convert("RGB"))

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


LABELMAPS = """JSON.stringify(services.segmentationService.getSegmentations().map(segmentation =>
  segmentation.representationData.Labelmap.imageIds.map(id => {
    const image = cornerstone.cache.getImage(id);
    return [cornerstone.metaData.get('instance', image.referencedImageId).SOPInstanceUID,
            Array.from(image.voxelManager.getScalarData())]; })))"""
ROWS = """[...document.querySelectorAll('[data-cy=data-row]')].map(row => [...row.querySelectorAll('span')]
  .filter(part => part.innerText || part.style.backgroundColor).map(part => part.innerText || part.style.backgroundColor))"""


def assert_shown(viewer, expected, picture):
    """Loads the segments of the open series. Checks their names and colours in the panel, and their outlines in the picture."""
    viewer.press("Yes")
    viewer.wait("services.segmentationService.getSegmentations().length == 1", "the segmentation")
    viewer.wait("(button => button && (button.click(), true))(document.querySelector('[data-cy=panelSegmentation-btn]'))", "the panel")
    viewer.wait(f"document.querySelectorAll('[data-cy=data-row]').length == {len(expected)}", "the segments")
    for (label, color), (found_color, found_label) in zip(expected, viewer.evaluate(ROWS), strict=True):
        assert found_label == label
        found = np.array(found_color.removeprefix("rgb(").removesuffix(")").split(","), float)
        assert np.abs(found - color).max() <= 1, label
    viewer.evaluate("services.cornerstoneViewportService.getCornerstoneViewport(services.viewportGridService.getActiveViewportId())"
                    ".setImageIdIndex(10)")

    def outlined():
        pixels = viewer.keep(picture).astype(float)
        return all((np.abs(pixels - color).max(axis=-1) <= 6).sum() > 100 for _, color in expected)

    wait_for(outlined, HANG, "the outlines of the segments in the picture")


def test_a_segmentation(site, viewer, tmp_path):
    seg = site.objects["known seg"]
    viewer.show(seg)
    assert_shown(viewer, [(segment.SegmentLabel, shown_color(segment)) for segment in seg.SegmentSequence],
                 tmp_path / "ohif-known-seg.png")
    (labelmap,) = json.loads(viewer.evaluate(LABELMAPS))
    slices = dict(labelmap)
    _, rows, columns = site.source.planes.shape
    found = np.stack([np.reshape(slices[plane.SOPInstanceUID], (rows, columns)) for plane in site.source.planes.files])
    for number, (label, mask) in enumerate(site.source.masks.items(), start=1):
        assert np.count_nonzero((found == number) != mask) == 0, label
    assert viewer.own_errors() == []
