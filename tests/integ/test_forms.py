"""Transfer syntax and class per destination: archives that do not accept an object as it is get another form of it, over
C-STORE and STOW-RS, and the rows say which."""

import contextlib
import io
import json
import signal

import numpy as np
import pydicom
import pytest
from conftest import assert_valid, drop, orthanc, phantom, run_program, storescp, wait_for
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    RLELossless,
    SegmentationStorage,
)
from test_deliver import PERMANENT, SENT, TRANSIENT, Sender, destination
from test_deliver import archive as archive_of
from test_deliveries import QUICK, deliveries, small, states, to_archive, wait_states
from test_stow import Service, by_stow, stored
from test_takes import accepting

LABELMAP = "1.2.840.10008.5.1.4.1.1.66.7"
CLASSES = {"seg": SegmentationStorage, "labelmap": LABELMAP}
SYNTAXES = {"none": ExplicitVRLittleEndian, "rle": RLELossless, "deflated": DeflatedExplicitVRLittleEndian}

CONFIG = """root = "{folder}/root"; rules = ();
pipelines = ( {{ name = "two"; results = [ "seg", "labelmap" ]; compression = "{compression}"; {more}
  segments = ( {{ label = "Ball"; range = [ 0.0, 80.0 ];
      shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
      type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }},
    {{ label = "Rest"; range = [ -2000.0, 3000.0 ]; minus = [ "Ball" ]; shapes = ( {{ kind = "sphere";
      center = {{ fraction = [ 0.4, 0.4, 0.4 ]; }}; radius_mm = 60.0; }} );
      type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }} );
"""


def written(folder, compression, *options, more=""):
    """Returns the output of a pipeline with two segments."""
    folder.mkdir()
    config = folder / "noctule.conf"
    config.write_text(CONFIG.format(folder=folder, compression=compression, more=more))
    phantom(folder / "ct", *(options or ("--size", "65x63x12")))
    run_program("noctule", "--config", config, "run", "--pipeline", "two", "--output", folder / "out", folder / "ct")
    return folder / "out"


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    return {compression: written(folder / compression, compression) for compression in SYNTAXES}


@pytest.fixture
def sender(tmp_path):
    made = []

    def make(*destinations, **options):
        folder = tmp_path / f"courier{len(made)}"
        (folder / "root" / "converted").mkdir(parents=True)
        made.append(Sender(folder, *destinations, **options))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()
        assert not any((one.folder / "root" / "converted").iterdir())


def masks(dataset):
    """Returns the voxels of each segment by the position of their slices."""
    found = {}
    labels = dataset.SegmentationType == "LABELMAP"
    frames = dataset.pixel_array.reshape(-1, dataset.Rows, dataset.Columns)
    for pixels, groups in zip(frames, dataset.PerFrameFunctionalGroupsSequence, strict=True):
        place = tuple(groups.PlanePositionSequence[0].ImagePositionPatient)
        numbers = np.unique(pixels[pixels > 0]) if labels else [
            groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber]
        for number in numbers:
            found[int(number), place] = pixels == number if labels else pixels > 0
    return found


def assert_same_masks(one, other):
    ours, theirs = masks(one), masks(other)
    assert ours.keys() == theirs.keys() and len(ours) > 10
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours)


def readable(event_dataset, context):
    """Returns a received data set as a file that pydicom can decode."""
    event_dataset.file_meta = pydicom.dataset.FileMetaDataset()
    event_dataset.file_meta.TransferSyntaxUID = context.transfer_syntax
    event_dataset.file_meta.MediaStorageSOPClassUID = event_dataset.SOPClassUID
    event_dataset.file_meta.MediaStorageSOPInstanceUID = event_dataset.SOPInstanceUID
    return event_dataset


def form_of(told):
    return told["sent_sop_class"], told["sent_transfer_syntax"]


BINARY = (SegmentationStorage, ExplicitVRLittleEndian)

