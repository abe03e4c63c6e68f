"""`changes = "pull"`: a job waits for the earlier study of its patient, which an archive sends (Orthanc, dcmqrscp, and archives
that are down, refuse, or answer with other patients), and is measured without it after its time."""

import os
import signal
import threading

import pydicom
import pytest
from conftest import drop, free_port, storescu, wait_for
from pydicom.uid import generate_uid
from test_changes import ML, changes
from test_changes import study as one_study
from test_page import Site, settings_of
from test_pull import CALLERS, Archive, items, pulling, source
from test_query import PENDING, a_dcmqrscp, an_orthanc, match
from texture_runs import TYPE

PIPELINE = """pipelines = ( {{ name = "p"; changes = "pull"; OPTIONS min_slices = 3; results = [ "seg", "sr" ];
    segments = ( {{ label = "Part"; method = "range"; range = [ 0.0, 5000.0 ]; TYPE }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "p"; }} );"""
WAIT = "prior_wait_seconds = 600.0;"


def site_of(daemon, folder, port, title, options=WAIT, environment=None, **source_options):
    settings = settings_of(folder / "daemon0" / "root", PIPELINE).replace("TYPE", TYPE).replace("OPTIONS", options)
    # C-STORE gives no count of images: a series is complete after this time
    settings = settings.replace("quiet_seconds = 600.0", "quiet_seconds = 1.0")
    return Site(daemon, settings=settings, dicom=CALLERS, environment=environment,
                extra=pulling(source(port, title, arrival_seconds=20.0, **source_options)))


def study(folder, name, *arguments, **attributes):
    """As that of test_changes, with SOP Instance UIDs of its own, as archives need them."""
    for file in sorted(one_study(folder, name, *arguments, **attributes).glob("*.dcm")):
        image = pydicom.dcmread(file)
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[name, file.name])
        image.save_as(file)
    return folder / name


def connect(d, port, title="LIAR"):
    """Sets the address of the archive, for the next start or reload."""
    before, after = d.config.read_text().split('name = "PACS"')
    options = after.split(";")
    options[1:4] = [f' ae_title = "{title}"', options[2], f" port = {port}"]
    d.config.write_text(before + 'name = "PACS"' + ";".join(options))


def receive(d, folder):
    """Drops a study, and returns its job."""
    files = sorted(folder.glob("*.dcm"))
    known = {row["job"] for row in d.jobs()}
    drop(files, d.inbox / folder.name)
    d.declare_complete(files)
    wait_for(lambda: {row["job"] for row in d.jobs()} - known, 120, "the job")
    return min({row["job"] for row in d.jobs()} - known)


def wait_job(d, job, state="DONE", code=None):
    def reached():
        row, = d.query("SELECT * FROM v_jobs WHERE job = ?", job)
        return row if row["state"] == state and code in (None, row["code"]) else None

    try:
        return wait_for(reached, 120, f"job {job} to be {state}")
    except pytest.fail.Exception:
        print([dict(row) for row in d.query("SELECT job, state, code, message, prior_item FROM v_jobs")],
              [dict(row) for row in items(d)], d.log.read_text()[-6000:])
        raise


def events(d, kind):
    return d.query("SELECT count(*) AS n FROM v_events WHERE kind = ?", kind)[0]["n"]


class Patients(Archive):
    """An archive that finds studies by Patient ID and date. `answers` changes a match."""

    def __init__(self, *folders, move=None, answer=lambda identifier: identifier):
        self.answer = answer
        super().__init__(folders[0], move)
        for folder in folders[1:]:
            self.images += [pydicom.dcmread(file) for file in sorted(folder.glob("*.dcm"))]

    def find(self, event):
        keys = event.identifier
        if keys.QueryRetrieveLevel == "SERIES":
            for answer in super().find(event):
                image = next(image for image in self.images if image.SeriesInstanceUID == answer[1].SeriesInstanceUID)
                answer[1].Modality = image.Modality
                yield answer
            return
        self.finds += 1
        assert keys.PatientID and keys.StudyDate.startswith("-") and not keys.StudyInstanceUID
        found = {image.StudyInstanceUID: image for image in self.images
                 if image.PatientID == keys.PatientID and image.StudyDate <= keys.StudyDate[1:]}
        for uid, image in sorted(found.items()):
            answer = match(StudyInstanceUID=uid, PatientID=image.PatientID, StudyDate=image.StudyDate,
                           NumberOfStudyRelatedInstances=sum(i.StudyInstanceUID == uid for i in self.images))
            answer.QueryRetrieveLevel = "STUDY"
            yield PENDING, self.answer(answer)


