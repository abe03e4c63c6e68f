"""noctule pull: retrieval of studies from real archives and from faulty ones with wrong counts, hangs and aborts."""

import json
import re

import pydicom
import pytest
from pydicom.uid import generate_uid
from pynetdicom import AE, build_context

from conftest import PEERS, phantom, storescu, wait_for
from objects import new_object
from test_query import CANCELLED, PENDING, SUCCESS, Liar, a_dcmqrscp, an_orthanc, match

FIRST, SECOND = "ZX81-47110815", "ZX81-47110816"
CALLERS = PEERS.replace(");", ', { ae_title = "LIAR"; }, { ae_title = "ARCHIVE"; } );')
SOON = "delivery = { retry_seconds = 0.1; retry_max_seconds = 0.2; };\n"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Returns a study of two series of four images, and one of one series, with their accession numbers."""
    folder = tmp_path_factory.mktemp("study")
    uids = {FIRST: generate_uid(), SECOND: generate_uid()}
    for number, accession in enumerate([FIRST, FIRST, SECOND]):
        phantom(folder / str(number), "--size", "32x32x4", "--spacing", "5,5,5")
        series = generate_uid()
        for file in (folder / str(number)).rglob("*.dcm"):
            image = pydicom.dcmread(file)
            image.StudyInstanceUID, image.SeriesInstanceUID, image.AccessionNumber = uids[accession], series, accession
            image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = generate_uid()
            image.save_as(file)
    return folder, uids


def source(port, title, name="PACS", **options):
    more = " ".join(f"{option} = {value};" for option, value in options.items())
    return f'{{ name = "{name}"; ae_title = "{title}"; host = "127.0.0.1"; port = {port}; {more} }}'


def pulling(*sources):
    return SOON + f'pull = {{ sources = ( {", ".join(sources)} ); }};\n'


def items(d):
    return d.query("SELECT * FROM v_pulls ORDER BY item")


def wait_ended(d, count=1, seconds=90):
    def ended():
        rows = [row for row in items(d) if row["ended_at"]]
        return rows if len(rows) >= count else None

    try:
        return wait_for(ended, seconds, f"the end of {count} items")
    except pytest.fail.Exception:
        print([dict(row) for row in items(d)], d.log.read_text()[-8000:])
        raise


def stored(d):
    return d.query("SELECT count(*) AS n, count(DISTINCT sop_instance_uid) AS different FROM v_instances")[0]


def accession_store(d):
    return sorted((d.root / "pull").iterdir())


def wait_store_empty(d):
    """Waits until the accession store is empty. It is swept after the commit that the test can see."""
    wait_for(lambda: accession_store(d) == [], 60, "the vault to be emptied")


def wait_failed_item(d, code=None):
    """Waits for an item in WAIT after a failure. The retry is soon, so the state lasts only for a while."""
    def failed_items():
        return [row for row in items(d) if row["state"] == "WAITING" and row["code"] and code in (None, row["code"])]

    return wait_for(failed_items, 90, f"a failure {code or ''}")[0]


def assert_hidden(d):
    """Checks that neither the database nor the log has an accession number, nor, after the end, the accession store."""
    wait_store_empty(d)
    for file in [d.log, *d.root.glob("noctule.db*")]:
        assert b"ZX81" not in file.read_bytes(), file


class Archive(Liar):
    """An archive with the images of a folder. It counts requests, and `move` replaces its C-MOVE."""

    def __init__(self, folder, move=None, counts=True):
        self.images = [pydicom.dcmread(file) for file in sorted(folder.rglob("*.dcm"))]
        self.destination = None  # a port
        self.moves, self.finds, self.counts = 0, 0, counts
        super().__init__(self.__class__.find, move or self.__class__.move)

    def of(self, wanted):
        return [image for image in self.images
                if all(not wanted.get(key) or image[key].value == wanted.get(key)
                       for key in ("AccessionNumber", "StudyInstanceUID", "SeriesInstanceUID"))]

    def find(self, event):
        self.finds += 1
        key = "StudyInstanceUID" if event.identifier.QueryRetrieveLevel == "STUDY" else "SeriesInstanceUID"
        found = self.of(event.identifier)
        for uid in sorted({image[key].value for image in found}):
            of = [image for image in found if image[key].value == uid]
            answer = match(StudyInstanceUID=of[0].StudyInstanceUID, AccessionNumber=of[0].AccessionNumber)
            answer.QueryRetrieveLevel = event.identifier.QueryRetrieveLevel
            if key == "SeriesInstanceUID":
                answer.SeriesInstanceUID = uid
            if self.counts:
                setattr(answer, f"NumberOf{key[:-11]}RelatedInstances", len(of))
            yield PENDING, answer

    def send(self, images):
        classes = {image.SOPClassUID for image in images} or {self.images[0].SOPClassUID}
        yield "127.0.0.1", self.destination, {"contexts": [build_context(uid) for uid in sorted(classes)],
                                              "ae_title": "NOCTULE"}
        yield len(images)
        for image in images:
            yield PENDING, image

    def move(self, event):
        self.moves += 1
        yield from self.send(self.of(event.identifier))


def start(daemon, archive, environment=None, wait=True, **options):
    d = daemon(quiet=600.0, dicom=CALLERS, extra=pulling(source(archive.port, "LIAR", **options)), environment=environment)
    archive.destination = d.port
    return d.start(wait=wait)


def pull(d, *arguments, check=True):
    return d.ctl("pull", *arguments, check=check)


@pytest.mark.parametrize("archive", [an_orthanc, a_dcmqrscp])
@pytest.mark.parametrize("level", ["study", "series"])
def test_real_archives_send_the_requested_studies(daemon, tmp_path, study, archive, level):
    folder, uids = study
    d = daemon(quiet=600.0, dicom=CALLERS)
    with archive(tmp_path / "archive", d.port) as (peer, title):
        storescu(peer.port, folder, called=title)
        d.config.write_text(d.config.read_text() + pulling(source(peer.port, title, level=f'"{level}"')))
        d.start()
        asked = pull(d, "PACS", "--dry-run", "--accession", FIRST, "ZX-NONE", check=False)
        assert asked.returncode == 1 and f"accession {FIRST}: study {uids[FIRST]}" in asked.stdout
        assert "accession ZX-NONE: not found" in asked.stdout and stored(d)["n"] == 0 and items(d) == []
        listed = tmp_path / "list"
        listed.write_text(f"# of the study\n{FIRST}\n{FIRST}\nZX-NONE\n")
        assert "batch 1: 2 items" in pull(d, "PACS", "--accession", "--list", listed).stdout
        pull(d, "PACS", "--study", uids[SECOND])
        found, nothing, other = wait_ended(d, 3)
    assert (found["state"], found["arrived"], found["study_uids"]) == ("DONE", 8, uids[FIRST]), dict(found)
    assert found["expected"] in (8, None) and found["identifier"].startswith("h:")
    assert (nothing["state"], nothing["code"]) == ("NOT_FOUND", "PULL_NOT_FOUND")
    assert (other["state"], other["arrived"], other["identifier"]) == ("DONE", 4, uids[SECOND])
    assert tuple(stored(d)) == (12, 12)
    assert_hidden(d)
    text = d.ctl("pull").stdout
    assert "NOT_FOUND" in text and FIRST not in text


DOSE_REPORT, PRESENTATION, ENHANCED_XA, SEGMENTATION, CSA = (
    "1.2.840.10008.5.1.4.1.1.88.67", "1.2.840.10008.5.1.4.1.1.11.1", "1.2.840.10008.5.1.4.1.1.12.1.1",
    "1.2.840.10008.5.1.4.1.1.66.4", "1.3.12.2.1107.5.9.1")


def unwanted(image, *private):
    """Returns further objects of a study that Noctule does not keep: a dose report, a presentation state, a secondary
    capture in the series of the images, and Noctule's own result."""
    made = []
    for sop_class, modality, series in [(DOSE_REPORT, "SR", None), (PRESENTATION, "PR", None),
                                        (ENHANCED_XA, "CT", image.SeriesInstanceUID), (SEGMENTATION, "SEG", None),
                                        *((uid, "OT", None) for uid in private)]:
        ds = new_object(image, sop_class, modality, series=series)
        ds.AccessionNumber, ds.Manufacturer, ds.ManufacturerModelName = image.AccessionNumber, "Noctule", "noctuled"
        if sop_class != SEGMENTATION:
            ds.ManufacturerModelName = "Scanner"
        made.append(ds)
    return made


