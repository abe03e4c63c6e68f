"""`takes` of a destination: the kinds of results that it gets, in the daemon, in explain and in check-config."""

import contextlib
import json
import types

import pydicom
import pytest
from conftest import drop, run_program, storescp, wait_for
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, ImplicitVRLittleEndian
from pynetdicom import AE as Entity
from pynetdicom import evt
from test_check_config import CONFIG, check
from test_deliveries import QUICK, deliveries, objects, small, states, to_archive, wait_states
from test_review import BROKEN, expecting, wait_review

RESULTS = ('results = [ "seg", "codes", "sr" ]; texture = { first_order = true; '
           'discretisation = "fixed-bin-number"; levels = 8; };')
SEG = "1.2.840.10008.5.1.4.1.1.66.4"


@contextlib.contextmanager
def accepting(*contexts, answer=lambda event: 0x0000):
    """pynetdicom's server, which rejects all other presentation contexts. It keeps (context, data set) of each C-STORE."""
    entity, got = Entity("ARCHIVE"), []
    for sop_class, syntaxes in contexts:
        entity.add_supported_context(sop_class, syntaxes)

    def store(event):
        status = answer(event)
        if status == 0:
            got.append((event.context, event.dataset))
        return status

    server = entity.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_STORE, store)])
    try:
        yield types.SimpleNamespace(port=server.server_address[1], got=got)
    finally:
        server.shutdown()


def folder_that_takes(folder, name, *kinds):
    folder.mkdir(exist_ok=True)
    takes = f"takes = [ {', '.join(f'{chr(34)}{kind}{chr(34)}' for kind in kinds)} ];" if kinds else ""
    return f'{{ name = "{name}"; folder = "{folder}"; {takes} }}'


def test_each_destination_gets_what_it_takes(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = daemon(quiet=60.0, pipeline_extra=f'{RESULTS} deliver = [ "ALL", "LAB", "PACS" ];',
                   extra=QUICK + f"""destinations = ( {folder_that_takes(tmp_path / "all", "ALL")},
                       {folder_that_takes(tmp_path / "lab", "LAB", "codes", "sr")},
                       {to_archive(archive.port, more='takes = [ "seg" ];')} );""").start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: len(deliveries(d)) == 5 and {state for _, state in states(d)} == {"SENT"}, 60, "5 deliveries")
        got = sorted((row["destination"], row["kind"]) for row in deliveries(d))
        assert got == [("ALL", "seg"), ("ALL", "sr"), ("LAB", "codes"), ("LAB", "sr"), ("PACS", "seg")]
        not_taken = {row["kind"]: row["not_taken_by"] for row in d.query("SELECT kind, not_taken_by FROM v_results")}
        assert not_taken == {"seg": "LAB", "codes": "PACS", "sr": "PACS"}

        # A file that is not DICOM is named by its series, pipeline and job, and copied as it is.
        (codes,) = [row for row in deliveries(d) if row["kind"] == "codes"]
        (copied,) = [path for path in objects(tmp_path / "lab") if path.suffix == ".nrrd"]
        assert copied.name == f"{codes['series_uid']}.head-ct.{codes['job']}.codes-1.nrrd"
        assert copied.read_bytes() == (d.root / codes["path"]).read_bytes()
        assert (codes["sent_sop_class"], codes["sent_transfer_syntax"], codes["sent_sop_instance_uid"]) == ("", "", "")

        # The form that was sent is that of the object.
        (seg,) = [row for row in deliveries(d) if row["destination"] == "PACS"]
        (stored,) = [pydicom.dcmread(path, stop_before_pixels=True) for path in archive.files()]
        assert (seg["sent_sop_class"], seg["sent_sop_instance_uid"]) == (SEG, stored.SOPInstanceUID)
        assert seg["sent_transfer_syntax"] == stored.file_meta.TransferSyntaxUID

        shown = run_program("noctule", "--config", d.config, "show", str(codes["job"])).stdout
        assert "NOT TAKEN BY" in shown
        told = run_program("noctule", "--config", d.config, "explain", *sorted((tmp_path / "ct").iterdir())).stdout
        assert "; LAB takes codes sr, PACS takes seg seg-fractional" in " ".join(told.split()), told
        told = json.loads(run_program("noctule", "--config", d.config, "explain", "--json",
                                      *sorted((tmp_path / "ct").iterdir())).stdout)
        assert "LAB takes codes sr, PACS takes seg seg-fractional" in json.dumps(told)


def test_a_job_that_runs_again_delivers_files_again(daemon, tmp_path):
    """A file that is not DICOM has no UID by which the destination could have it already."""
    d = daemon(quiet=60.0, pipeline_extra=f'{RESULTS} deliver = [ "LAB" ];', extra=QUICK +
               f"destinations = ( {folder_that_takes(tmp_path / 'lab', 'LAB', 'codes', 'sr')} );").start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_states(d, ("LAB", "SENT"), ("LAB", "SENT"))
    (job,) = d.jobs()
    d.ctl("retry", "--force", str(job["job"]))
    wait_states(d, *[("LAB", "SENT")] * 4)
    assert len([path for path in objects(tmp_path / "lab") if path.suffix == ".nrrd"]) == 2
    assert len([path for path in objects(tmp_path / "lab") if path.suffix == ".dcm"]) == 1
    assert [row["attempts"] for row in deliveries(d) if row["kind"] == "sr"] == [1, 0]