def patients(d, archive):
    archive.destination = d.port
    return archive


@pytest.mark.parametrize("archive", [an_orthanc, a_dcmqrscp])
def test_a_real_archive_sends_the_latest_earlier_study(daemon, tmp_path, archive):
    """Not the older one, not a later one, not that of another patient, and not one of another modality."""
    studies = [study(tmp_path, "oldest", "20200101", 8), study(tmp_path, "earlier", "20240228", 10),
               study(tmp_path, "later", "20260101", 12), study(tmp_path, "other", "20240301", 30, patient="P22"),
               study(tmp_path, "mr", "20240901", 3, uid="1.2.3.77", Modality="MR")]
    site = site_of(daemon, tmp_path, free_port(), "LIAR")
    d = site.daemon
    with archive(tmp_path / "archive", d.port) as (peer, title):
        for folder in studies:
            storescu(peer.port, folder, called=title)
        connect(d, peer.port, title)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15))
        assert wait_job(d, job)["prior_item"] == 1
        assert d.query("SELECT count(*) AS n FROM v_events WHERE kind = 'JOB_WAITS' AND detail LIKE '%item 1 of PACS%'")[0]["n"] == 1
    item, = items(d)  # the fetched study asks for none itself
    assert (item["key"], item["state"], item["asked_by"], item["arrived"]) == ("prior", "DONE", f"job {job}", 3)
    series = [row["study_date"] for row in d.query("SELECT study_date FROM v_series ORDER BY study_date")]
    assert series == ["20240228", "20250301"]
    assert changes(d, job) == {"days_since_prior": 367.0, "volume_change": pytest.approx(5 * ML),
                               "volume_relative_change": pytest.approx(50.0)}
    prior = d.query("SELECT prior_job FROM v_jobs WHERE job = ?", job)[0]["prior_job"]
    assert set(changes(d, prior).values()) == {"NO_PRIOR"} and "PRIOR_NOT_READY" not in d.ctl("show", str(job)).stdout
    assert b"P1" not in d.log.read_bytes()


def test_while_it_waits_everything_says_so(daemon, tmp_path):
    site = site_of(daemon, tmp_path, free_port(), "LIAR", WAIT.replace("600", "1000"))
    d = site.start().daemon
    job = receive(d, study(tmp_path, "now", "20250301", 15))
    waits = wait_job(d, job, "DELAYED", "PRIOR_WAITING")
    assert waits["not_before_at"] is not None
    assert "waits_until" in d.ctl("show", str(job)).stdout and "earlier study" in d.ctl("show", str(job)).stdout
    assert "for an earlier study from an archive, the first until" in d.ctl("status").stdout
    assert 'noctule_jobs_delayed{code="PRIOR_WAITING"} 1' in site.text("metrics")
    assert "PRIOR_WAITING" in site.text(f"job?id={job}") and "earlier study" in site.text(f"job?id={job}")
    assert '"PRIOR_WAITING"' in site.text(f"api/v1/jobs/{job}") and "waits until" in site.text(f"job?id={job}")
    # noctule retry does not wait
    d.ctl("retry", str(job))
    wait_job(d, job)
    assert set(changes(d, job).values()) == {"PRIOR_NOT_READY"}
    assert "PRIOR_NOT_READY" in d.ctl("show", str(job)).stdout and "PRIOR_NOT_READY" in site.text(f"job?id={job}")