def send(port, title, objects):
    entity = AE(ae_title="CT1")
    for sop_class in {ds.SOPClassUID for ds in objects}:
        entity.add_requested_context(sop_class)
    association = entity.associate("127.0.0.1", port, ae_title=title)
    assert association.is_established
    assert [association.send_c_store(ds).Status for ds in objects] == [SUCCESS] * len(objects)
    association.release()


def assert_complete_without(d, count):
    """Checks that the item is DONE with the 8 images, that `count` other instances were dropped, and that there is no
    alert."""
    item, = wait_ended(d)
    assert (item["state"], item["arrived"], item["unwanted"], item["attempts"]) == ("DONE", 8, count, 1), (
        dict(item), d.log.read_text()[-8000:])
    assert tuple(stored(d)) == (8, 8) and d.query("SELECT count(*) FROM v_quarantine")[0][0] == 0
    assert "pulled from" not in d.ctl("status", check=False).stdout
    assert f"8 of {8 + count}, {count} dropped" in d.ctl("pull").stdout or item["expected"] is None


@pytest.mark.parametrize("archive", [an_orthanc, a_dcmqrscp])
@pytest.mark.parametrize("level", ["study", "series"])
def test_a_study_with_unprocessed_objects_is_complete(daemon, tmp_path, study, archive, level):
    folder, uids = study
    d = daemon(quiet=600.0, dicom=CALLERS)
    with archive(tmp_path / "archive", d.port) as (peer, title):
        send(peer.port, title, unwanted(pydicom.dcmread(next((folder / "0").rglob("*.dcm")))))
        storescu(peer.port, folder, called=title)
        d.config.write_text(d.config.read_text() + pulling(source(peer.port, title, level=f'"{level}"')))
        d.start()
        pull(d, "PACS", "--accession", FIRST)
        assert_complete_without(d, 4)