def test_accepted_results_go_where_they_are_taken(daemon, tmp_path):
    d = expecting(daemon(quiet=600.0, pipeline_extra=f'{RESULTS} deliver = [ "LAB", "ALL" ];', extra=QUICK + f"""
        destinations = ( {folder_that_takes(tmp_path / "lab", "LAB", "codes")},
                         {folder_that_takes(tmp_path / "all", "ALL")} );"""), BROKEN).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_review(d)
    assert deliveries(d) == []
    d.ctl("accept", str(d.jobs()[0]["job"]))
    wait_for(lambda: len(deliveries(d)) == 3 and {state for _, state in states(d)} == {"SENT"}, 60, "3 deliveries")
    assert sorted((row["destination"], row["kind"]) for row in deliveries(d)) == [
        ("ALL", "seg"), ("ALL", "sr"), ("LAB", "codes")]


def test_a_fallback_gets_only_what_it_takes(daemon, tmp_path):
    """An archive without Segmentation and Enhanced SR: the SR goes to the fallback, the SEG fails."""
    with accepting((CTImageStorage, [ExplicitVRLittleEndian])) as archive:
        d = daemon(quiet=60.0, pipeline_extra=f'{RESULTS} deliver = [ "PACS" ];', extra=QUICK + f"""
            destinations = ( {to_archive(archive.port, more='fallback = "LAB";')},
                             {folder_that_takes(tmp_path / "lab", "LAB", "sr")} );""").start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: sorted(states(d)) == [("LAB", "SENT"), ("PACS", "FAILED"), ("PACS", "FAILED")], 60, "the ends")
        assert {row["kind"]: row["destination"] for row in deliveries(d) if row["state"] == "SENT"} == {"sr": "LAB"}
        assert {row["code"] for row in deliveries(d) if row["state"] == "FAILED"} == {"NO_PRESENTATION_CONTEXT"}


PIPELINE = """{{ name = "{name}"; by_hand = true; results = [ {results} ]; deliver = [ {deliver} ];
  segments = ( {{ label = "A"; range = [ 0.0, 80.0 ];
    shapes = ( {{ center = {{ voxel = [ 1, 2, 3 ]; }}; radius_mm = 4.0; }} );
    type = {{ code = "T"; scheme = "99X"; meaning = "t"; }}; }} ); }}"""
AE = 'ae_title = "A"; host = "h"; port = 104;'


@pytest.mark.parametrize("takes, results, deliver, way, message", [
    ('"sr"', '"seg"', '"D"', AE, 'no pipeline that delivers to "D" makes "sr"'),
    ('"seg", "sr"', '"seg"', '"sender"', AE, 'no pipeline that delivers to "D" makes "sr"'),
    ('"codes"', '"codes"', '"D"', AE, "only a folder takes them"),
    ('"codes"', '"codes"', '"D"', 'stow = "http://h/studies";', "only a folder takes them"),
    ('"sr"', '"seg"', '"FIRST"', AE, 'no pipeline that delivers to "D" makes "sr"'),
    ('"jpeg"', '"seg"', '"D"', AE, 'must be "seg"'),
    ('"seg"', '"seg"', '"D"', AE, None),
    ('"codes"', '"codes"', '"D"', 'folder = "/srv/x";', None),
    ('"seg"', '"seg"', '"FIRST"', AE, None),
    ('"sr"', '"seg"', "", AE, None),  # no pipeline delivers there
])
def test_check_config(tmp_path, takes, results, deliver, way, message):
    result = check(tmp_path / "noctule.conf", f"""
        pipelines = ( {PIPELINE.format(name="p", results=results, deliver=deliver)} );
        destinations = ( {{ name = "FIRST"; {AE} fallback = "D"; }}, {{ name = "D"; {way} takes = [ {takes} ]; }} );""")
    if message:
        assert result.returncode == CONFIG and message in result.stderr, result.stderr
    else:
        assert result.returncode == 0, result.stderr


def test_check_config_warns_of_a_pipeline_without_a_taken_result(tmp_path):
    pipelines = ", ".join(PIPELINE.format(name=name, results=f'"{kind}"', deliver='"D"')
                          for name, kind in (("p", "seg"), ("q", "codes")))
    result = check(tmp_path / "noctule.conf", f"""pipelines = ( {pipelines} );
        destinations = ( {{ name = "D"; folder = "/srv/x"; takes = [ "seg" ]; }} );""")
    assert result.returncode == 0 and 'has no result of the pipeline "q"' in result.stderr, result.stderr


def test_explicit_is_the_first_choice(daemon, tmp_path):
    """Peers that accept Implicit VR only get that, and the row says so."""
    for option, syntax in (("+xi", ImplicitVRLittleEndian), ("+xe", ExplicitVRLittleEndian)):
        with storescp(tmp_path / f"archive{option}", [option]) as archive:
            d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                       extra=QUICK + f"destinations = ( {to_archive(archive.port)} );").start()
            drop(small(tmp_path / f"ct{option}"), d.inbox)
            wait_states(d, ("PACS", "SENT"))
            assert deliveries(d)[0]["sent_transfer_syntax"] == syntax
            d.stop()