def test_an_archive_that_is_down_costs_only_the_time(daemon, tmp_path):
    site = site_of(daemon, tmp_path, free_port(), "LIAR", "prior_wait_seconds = 2.0;")
    d = site.start().daemon
    job = receive(d, study(tmp_path, "now", "20250301", 15))
    wait_job(d, job)
    assert events(d, "JOB_DUE") == 1 and set(changes(d, job).values()) == {"PRIOR_NOT_READY"}
    assert d.query("SELECT count(*) AS n FROM v_events WHERE kind = 'PULL_DELAYED' AND detail LIKE '%PEER_UNREACHABLE%'")[0]["n"] > 0
    report = (d.root / "outbox" / str(job) / "sr.dcm").read_bytes()
    assert b"114007" in report and b"not fetched and measured in time" in report
    uid, = [row[0] for row in d.query("SELECT sop_instance_uid FROM v_results WHERE job = ? AND kind = 'sr'", job)]
    # the archive is back: no study is fetched for a job that has ended; a forced retry asks again, for another report
    with Patients(study(tmp_path, "earlier", "20240228", 10)) as archive:
        patients(d, archive)
        assert d.stop() == 0
        connect(d, archive.port)
        d.config.write_text(d.config.read_text().replace("prior_wait_seconds = 2.0;", WAIT))
        d.start()
        wait_for(lambda: items(d)[0]["state"] == "CANCELLED", 120, "the end of the item")
        assert archive.moves == 0
        d.ctl("retry", "--force", "--current", str(job))
        again = wait_for(lambda: d.query("SELECT job FROM v_jobs WHERE prior_job IS NOT NULL AND state = 'DONE'"), 120,
                         "the repeated job")[0]["job"]
    assert changes(d, again)["volume_change"] == pytest.approx(5 * ML) and archive.moves == 1 and len(d.jobs()) == 3
    assert d.query("SELECT sop_instance_uid FROM v_results WHERE job = ? AND kind = 'sr'", again)[0][0] != uid
    assert set(changes(d, job).values()) == {"PRIOR_NOT_READY"}


def test_a_study_that_comes_too_late(daemon, tmp_path):
    """The job has run without it. The study is measured; the job stays as it is."""
    late = threading.Event()

    def slow(archive, event):
        assert late.wait(120)
        yield from Archive.move(archive, event)

    with Patients(study(tmp_path, "earlier", "20240228", 10), move=slow) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR", "prior_wait_seconds = 2.0;")
        d = site.daemon
        patients(d, archive)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15))
        wait_job(d, job)
        late.set()
        wait_for(lambda: len(d.jobs()) == 2 and d.jobs()[-1]["state"] == "DONE", 120, "the late study")
        assert items(d)[0]["state"] == "DONE" and len(items(d)) == 1
        assert set(changes(d, job).values()) == {"PRIOR_NOT_READY"}
        assert d.query("SELECT prior_job FROM v_jobs WHERE job = ?", job)[0]["prior_job"] is None


def other_patient(answer):
    answer.PatientID = "P9"
    return answer


def no_patient(answer):
    del answer.PatientID
    return answer


def later_date(answer):
    answer.StudyDate = "20300101"
    return answer


@pytest.mark.parametrize("answer", [other_patient, no_patient, later_date])
def test_an_answer_of_another_patient_is_refused(daemon, tmp_path, answer):
    with Patients(study(tmp_path, "earlier", "20240228", 10), answer=answer) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR")
        d = site.daemon
        patients(d, archive)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15))
        wait_job(d, job)
        item, = items(d)
        assert (item["state"], item["code"], item["arrived"], archive.moves) == ("FAILED", "PRIOR_OTHER_PATIENT", 0, 0)
        assert set(changes(d, job).values()) == {"PRIOR_NOT_READY"} and b"P9" not in d.log.read_bytes()


def test_a_refusal_by_the_chosen_archive(daemon, tmp_path):
    """The second of two archives is asked, as configured. It finds the study and does not know our title."""
    def unknown(archive, event):
        archive.moves += 1
        yield None, None

    with Patients(study(tmp_path, "earlier", "20240228", 10), move=unknown) as archive:
        site = site_of(daemon, tmp_path, free_port(), "LIAR", 'prior_source = "SECOND";')
        d = site.daemon
        text = d.config.read_text()
        d.config.write_text(text.replace('sources = ( ', f'sources = ( {source(free_port(), "NOBODY", name="FIRST")}, ').replace(
            'name = "PACS"', 'name = "SECOND"'))
        d.config.write_text(d.config.read_text().replace(text.split('name = "PACS"')[1].split("port = ")[1].split(";")[0], str(archive.port)))
        patients(d, archive)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15))
        wait_job(d, job)
        item, = items(d)
        assert (item["source"], item["state"], item["code"]) == ("SECOND", "FAILED", "MOVE_DESTINATION_UNKNOWN")
        assert set(changes(d, job).values()) == {"PRIOR_NOT_READY"} and archive.moves == 1