@pytest.mark.parametrize("archive", [an_orthanc, a_dcmqrscp])
def test_an_instance_that_is_quarantined_does_not_end_the_move(daemon, tmp_path, study, archive):
    """Orthanc ends a C-MOVE at a failure status. The instance is durable in the quarantine, and the item counts it."""
    folder, uids = study
    d = daemon(quiet=600.0, dicom=CALLERS)
    with archive(tmp_path / "archive", d.port) as (peer, title):
        broken = pydicom.dcmread(next((folder / "0").rglob("*.dcm")))
        broken.SOPInstanceUID = broken.file_meta.MediaStorageSOPInstanceUID = f"{broken.SOPInstanceUID[:40]}.99"
        del broken.Rows
        broken.save_as(tmp_path / "broken.dcm")
        storescu(peer.port, tmp_path / "broken.dcm", folder, called=title)
        d.config.write_text(d.config.read_text() + pulling(source(peer.port, title)))
        d.start()
        pull(d, "PACS", "--accession", FIRST)
        item, = wait_ended(d)
        assert (item["state"], item["arrived"], item["unwanted"], item["quarantined"], item["attempts"]) == ("DONE", 8, 1, 1, 1), (
            dict(item), d.log.read_text()[-8000:])
        (file,) = d.query("SELECT * FROM v_quarantine")
        assert file["sop_instance_uid"] == broken.SOPInstanceUID and (d.root / file["path"]).is_file()
        assert "8 of 9, 1 quarantined" in d.ctl("pull").stdout or item["expected"] is None
        # Without a C-MOVE of ours, the sender gets the failure.
        refused = storescu(d.port, tmp_path / "broken.dcm", calling="ORTHANC", check=False)
        assert "0xa900" in (refused.stdout + refused.stderr).lower() or refused.returncode != 0


def test_a_private_class_and_a_long_one_of_a_study_are_dropped(daemon, study):
    """CSA is not a standard SOP class. The capture is longer than the part that is read (4 MiB)."""
    with Archive(study[0]) as archive:
        first = next(image for image in archive.images if image.AccessionNumber == FIRST)
        others = unwanted(first, CSA)
        others[2].BitsAllocated, others[2].PixelData = 8, bytes(9 << 20)
        archive.images = others + archive.images
        d = start(daemon, archive)
        pull(d, "PACS", "--accession", FIRST)
        assert_complete_without(d, 5)
        pull(d, "PACS", "--accession", FIRST)
        assert wait_ended(d, 2)[1]["state"] == "DONE" and archive.moves == 1


