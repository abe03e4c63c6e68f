"""docs/operations.md, "Orthanc": its files as printed, except ports, times and folders, between Debian's Orthanc with
its own configuration and Noctule with the shipped one. A series is sent to Noctule and its result returns, by
C-STORE and by STOW-RS, once. Objects of all kinds and encodings are stored, and returned unchanged."""

import io
import json
import os
import re
import subprocess

import pydicom
import pytest
from conftest import SOURCE, Daemon, Orthanc, debian_orthanc, free_port, phantom, storescu, wait_for
from known_masks import GEOMETRIES, as_segmentation, known
from test_deliver import SENT, destination, sender  # noqa: F401 - a fixture
from test_result_peers import RESULTS, run
from test_stow import PATH, PLUGIN, by_stow, web_archive

PAGE = SOURCE / "docs" / "operations.md"
SHIPPED = SOURCE / "config"


def recipe(kind, word):
    """Returns the block of the chapter that contains the word."""
    (chapter,) = re.findall(r"(?ms)^## Orthanc\n(.*?)^## ", PAGE.read_text())
    (text,) = (text for found, text in re.findall(r"(?ms)^```(\w*)\n(.*?)^```", chapter) if found == kind and word in text)
    return text


def replaced(text, **words):
    """Replaces each word, and checks that it exists."""
    for old, new in words.values():
        assert old in text, old
        text = text.replace(old, new)
    return text


class Site:
    """An Orthanc and a Noctule that are connected as in the document."""

    def __init__(self, folder, deliver):
        self.folder = folder
        self.port = free_port()
        script = folder / "noctule.lua"
        script.write_text(recipe("lua", "OnStableSeries"))
        own = json.loads(replaced(recipe("json", "LuaScripts"), port=("11112", str(self.port)),
                                  script=("/etc/orthanc/noctule.lua", str(script))))
        self.orthanc = Orthanc(folder / "orthanc", {**own, "StableAge": 1, "Plugins": [str(PLUGIN)]}, debian_orthanc())
        self.again = folder / "noctule-again"
        self.again.write_text(replaced(recipe("sh", "resubmit"), port=("127.0.0.1:8042", f"127.0.0.1:{self.orthanc.http_port}")))
        self.noctule = self.make_noctule(deliver)

    def make_noctule(self, deliver):
        settings = replaced((SHIPPED / "noctule.conf").read_text(), root=('"/var/lib/noctule"', f'"{self.folder}/noctule/root"'),
                            quiet=("quiet_seconds = 60.0", "quiet_seconds = 0.5"),
                            complete=("complete_seconds = 5.0", "complete_seconds = 0.5"),
                            retry=("retry_seconds = 30.0", "retry_seconds = 0.5"),
                            longest=("retry_max_seconds = 3600.0", "retry_max_seconds = 1.0"))
        made = Daemon(self.folder / "noctule", settings=settings)
        own = replaced(recipe("", "presets/head-ct.conf"), port=("port = 11112", f'bind = "127.0.0.1"; port = {self.port}'),
                       dicom=("port = 4242", f"port = {self.orthanc.port}"), web=("127.0.0.1:8042", f"127.0.0.1:{self.orthanc.http_port}"),
                       deliver=('deliver = [ "orthanc" ]', f'deliver = [ "{deliver}" ]; review = "deliver"; unreviewed = true'))
        (made.folder / "conf.d").mkdir()
        (made.folder / "conf.d" / "orthanc.conf").write_text(own)
        (made.folder / "presets").symlink_to(SHIPPED / "presets")
        made.port = self.port
        return made

    def start(self):
        self.orthanc.start()
        self.noctule.start()

    def stop(self):
        self.noctule.kill_all()
        self.orthanc.stop()

    def begin_failed_again(self):
        subprocess.run(["sh", self.again], check=True, env={**os.environ, "no_proxy": "*"})

    def series(self, modality):
        """Returns the series of the modality that Orthanc stores and marks as stable."""
        held = self.orthanc.rest("/series?expand")
        return [each for each in held if each["MainDicomTags"]["Modality"] == modality and each["IsStable"]]

    def routes(self):
        """Returns the states of the jobs in which Orthanc sends to Noctule."""
        jobs = self.orthanc.rest("/jobs?expand")
        return [each["State"] for each in jobs if each["Type"] == "DicomModalityStore" and each["Content"]["RemoteAet"] == "NOCTULE"]


@pytest.fixture
def site(tmp_path):
    made = []

    def make(deliver):
        made.append(Site(tmp_path, deliver))
        return made[-1]

    yield make
    for each in made:
        each.stop()
        if each.noctule.log.exists():
            assert "event=role.call_unknown" not in each.noctule.log.read_text(errors="replace")


def head(folder, seed=1):
    return phantom(folder, "--kind", "ct-head", "--size", "64x64x24", "--seed", str(seed))


def delivered(noctule, count=1):
    return len(noctule.query("SELECT 1 FROM v_deliveries WHERE state = 'SENT'")) == count