# The object, the contexts that the archive accepts, and the form that it must get.
PEERS = [
    ("seg", "none", [(SegmentationStorage, ExplicitVRLittleEndian)], (SegmentationStorage, ExplicitVRLittleEndian)),
    ("seg", "none", [(SegmentationStorage, ImplicitVRLittleEndian)], (SegmentationStorage, ImplicitVRLittleEndian)),
    ("seg", "deflated", [(SegmentationStorage, DeflatedExplicitVRLittleEndian), BINARY],
     (SegmentationStorage, DeflatedExplicitVRLittleEndian)),
    ("seg", "deflated", [BINARY], BINARY),
    ("seg", "deflated", [(SegmentationStorage, ImplicitVRLittleEndian)], (SegmentationStorage, ImplicitVRLittleEndian)),
    ("labelmap", "none", [(LABELMAP, ExplicitVRLittleEndian), BINARY], (LABELMAP, ExplicitVRLittleEndian)),
    ("labelmap", "none", [BINARY], BINARY),
    ("labelmap", "rle", [(LABELMAP, RLELossless), BINARY], (LABELMAP, RLELossless)),
    ("labelmap", "rle", [(LABELMAP, ExplicitVRLittleEndian), BINARY], (LABELMAP, ExplicitVRLittleEndian)),
    ("labelmap", "rle", [(LABELMAP, ImplicitVRLittleEndian)], (LABELMAP, ImplicitVRLittleEndian)),
    ("labelmap", "rle", [BINARY], BINARY),
    ("labelmap", "rle", [(SegmentationStorage, ImplicitVRLittleEndian)], (SegmentationStorage, ImplicitVRLittleEndian)),
    ("labelmap", "deflated", [(LABELMAP, DeflatedExplicitVRLittleEndian)], (LABELMAP, DeflatedExplicitVRLittleEndian)),
    ("labelmap", "deflated", [(LABELMAP, ExplicitVRLittleEndian)], (LABELMAP, ExplicitVRLittleEndian)),
    ("labelmap", "deflated", [BINARY], BINARY),
    ("labelmap", "deflated", [(LABELMAP, RLELossless)], None),
    ("seg", "deflated", [(LABELMAP, ExplicitVRLittleEndian)], None),
]


@pytest.mark.parametrize("kind, compression, accepted, expected", PEERS,
                         ids=[f"{row[0]}-{row[1]}-{n}" for n, row in enumerate(PEERS)])
def test_an_archive_gets_a_form_that_it_accepts(sender, results, kind, compression, accepted, expected):
    path = results[compression] / f"{kind}.dcm"
    own = pydicom.dcmread(path)
    with accepting(*[(sop_class, [syntax]) for sop_class, syntax in accepted]) as archive:
        told = sender(destination(port=archive.port)).deliver(path)
    if not expected:
        assert (told["outcome"], told["code"]) == (PERMANENT, "NO_PRESENTATION_CONTEXT")
        assert form_of(told) == ("", "") and archive.got == []
        return
    assert told["outcome"] == SENT, told["message"]
    assert form_of(told) == expected
    ((context, dataset),) = archive.got
    assert (context.abstract_syntax, context.transfer_syntax) == expected
    got = readable(dataset, context)
    assert got.SOPInstanceUID == told["sent_sop_instance"]
    assert_same_masks(got, pydicom.dcmread(results["none"] / "seg.dcm"))
    if got.SOPClassUID == own.SOPClassUID:
        assert got.SOPInstanceUID == own.SOPInstanceUID and got.SeriesInstanceUID == own.SeriesInstanceUID
        del got.PixelData, own.PixelData  # Implicit VR has OW
        assert got == own
    else:
        assert got.SegmentationType == "BINARY" and got.SOPClassUID == SegmentationStorage
        assert got.SOPInstanceUID not in {own.SOPInstanceUID,
                                          pydicom.dcmread(results["none"] / "seg.dcm").SOPInstanceUID}


