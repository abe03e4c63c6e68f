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
from chromium import PROGRAM, Browser
from conftest import Orthanc, daemons, put, released_only, storescu, wait_for
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
pipelines = ( {{ name = "known"; unreviewed = true; deliver = [ "PACS" ]; results = [ {results} ];
  texture = {{ first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }};
  segments = ( {segments} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "known"; }} );
destinations = ( {destination} );
"""
SEGMENT = """{{ label = "{label}"; method = "range"; range = [ {low}, {high} ]; color = [ {color} ];
  type = {{ code = "272673000"; scheme = "SCT"; meaning = "Bone"; }}; }}"""
RESULTS = ("seg", "sr")


def segments():
    return ", ".join(SEGMENT.format(label=label, low=value - 50.0, high=value + 50.0, color=", ".join(map(str, COLORS[label])))
                     for label, value in VALUES.items())


class Site:
    """An Orthanc that serves OHIF, with the images of a series and the results that a daemon sent."""

    def __init__(self, folder, make_daemon):
        pages = folder / "ohif"
        pages.mkdir()
        for part in OHIF.iterdir():
            if part.name != "app-config.js":
                (pages / part.name).symlink_to(part)
        (pages / "app-config.js").write_text(CONFIG)
        self.orthanc = Orthanc(folder / "orthanc", {
            "Plugins": [str(PLUGINS / "libOrthancDicomWeb.so"), str(PLUGINS / "libServeFolders.so")],
            "DicomWeb": {"Enable": True, "Root": "/dicom-web/"}, "ServeFolders": {"/ohif": str(pages)}})
        self.orthanc.start()
        self.source = known(folder / "in", ("--size", "96x80x20", "--spacing", "2,2,4"))
        storescu(self.orthanc.port, *self.source.files, called="ORTHANC")
        daemon = make_daemon(settings=SETTINGS.format(
            root=folder / "daemon0" / "root", results=", ".join(f'"{kind}"' for kind in RESULTS), segments=segments(),
            destination=to_archive(self.orthanc.port, ae_title="ORTHANC")))
        daemon.start()
        put(map(pathlib.Path, self.source.files), daemon.inbox)
        (job,) = daemon.wait_jobs(states=("DONE", "REVIEW", "EMPTY", "FAILED"))
        assert job["state"] == "DONE", job["message"]
        wait_for(lambda: daemon.query("SELECT count(*) FROM v_deliveries WHERE state = 'SENT'")[0][0] == len(RESULTS), 120,
                 "the results in Orthanc")
        self.results = (daemon.root / job["result_path"]).parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ohif")
    with daemons(folder) as make:
        made = Site(folder, make)
        yield made
        made.orthanc.stop()


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

    def show(self, modality):
        """Opens the series of the modality with a double click."""
        x, y = self.wait(f"""(() => {{
            const item = [...document.querySelectorAll('[data-cy^=study-browser-thumbnail]')].find(
                item => item.innerText.startsWith('{modality}'));
            const box = item?.getBoundingClientRect();
            return box && [box.x + box.width / 2, box.y + box.height / 2]; }})()""", f"the thumbnail of {modality}")
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

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


def test_a_segmentation(site, viewer, tmp_path):
    viewer.show("SEG")
    viewer.press("Yes")
    viewer.wait("services.segmentationService.getSegmentations().length == 1", "the segmentation")
    viewer.wait("(button => button && (button.click(), true))(document.querySelector('[data-cy=panelSegmentation-btn]'))", "the panel")
    viewer.wait("document.querySelectorAll('[data-cy=data-row]').length == 2", "the segments")
    seg = pydicom.dcmread(site.results / "seg.dcm")
    for segment, (color, label) in zip(seg.SegmentSequence, viewer.evaluate(ROWS), strict=True):
        assert label == segment.SegmentLabel
        found = np.array(color.removeprefix("rgb(").removesuffix(")").split(","), float)
        assert np.abs(found - shown_color(segment)).max() <= 1
    (labelmap,) = json.loads(viewer.evaluate(LABELMAPS))
    slices = dict(labelmap)
    _, rows, columns = site.source.planes.shape
    found = np.stack([np.reshape(slices[plane.SOPInstanceUID], (rows, columns)) for plane in site.source.planes.files])
    for number, (label, mask) in enumerate(site.source.masks.items(), start=1):
        assert np.count_nonzero((found == number) != mask) == 0, label

    middle = len(site.source.files) // 2
    viewer.evaluate("services.cornerstoneViewportService.getCornerstoneViewport(services.viewportGridService.getActiveViewportId())"
                    f".setImageIdIndex({middle})")
    colors = [shown_color(segment) for segment in seg.SegmentSequence]

    def outlined():
        picture = viewer.keep(tmp_path / "ohif-seg.png").astype(float)
        return all((np.abs(picture - color).max(axis=-1) <= 6).sum() > 100 for color in colors)

    wait_for(outlined, 120, "the outlines of both segments in the picture")
    assert viewer.own_errors() == []


def test_a_report(site, viewer, tmp_path):
    """OHIF 3.10 draws only measurements that have coordinates, so the picture of these values of segments stays empty."""
    viewer.show("SR")
    viewer.wait("""(set => [...services.viewportGridService.getState().viewports.values()].some(
        viewport => viewport.displaySetInstanceUIDs.includes(set.displaySetInstanceUID)))(
        services.displaySetService.activeDisplaySets.find(set => set.Modality == 'SR'))""", "the report in the viewport")
    viewer.keep(tmp_path / "ohif-sr.png")
    assert viewer.own_errors() == []