def test_unrequested_objects_are_refused(daemon, study):
    """The archive forwards objects without a C-MOVE. Success would be wrong, because they are not kept."""
    with Archive(study[0]) as archive:
        d = start(daemon, archive)
        report = unwanted(archive.images[0])[0]
        entity = AE(ae_title="LIAR")
        entity.add_requested_context(report.SOPClassUID)
        association = entity.associate("127.0.0.1", d.port, ae_title="NOCTULE")
        for originator in (None, "SOMEBODY"):
            status = association.send_c_store(report, originator_aet=originator, originator_id=7 if originator else None)
            assert status.Status == 0x0122
        for originator in ("NOCTULE", "LIAR"):
            assert association.send_c_store(report, originator_aet=originator, originator_id=7).Status == SUCCESS, originator
        association.release()
        assert stored(d)["n"] == 0


def test_the_list_names_the_line_of_the_input_list(daemon, tmp_path, study):
    """Identifiers are hashed by default. Only the line number leads back to the accession number."""
    with Archive(study[0]) as archive:
        d = start(daemon, archive)
        listed = tmp_path / "list"
        listed.write_text(f"# cohort\n\n{SECOND}\n{SECOND}\n  {FIRST}\n")
        pull(d, "PACS", "--accession", "--list", listed)
        assert [row["list_line"] for row in wait_ended(d, 2)] == [3, 5]
        text = d.ctl("pull").stdout
        assert [re.search(r" (\d+) +h:", line)[1] for line in text.splitlines()[1:3]] == ["5", "3"], text
        assert [row["list_line"] for row in json.loads(d.ctl("pull", "--json").stdout)] == [5, 3]


@pytest.mark.parametrize("text", [f"{FIRST}\n{SECOND[:6]}\0{SECOND[6:]}\n".encode(), f"{FIRST}\n".encode("utf-16")])
def test_a_list_with_a_nul_is_refused_with_its_line(daemon, tmp_path, study, text):
    """Truncated at the NUL, the value would select another patient's study. Spreadsheets save UTF-16 as "Unicode
    text"."""
    with Archive(study[0]) as archive:
        d = start(daemon, archive)
        listed = tmp_path / "list"
        listed.write_bytes(text)
        refused = pull(d, "PACS", "--accession", "--list", listed, check=False)
        line = text.split(b"\n").index(next(line for line in text.split(b"\n") if b"\0" in line)) + 1
        assert refused.returncode == 2 and f"{listed}: line {line} has a NUL" in refused.stderr
        assert items(d) == [] and archive.finds == 0


@pytest.mark.parametrize("name, why", [("server", None), ("elsewhere", "mismatch"), ("stranger", "local issuer")])
def test_by_tls(daemon, tmp_path, study, certificates, name, why):
    """In both directions. A peer with only the right address is refused: its certificate is for another host, or of
    an unknown authority."""
    d = daemon(quiet=600.0, dicom=CALLERS, certificates=certificates)
    with an_orthanc(tmp_path / "archive", d.tls_port, certificates, name) as (peer, title):
        storescu(peer.port, study[0], called=title, options=[*certificates.dcmtk("client"), "-ic"])
        settings = d.config.read_text()
        d.config.write_text(settings + pulling(source(peer.port, title, tls="true")))
        d.start()
        asked = pull(d, "PACS", "--dry-run", "--accession", FIRST, check=False)
        doctor = json.loads(d.ctl("doctor", "--json", check=False).stdout)
        assert [check["verdict"] for check in doctor["checks"] if check["check"] == "source"] == ["broken" if why else "ok"]
        pull(d, "PACS", "--accession", FIRST)
        if why:
            assert asked.returncode == 1 and "TLS_FAILED" in asked.stderr and why in asked.stderr
            row = wait_failed_item(d)
            assert (row["state"], row["code"], row["attempts"]) == ("WAITING", "TLS_FAILED", 0) and why in row["message"]
            own = f'"{certificates.fingerprint(name)}"'  # it must be trusted in either case
            d.config.write_text(settings + pulling(source(peer.port, title, tls="true", certificate=own)))
            d.process.send_signal(1)
            d.wait_log("event=config.reloaded")
        else:
            assert asked.returncode == 0, asked
        if name == "stranger":
            assert pull(d, "PACS", "--dry-run", "--accession", FIRST, check=False).returncode == 1
            assert stored(d)["n"] == 0
        else:
            assert wait_ended(d)[0]["state"] == "DONE" and tuple(stored(d)) == (8, 8)