def test_studies_that_do_not_fit(daemon, tmp_path):
    """No study, one of another modality, and one of another issuer of the same number: no earlier study. One that is
    under review, or that no rule takes, ends the wait too."""
    with Patients(study(tmp_path, "mr", "20240228", 10, Modality="MR")) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR")
        d = site.daemon
        patients(d, archive)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15))
        wait_job(d, job)
        assert items(d)[0]["state"] == "NOT_FOUND" and set(changes(d, job).values()) == {"NO_PRIOR"}
        # a Patient ID that is no key: the archive is not asked
        finds = archive.finds
        odd = receive(d, study(tmp_path, "odd", "20250301", 15, patient="P*"))
        wait_job(d, odd)
        assert (items(d)[-1]["state"], items(d)[-1]["code"]) == ("FAILED", "PRIOR_NO_KEY") and archive.finds == finds
        # neither a patient nor a date: nothing to ask for
        none = receive(d, study(tmp_path, "none", "20250301", 15, patient=""))
        wait_job(d, none)
        assert len(items(d)) == 2 and set(changes(d, none).values()) == {"NO_PRIOR"}


def test_a_fetched_study_that_no_rule_takes_ends_the_wait(daemon, tmp_path):
    earlier = study(tmp_path, "earlier", "20240228", 10, SeriesDescription="other")
    with Patients(earlier) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR")
        d = site.daemon
        d.config.write_text(d.config.read_text().replace('modality = "CT";', 'modality = "CT"; description = "now";'))
        patients(d, archive)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15, SeriesDescription="now"))
        wait_job(d, job)
        assert items(d)[0]["state"] == "DONE" and len(d.jobs()) == 1 and set(changes(d, job).values()) == {"NO_PRIOR"}


@pytest.mark.parametrize("expect, state", [("volume_ml = [ 0.15, 1.0 ];", "REVIEW"), ("", "CANCELLED")])
def test_a_fetched_study_without_a_result_ends_the_wait(daemon, tmp_path, expect, state):
    """Its job is held meanwhile, so that the wait is seen."""
    held = threading.Event()

    def slow(archive, event):
        assert held.wait(120)
        yield from Archive.move(archive, event)

    with Patients(study(tmp_path, "earlier", "20240228", 10), move=slow) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR")
        d = site.daemon
        d.config.write_text(d.config.read_text().replace("range = [ 0.0, 5000.0 ];",
                                                         f"range = [ 0.0, 5000.0 ]; expect = {{ {expect} }};" if expect else "range = [ 0.0, 5000.0 ];"))
        patients(d, archive)
        site.start()
        job = receive(d, study(tmp_path, "now", "20250301", 15))
        wait_job(d, job, "DELAYED", "PRIOR_WAITING")
        d.ctl("hold", "--pipeline", "p")
        held.set()
        prior = wait_for(lambda: [row["job"] for row in d.jobs() if row["job"] != job], 120, "the job of the fetched study")[0]
        wait_for(lambda: items(d)[0]["state"] == "DONE", 120, "the end of the item")
        wait_job(d, job, "DELAYED", "PRIOR_WAITING")
        if state == "CANCELLED":
            d.ctl("cancel", str(prior))
        d.ctl("release", "--pipeline", "p")
        wait_job(d, job)
        wait_job(d, prior, state)
        assert set(changes(d, job).values()) == {"NO_PRIOR"}