def test_a_form_is_valid_and_the_same_each_time(sender, results, tmp_path):
    """A repeated delivery has the same UIDs and the same bytes."""
    got = []
    for n in range(2):
        with storescp(tmp_path / f"archive{n}", ["-xf", profile(tmp_path, BINARY), "Default"]) as archive:
            told = sender(destination(port=archive.port)).deliver(results["rle"] / "labelmap.dcm")
            assert form_of(told) == BINARY, told
            (file,) = archive.files()
            got.append(file.read_bytes())
            assert_valid(file)
            assert_same_masks(pydicom.dcmread(file), pydicom.dcmread(results["none"] / "seg.dcm"))
    assert got[0] == got[1]


def test_a_label_map_on_the_upright_grid(sender, tmp_path):
    """It has the voxels and places of the BINARY one, as it is and converted."""
    output = written(tmp_path / "upright", "rle", "--size", "65x63x16", "--tilt", "15", more='seg_grid = "upright";')
    binary, labels = (pydicom.dcmread(output / f"{kind}.dcm") for kind in CLASSES)
    assert "DerivationImageSequence" in labels.SharedFunctionalGroupsSequence[0]
    assert_same_masks(labels, binary)
    with storescp(tmp_path / "archive", ["-xf", profile(tmp_path, BINARY), "Default"]) as archive:
        told = sender(destination(port=archive.port)).deliver(output / "labelmap.dcm")
        assert told["outcome"] == SENT, told["message"]
        (file,) = archive.files()
        assert_same_masks(pydicom.dcmread(file), binary)
        assert_valid(file)


def profile(folder, *contexts):
    """Writes a configuration of DCMTK's storescp that accepts only these contexts."""
    lines = ["[[TransferSyntaxes]]"]
    for n, (_, syntax) in enumerate(contexts):
        lines += [f"[Syntax{n}]", f"TransferSyntax1 = {syntax}"]
    lines += ["[[PresentationContexts]]", "[Contexts]"]
    lines += [f"PresentationContext{n + 1} = {sop_class}\\Syntax{n}" for n, (sop_class, _) in enumerate(contexts)]
    lines += ["[[Profiles]]", "[Default]", "PresentationContexts = Contexts"]
    path = folder / "storescp.cfg"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("status, outcome, expected", [
    (0x0122, SENT, BINARY), (0xA900, SENT, BINARY), (0xC001, SENT, BINARY),
    (0xA700, TRANSIENT, None), (0x0124, PERMANENT, None)])
def test_an_answer_that_means_the_object_leads_to_the_next_form(sender, results, status, outcome, expected):
    asked = []

    def answer(event):
        asked.append(event.context.abstract_syntax)
        return status if event.context.abstract_syntax == LABELMAP else 0x0000

    with accepting((LABELMAP, [ExplicitVRLittleEndian]), (SegmentationStorage, [ExplicitVRLittleEndian]),
                   answer=answer) as archive:
        told = sender(destination(port=archive.port)).deliver(results["none"] / "labelmap.dcm")
    assert told["outcome"] == outcome
    assert form_of(told) == (expected or ("", ""))
    assert asked == ([LABELMAP, SegmentationStorage] if expected else [LABELMAP])
    assert told["dimse_status"] == (0 if expected else status)


def test_queued_objects_share_an_association(sender, results):
    """Each object is sent in its own transfer syntax, whichever of them opened the association."""
    with accepting((LABELMAP, [RLELossless]), (LABELMAP, [ExplicitVRLittleEndian]),
                   (SegmentationStorage, [DeflatedExplicitVRLittleEndian])) as archive:
        one = sender(destination(port=archive.port))
        for path in (results["rle"] / "labelmap.dcm", results["deflated"] / "seg.dcm", results["none"] / "labelmap.dcm"):
            assert one.deliver(path)["outcome"] == SENT
    assert [(str(dataset.SOPClassUID), str(context.transfer_syntax)) for context, dataset in archive.got] == [
        (LABELMAP, RLELossless), (SegmentationStorage, DeflatedExplicitVRLittleEndian), (LABELMAP, ExplicitVRLittleEndian)]