def test_orthanc_without_the_move_destination(daemon, tmp_path, study):
    with an_orthanc(tmp_path / "archive", 1) as (peer, title):
        storescu(peer.port, study[0], called=title)
        d = daemon(quiet=600.0, extra=pulling(source(peer.port, title, move_destination='"ELSEWHERE"')),
                   dicom=CALLERS + ' titles = ( { ae_title = "NOCTULE"; }, { ae_title = "ELSEWHERE"; } );').start()
        pull(d, "PACS", "--accession", FIRST)
        item, = wait_ended(d)
    assert (item["state"], item["code"], item["attempts"]) == ("FAILED", "MOVE_REFUSED", 3)
    assert "ELSEWHERE" in item["message"] and "DicomModalities" in item["message"]
    assert "1 item pulled from PACS failed" in d.ctl("status").stdout
    assert_hidden(d)


def test_stored_series_are_not_requested_again(daemon, study):
    with Archive(study[0]) as archive:
        d = start(daemon, archive)
        storescu(d.port, study[0] / "0")
        pull(d, "PACS", "--accession", FIRST)
        assert wait_ended(d)[0]["state"] == "DONE" and archive.moves == 1 and tuple(stored(d)) == (8, 8)
        pull(d, "PACS", "--accession", FIRST)
        assert wait_ended(d, 2)[1]["state"] == "DONE" and archive.moves == 1


def test_only_missing_series_are_requested(daemon, study):
    with Archive(study[0]) as archive:
        d = start(daemon, archive, level='"series"')
        storescu(d.port, study[0] / "0")
        pull(d, "PACS", "--accession", FIRST)
        assert wait_ended(d)[0]["state"] == "DONE" and archive.moves == 1 and tuple(stored(d)) == (8, 8)
        series = archive.images[-1].SeriesInstanceUID
        pull(d, "PACS", "--series", series)
        assert wait_ended(d, 2)[1]["state"] == "DONE" and stored(d)["n"] == 12


def test_an_archive_without_counts(daemon, study):
    with Archive(study[0], counts=False) as archive:
        d = start(daemon, archive)
        pull(d, "PACS", "--accession", FIRST)
        item, = wait_ended(d)
    assert (item["state"], item["expected"], item["arrived"]) == ("DONE", None, 8)


def test_success_with_missing_instances_is_a_failure(daemon, study):
    def move(archive, event):
        archive.moves += 1
        yield from archive.send(archive.of(event.identifier)[:-1])

    with Archive(study[0], move) as archive:
        d = start(daemon, archive, arrival_seconds=0.1)
        pull(d, "PACS", "--accession", FIRST, SECOND)
        for item, expected in zip(wait_ended(d, 2), (8, 4)):
            assert (item["state"], item["code"], item["arrived"]) == ("PARTIAL", "PULL_INCOMPLETE", expected - 1)
            assert item["attempts"] == 3 and f"{expected - 1} of {expected}" in item["message"]
    assert archive.moves == 6
    assert "2 items pulled from PACS failed or incomplete" in d.ctl("status").stdout
    assert_hidden(d)


@pytest.mark.parametrize("seconds", [0.3, 600.0])
def test_a_hanging_archive_does_not_delay_others(daemon, study, seconds):
    """Three requests of 0.3 s each, or one that lasts longer than the test."""
    def hang(liar, event):
        liar.cancelled.wait()
        yield SUCCESS, None

    with Liar(hang) as liar, Archive(study[0]) as archive:
        d = daemon(quiet=600.0, dicom=CALLERS, extra=pulling(source(liar.port, "LIAR", "SILENT", dimse_seconds=seconds),
                                                             source(archive.port, "LIAR")))
        archive.destination = d.port
        d.start()
        pull(d, "SILENT", "--accession", FIRST)
        if seconds > 60.0:
            wait_for(lambda: items(d)[0]["state"] == "FINDING", 90, "the query of the silent one")
        pull(d, "PACS", "--accession", FIRST)
        wait_for(lambda: items(d)[1]["ended_at"], 90, "the end of the other")
        silent, other = items(d) if seconds > 60.0 else wait_ended(d, 2)
    assert other["state"] == "DONE"
    if seconds > 60.0:
        assert silent["state"] == "FINDING" and not silent["ended_at"]
    else:
        assert (silent["state"], silent["code"], silent["attempts"]) == ("FAILED", "PEER_ABORTED", 3)