def test_two_jobs_of_a_patient_fetch_once(daemon, tmp_path):
    with Patients(study(tmp_path, "earlier", "20240228", 10)) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR")
        d = site.daemon
        patients(d, archive)
        site.start()
        first = receive(d, study(tmp_path, "one", "20250301", 15, uid="1.2.3.4"))
        second = receive(d, study(tmp_path, "two", "20250301", 20, uid="1.2.3.4"))
        wait_job(d, first)
        wait_job(d, second)
        assert archive.moves == 1 and [item["state"] for item in items(d)] == ["DONE", "DONE"]
        assert changes(d, first)["volume_change"] == pytest.approx(5 * ML)
        assert changes(d, second)["volume_change"] == pytest.approx(10 * ML)
        # the next study finds the first ones here
        third = receive(d, study(tmp_path, "three", "20260301", 30))
        wait_job(d, third)
        assert archive.moves == 1


@pytest.mark.parametrize("point", ["daemon_after_finding_before_find", "courier_after_find", "daemon_after_moving_before_move",
                                   "courier_after_move", "daemon_after_pull_before_commit", "daemon_after_running_before_run"])
def test_a_crash_loses_no_wait(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    with Patients(study(tmp_path, "earlier", "20240228", 10)) as archive:
        site = site_of(daemon, tmp_path, archive.port, "LIAR",
                       environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
        d = site.daemon
        patients(d, archive)
        site.start()
        files = sorted(study(tmp_path, "now", "20250301", 15).glob("*.dcm"))
        drop(files, d.inbox / "now")
        wait_for(once.exists, 120, f"the crash at {point}")
        if point.startswith("daemon"):
            d.process.wait(60)
            d.kill_all()
            d.start()
        job = wait_for(lambda: d.query("SELECT job FROM v_jobs WHERE prior_job IS NOT NULL AND state = 'DONE'"), 120,
                       "the job")[0]["job"]
        assert changes(d, job)["volume_change"] == pytest.approx(5 * ML)
        assert len(items(d)) == 1 and len(d.jobs()) == 2 and archive.moves <= 2


def test_kill_while_it_waits(daemon, tmp_path):
    """A kill of all processes while a job waits for an archive that is down: the wait goes on, with the same end."""
    site = site_of(daemon, tmp_path, free_port(), "LIAR")
    d = site.start().daemon
    job = receive(d, study(tmp_path, "now", "20250301", 15))
    until = wait_job(d, job, "DELAYED", "PRIOR_WAITING")["not_before_at"]
    os.kill(d.process.pid, signal.SIGKILL)
    d.process.wait(60)
    d.kill_all()
    d.start()
    assert wait_job(d, job, "DELAYED", "PRIOR_WAITING")["not_before_at"] == until
    d.ctl("pull", "--cancel", "1")
    wait_job(d, job)
    assert items(d)[0]["state"] == "CANCELLED" and set(changes(d, job).values()) == {"PRIOR_NOT_READY"}


def test_a_cancelled_job_is_not_asked_for(daemon, tmp_path):
    site = site_of(daemon, tmp_path, free_port(), "LIAR")
    d = site.start().daemon
    job = receive(d, study(tmp_path, "now", "20250301", 15))
    wait_job(d, job, "DELAYED", "PRIOR_WAITING")
    d.ctl("cancel", str(job))
    wait_for(lambda: items(d)[0]["state"] == "CANCELLED", 120, "the end of the item")
    assert d.query("SELECT state FROM v_jobs WHERE job = ?", job)[0]["state"] == "CANCELLED"


def test_the_source_must_be_there(daemon, tmp_path):
    site = site_of(daemon, tmp_path, free_port(), "LIAR", 'prior_source = "NONE";')
    refused = site.daemon.ctl("check-config", site.daemon.config, check=False)
    assert refused.returncode != 0 and '"NONE" is not in pull.sources' in refused.stderr
    text = site.daemon.config.read_text()
    site.daemon.config.write_text(text[:text.index("pull = {")].replace('prior_source = "NONE";', "") + site.settings)
    refused = site.daemon.ctl("check-config", site.daemon.config, check=False)
    assert refused.returncode != 0 and "requires an archive in pull.sources" in refused.stderr
    site.daemon.config.write_text('identifiers = "none";\n' + text.replace('prior_source = "NONE";', ""))
    warned = site.daemon.ctl("check-config", site.daemon.config)
    assert "pipelines[0].changes: finds no earlier study" in warned.stderr + warned.stdout