@pytest.mark.parametrize("way", ["orthanc", "orthanc-web"])
def test_a_series_is_sent_and_its_result_returns(site, tmp_path, way):
    here = site(way)
    here.start()
    files = head(tmp_path / "ct")
    storescu(here.orthanc.port, *files, called="ORTHANC", calling="CT1")
    wait_for(lambda: delivered(here.noctule), 90, "the delivery")
    (result,) = wait_for(lambda: here.series("SEG"), 90, "the result in Orthanc, stable")
    # The stored object is Noctule's, complete, in the study of its images.
    (row,) = here.noctule.query("SELECT * FROM v_deliveries")
    (instance,) = result["Instances"]
    held = pydicom.dcmread(io.BytesIO(here.orthanc.file(instance)))
    # except the file meta information, which is Orthanc's
    assert held == pydicom.dcmread(here.noctule.root / row["path"])
    assert len(here.orthanc.rest("/studies")) == 1 and len(here.series("CT")) == 1
    if way == "orthanc":
        wait_for(lambda: here.noctule.query("SELECT 1 FROM v_deliveries WHERE commitment = 'COMMITTED'"), 90, "the commitment")
    # Results must not be sent to Noctule again. Orthanc calls the script for one series after the other, so the call
    # for the result is over before that for the next series.
    storescu(here.orthanc.port, *head(tmp_path / "next", seed=2), called="ORTHANC", calling="CT1")
    wait_for(lambda: len(here.series("SEG")) == 2, 90, "the result of the next")
    wait_for(lambda: here.routes() == ["Success"] * 2, 60, "the end of both jobs of Orthanc")
    assert len(here.noctule.query("SELECT * FROM instance")) == 2 * len(files) and len(here.noctule.jobs()) == 2
    assert not here.noctule.query("SELECT * FROM v_quarantine")


def test_the_script_sends_failed_series_again(site, tmp_path):
    here = site("orthanc")
    here.orthanc.start()
    storescu(here.orthanc.port, *head(tmp_path / "ct"), called="ORTHANC", calling="CT1")
    wait_for(lambda: here.routes() == ["Failure"], 90, "the failure of Orthanc's job")
    here.noctule.start()
    here.begin_failed_again()
    wait_for(lambda: here.series("SEG"), 90, "the result in Orthanc")
    wait_for(lambda: here.routes() == ["Success"], 60, "the end of Orthanc's job")
    here.begin_failed_again()  # no failed job remains
    assert here.routes() == ["Success"]


def test_an_unreachable_archive_receives_the_result_later(site, tmp_path):
    here = site("orthanc-web")
    here.start()
    here.noctule.ctl("hold", "--queue")
    storescu(here.orthanc.port, *head(tmp_path / "ct"), called="ORTHANC", calling="CT1")
    wait_for(lambda: here.routes() == ["Success"], 90, "the series in Noctule")
    here.orthanc.stop()
    here.noctule.ctl("release", "--queue")
    wait_for(lambda: here.noctule.query("SELECT 1 FROM v_deliveries WHERE code = 'PEER_UNREACHABLE'"), 90, "a delivery that failed")
    here.orthanc.start()
    wait_for(lambda: delivered(here.noctule), 90, "the delivery")
    wait_for(lambda: here.series("SEG"), 90, "the result in Orthanc")


@pytest.fixture(scope="module", params=["none", "rle", "deflated"])
def objects(request, tmp_path_factory):
    """Returns the files of one job with all kinds of objects, in one encoding."""
    folder = tmp_path_factory.mktemp(request.param)
    source = known(folder / "in", *GEOMETRIES["oblique"])
    given = as_segmentation(folder / "given.dcm", source)
    output = run(folder, folder / "in", given, "seg", {label: label for label in source.masks}, request.param)
    return [output / f"{kind}.dcm" for kind in RESULTS]


@pytest.mark.parametrize("way", ["C-STORE", "STOW-RS"])
def test_each_kind_of_object_is_stored_and_returned(objects, sender, tmp_path, way):  # noqa: F811
    # Debian's Orthanc of 2022 does not know Label Map Segmentation Storage.
    with web_archive(tmp_path / "orthanc", {"UnknownSopClassAccepted": True}) as archive:
        to = sender(destination(port=archive.port, ae_title="ORTHANC") if way == "C-STORE" else
                    by_stow(f"http://127.0.0.1:{archive.http_port}{PATH}", name="PACS"))
        for path in objects:
            told = to.deliver(path)
            assert (told["outcome"], told["dimse_status"], told["code"]) == (SENT, 0, ""), path.name
        held = {made.SOPInstanceUID: (made, content) for content in map(archive.file, archive.instances())
                for made in [pydicom.dcmread(io.BytesIO(content))]}
        assert len(held) == len(objects)
        for path in objects:
            sent = pydicom.dcmread(path)
            returned, content = held[sent.SOPInstanceUID]
            assert returned == sent and returned.file_meta.TransferSyntaxUID == sent.file_meta.TransferSyntaxUID, path.name
            assert way == "C-STORE" or content == path.read_bytes()