def test_a_conversion_without_a_place_is_tried_again(sender, results):
    with accepting((SegmentationStorage, [ExplicitVRLittleEndian])) as archive:
        one = sender(destination(port=archive.port))
        (one.folder / "root" / "converted").rmdir()
        told = one.deliver(results["rle"] / "labelmap.dcm")
        assert (told["outcome"], told["code"]) == (TRANSIENT, "WRITE_FAILED") and "converted" in told["message"]
        (one.folder / "root" / "converted").mkdir()


# ---- STOW-RS

def answering(*refusals):
    """Answers the first requests with these refusals, then stores."""
    left = list(refusals)

    def answer(service, uid):
        if uid is None:
            return None
        return left.pop(0)(uid) if left else (200, stored(uid))

    return answer


def http(status):
    return lambda uid: (status, "")


def reason(number):
    failed = lambda uid: json.dumps({"00081198": {"vr": "SQ", "Value": [{  # noqa: E731
        "00081155": {"vr": "UI", "Value": [uid]}, "00081197": {"vr": "US", "Value": [number]}}]}})
    return lambda uid: (409, failed(uid))


@pytest.mark.parametrize("kind, compression, refusals, expected", [
    ("labelmap", "rle", (), (LABELMAP, RLELossless)),
    ("labelmap", "rle", (http(415),), (LABELMAP, ExplicitVRLittleEndian)),
    ("labelmap", "rle", (reason(0xC122),), (LABELMAP, ExplicitVRLittleEndian)),
    ("labelmap", "rle", (http(409), reason(0x0122)), BINARY),
    ("labelmap", "rle", (http(415), http(415), http(415)), None),
    ("labelmap", "none", (reason(0xA900),), BINARY),
    ("seg", "deflated", (http(400),), BINARY),
    ("seg", "deflated", (http(413),), None),
    ("seg", "none", (http(415),), None),
])
def test_a_service_gets_a_form_that_it_accepts(sender, results, kind, compression, refusals, expected):
    with contextlib.closing(Service(answering(*refusals))) as web:
        told = sender(by_stow(web.url)).deliver(results[compression] / f"{kind}.dcm", to="WEB")
        bodies = web.bodies
    if not expected:
        assert told["outcome"] == PERMANENT and form_of(told) == ("", "")
        return
    assert told["outcome"] == SENT, told["message"]
    assert form_of(told) == expected and len(bodies) == len(refusals) + 1
    got = pydicom.dcmread(io.BytesIO(bodies[-1]))
    assert (got.SOPClassUID, got.file_meta.TransferSyntaxUID) == expected
    assert got.SOPInstanceUID == got.file_meta.MediaStorageSOPInstanceUID == told["sent_sop_instance"]
    assert_same_masks(got, pydicom.dcmread(results["none"] / "seg.dcm"))


def test_a_refused_transfer_syntax_is_remembered(sender, results):
    """Of the service, not of an object: the next one is sent at once in the form that was stored. An answer about one
    object is not remembered."""
    for refusals, is_remembered in (((http(415),), True), ((http(415), http(415)), True), ((reason(0xC122),), True),
                                    ((reason(0xA900),), False), ((http(409),), False)):
        with contextlib.closing(Service(answering(*refusals))) as web:
            to = sender(by_stow(web.url))
            forms, before = [], 0
            for count in (len(refusals) + 1, 1, 1):
                told = to.deliver(results["rle"] / "labelmap.dcm", to="WEB")
                assert told["outcome"] == SENT and len(web.bodies) - before == count
                forms.append(form_of(told))
                before = len(web.bodies)
        assert forms[0] != (LABELMAP, RLELossless)
        assert forms[1:] == 2 * [forms[0] if is_remembered else (LABELMAP, RLELossless)]