def forever(archive, event):
    """Sends the same image until it is cancelled."""
    yield "127.0.0.1", archive.destination, {"contexts": [build_context(archive.images[0].SOPClassUID)], "ae_title": "NOCTULE"}
    yield 65535
    while not event.is_cancelled:
        yield PENDING, archive.images[0]
    archive.moves += 1
    archive.cancelled.set()
    yield CANCELLED, None


def test_an_endless_retrieval_is_cancelled(daemon, study):
    with Archive(study[0], forever) as archive:
        d = start(daemon, archive, deadline_seconds=2.0)  # for a query too
        pull(d, "PACS", "--accession", FIRST)
        item, = wait_ended(d)
    assert (item["state"], item["code"], item["attempts"]) == ("PARTIAL", "PULL_DEADLINE", 3)
    assert archive.moves == 3 and d.children("courier")
    assert "COURIER_DIED" not in d.log.read_text()


def test_a_hanging_sender_is_killed(daemon, study):
    def hang(archive, event):
        archive.moves += 1
        archive.cancelled.wait()
        yield from archive.send([])

    with Archive(study[0], hang) as archive:
        d = start(daemon, archive, deadline_seconds=1.0)
        pull(d, "PACS", "--accession", FIRST)
        row = wait_for(lambda: [row for row in items(d) if row["code"] and archive.moves], 90, "the end of the first attempt")[0]
        assert row["code"] == "PULL_DEADLINE"
        pull(d, "--cancel", "1")
        assert items(d)[0]["state"] == "CANCELLED"
        wait_store_empty(d)


def test_an_aborted_retrieval_requests_the_rest_again(daemon, study):
    def break_off(archive, event):
        archive.moves += 1
        images = archive.of(event.identifier)
        if archive.moves > 1:
            yield from archive.send(images)
            return
        yield "127.0.0.1", archive.destination, {"contexts": [build_context(images[0].SOPClassUID)], "ae_title": "NOCTULE"}
        yield len(images)
        yield PENDING, images[0]
        event.assoc.abort()

    with Archive(study[0], break_off) as archive:
        d = start(daemon, archive)
        pull(d, "PACS", "--accession", FIRST)
        item, = wait_ended(d)
    assert (item["state"], item["arrived"], item["attempts"], archive.moves) == ("DONE", 8, 2, 2)


def test_an_unreachable_archive_is_retried(daemon, study):
    with Archive(study[0]) as archive:
        pass
    d = start(daemon, archive)
    pull(d, "PACS", "--accession", FIRST)
    row = wait_failed_item(d, "PEER_UNREACHABLE")
    assert row["state"] == "WAITING" and row["attempts"] == 0
    assert FIRST.encode() in accession_store(d)[0].read_bytes()


def test_invalid_requests_are_refused(daemon, study, tmp_path):
    with Archive(study[0]) as archive:
        d = start(daemon, archive)
        for arguments in [("PACS", "--accession", "*"), ("PACS", "--study", "A-1"), ("PACS",), ("PACS", "--accession"),
                          ("PACS", "--accession", "--study", "1.2"), ("--accession",), ("--cancel", "1", "PACS"),
                          ("PACS", "--study", "1.2", "--json")]:
            assert pull(d, *arguments, check=False).returncode == 2, arguments
        assert pull(d, "OTHER", "--study", "1.2.3", check=False).returncode == 3
        assert pull(d, "PACS", "--study", "--list", tmp_path / "none", check=False).returncode == 3
        assert items(d) == [] and accession_store(d) == []
        told = d.ctl("check-config", d.config).stdout
        assert f"source: PACS, LIAR at 127.0.0.1, port {archive.port}, sends to NOCTULE\n" in told


@pytest.mark.parametrize("identifiers", ["plain", "none"])
def test_identifiers_as_configured(daemon, study, identifiers):
    with Archive(study[0]) as archive:
        d = start(daemon, archive)
        d.config.write_text(d.config.read_text() + f'identifiers = "{identifiers}";\n')
        d.process.send_signal(1)
        d.wait_log("event=config.reloaded")
        pull(d, "PACS", "--accession", FIRST)
        item, = wait_ended(d)
    assert item["state"] == "DONE" and item["identifier"] == (FIRST if identifiers == "plain" else "")
    wait_store_empty(d)