def test_a_service_that_is_busy_gets_the_object_again(sender, results):
    with contextlib.closing(Service(answering(http(503)))) as web:
        told = sender(by_stow(web.url)).deliver(results["rle"] / "labelmap.dcm", to="WEB")
        assert told["outcome"] == TRANSIENT and len(web.bodies) == 1


# ---- the daemon

def config_of(archive, more="", compression="rle"):
    return dict(quiet=60.0, pipeline_extra=f'results = [ "labelmap" ]; compression = "{compression}"; '
                'deliver = [ "PACS" ];', extra=QUICK + f"destinations = ( {to_archive(archive.port, more=more)} );")


def test_rows_say_what_was_sent(daemon, tmp_path):
    with accepting((SegmentationStorage, [ExplicitVRLittleEndian])) as archive:
        d = daemon(**config_of(archive)).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        (row,) = deliveries(d)
        ((_, dataset),) = archive.got
        assert row["sop_class_uid"] == LABELMAP and row["sop_instance_uid"] != dataset.SOPInstanceUID
        assert (row["sent_sop_class"], row["sent_transfer_syntax"], row["sent_sop_instance_uid"]) == (
            *BINARY, dataset.SOPInstanceUID)
        assert row["attempts"] == 1 and d.query("SELECT sop_instance_uid FROM v_results")[0][0] == row["sop_instance_uid"]


def test_commitment_is_requested_for_the_uid_that_was_sent(daemon, tmp_path):
    with archive_of(commitment=True) as archive:
        d = daemon(**config_of(archive, more="commit = true;")).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: [row["commitment"] for row in deliveries(d)] == ["COMMITTED"], 60, "the commitment")
        (row,) = deliveries(d)
        (request,) = archive.requests
        (item,) = request.ReferencedSOPSequence
        assert (item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID) == (
            SegmentationStorage, row["sent_sop_instance_uid"])
        assert row["sent_sop_instance_uid"] != row["sop_instance_uid"]


def test_killed_in_a_conversion(daemon, tmp_path):
    once = tmp_path / "crashed"
    with accepting((SegmentationStorage, [ExplicitVRLittleEndian])) as archive:
        d = daemon(**config_of(archive), environment={"NOCTULE_CRASH_AT": "courier_in_conversion",
                                                      "NOCTULE_CRASH_ONCE": str(once)}).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        assert once.exists() and deliveries(d)[0]["attempts"] == 2
        assert len(archive.got) == 1 and not any((d.root / "converted").iterdir())
        d.stop(signal.SIGTERM)


def test_the_fallback_comes_after_the_forms(daemon, tmp_path):
    with accepting(("1.2.840.10008.5.1.4.1.1.2", [ExplicitVRLittleEndian])) as archive:
        (tmp_path / "shelf").mkdir()
        given = config_of(archive, more='fallback = "SHELF";')
        given["extra"] = given["extra"].replace(" );", f', {{ name = "SHELF"; folder = "{tmp_path / "shelf"}"; }} );')
        d = daemon(**given).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: states(d) == [("PACS", "FAILED"), ("SHELF", "SENT")], 60, "the fallback")
        shelved = deliveries(d)[1]
        assert (shelved["sent_sop_class"], shelved["sent_transfer_syntax"]) == (LABELMAP, RLELossless)


def test_orthanc_stores_and_returns_each_form(daemon, tmp_path):
    """Orthanc accepts every storage class. It returns the bytes of the pixels, and commits to the UID that it has."""
    with orthanc(tmp_path / "orthanc") as archive:
        d = daemon(**config_of(archive), dicom="""titles = ( { ae_title = "NOCTULE"; } );""").start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        (row,) = deliveries(d)
        (instance,) = archive.instances()
        got = pydicom.dcmread(io.BytesIO(archive.file(instance)))
        assert (got.SOPClassUID, got.SOPInstanceUID) == (row["sent_sop_class"], row["sent_sop_instance_uid"])
        assert got.file_meta.TransferSyntaxUID == row["sent_transfer_syntax"]
