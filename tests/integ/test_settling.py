"""Decisions of the daemon on series. Complete series of one patient with the requested volumes are accepted, and
others are refused with a code."""

import getpass
import resource
import shutil
import signal

import pydicom
import pytest
from conftest import PEERS, SHARED, Clock, needs_shared, phantom, put, storescu, wait_for
from test_receive import data_set_of
from upper_layer import associated, data_pdu

OUT_OF_RESOURCES, MISMATCH = 0xA700, 0xA900
SUCCESS, PARTIAL = 0, 1  # of a C-STORE; of a command (service/common/exit_codes.h)
SLICES = 12
QUIET = 20.0  # quiet time in seconds; completing() lets it pass


@pytest.fixture
def daemon(daemon, tmp_path):
    """Returns a factory of daemons with a clock that the test moves."""
    def make(quiet=QUIET, **options):
        clock = Clock(tmp_path)
        d = daemon(quiet=quiet, environment=clock.environment, **options)
        d.clock = clock
        return d

    return make


def completing(d, condition, what):
    """Waits for the condition. After all inbox files are stored or quarantined, lets the quiet time pass, which
    completes a series."""
    def arrived():
        ((count,),) = d.query("SELECT (SELECT count(*) FROM v_instances) + (SELECT count(*) FROM v_quarantine WHERE "
                              "original_path LIKE '/%')")
        return count >= len([path for path in d.inbox.rglob("*") if path.is_file()]) and count > 0

    steps = iter(4 * [QUIET / 3])  # at most this much, because a process that seems silent for a minute is killed

    def condition_in_time():
        if d.query("SELECT 1 FROM v_series WHERE state = 'GATHERING'"):
            d.clock.pass_time(next(steps, 0))
        return condition()

    wait_for(arrived, what="all files")
    return wait_for(condition_in_time, what=what)


def ended(d, count=1):
    """Returns the rows of the jobs, after that many have ended."""
    def enough():
        rows = [row for row in d.jobs() if row["state"] in ("DONE", "EMPTY", "FAILED", "CANCELLED")]
        return len(rows) >= count and rows

    return completing(d, enough, f"{count} jobs")


def configured(d, rules=None, pipeline=None):
    """Replaces the rules of the daemon's configuration, and options of the pipeline."""
    text = d.config.read_text()
    if rules is not None:
        head, _, tail = text.partition("rules = (")
        text = f"{head}rules = ( {rules} );{tail.partition(');')[2]}"
    if pipeline is not None:
        text = text.replace('name = "head-ct";', f'name = "head-ct"; {pipeline}')
    d.config.write_text(text)
    return d


def decided(d, state, revision=1):
    """Returns the row of the only series, after this revision has its decision."""
    sql = "SELECT * FROM v_series WHERE state <> 'GATHERING' AND revision >= ?"
    (row,) = completing(d, lambda: d.query(sql, revision), f"revision {revision}")
    assert (row["state"], row["revision"]) == (state, revision), dict(row)
    return row


def head(tmp_path, announced=False):
    """Returns slices from the bottom upwards, with or without their number in the headers."""
    images = {path: pydicom.dcmread(path) for path in phantom(tmp_path / "series", "--size", f"32x32x{SLICES}")}
    for path, image in images.items():
        if not announced:
            del image.ImagesInAcquisition
            image.save_as(path)
    return sorted(images, key=lambda path: images[path].ImagePositionPatient[2])


def cut(path, to, keep):
    """Returns as much of the file as a truncated copy has."""
    to.write_bytes(path.read_bytes()[:keep])
    return to


def events(d, kind):
    return [row["detail"] for row in d.query("SELECT detail FROM v_events WHERE kind = ? ORDER BY event", kind)]


# ------------------------------------------------------------------------------------------------ completeness


@pytest.mark.parametrize("announced", [False, True], ids=["", "announced"])
def test_a_damaged_file_refuses_its_series_until_replaced(daemon, tmp_path, announced):
    """A named damaged file has priority over the counts of headers."""
    files = head(tmp_path, announced)
    d = daemon().start()
    cut(files[-1], d.inbox / "last.dcm", -300)
    put(files[:-1], d.inbox)
    row = decided(d, "REFUSED")
    assert (row["code"], row["quarantined"], row["instances"], row["jobs"]) == ("INCOMPLETE_SERIES", 1, SLICES - 1, 0)
    assert "last.dcm" not in row["incomplete"] and "--accept-missing" in row["incomplete"]
    assert "FILE_TRUNCATED" in row["incomplete"] and row["message"] == row["incomplete"]
    assert "1 damaged or not whole" in row["evidence"]
    (file,) = d.query("SELECT * FROM v_quarantine")
    assert (file["series_uid"], file["lacking"], file["path"]) == (row["series_uid"], 1, row["file_a"])
    assert file["sop_instance_uid"] == pydicom.dcmread(files[-1]).SOPInstanceUID
    assert f"{file['sop_instance_uid']}, quarantined file {file['quarantine']} (FILE_TRUNCATED)" in row["incomplete"]
    assert "last.dcm" not in d.log.read_text()
    shutil.copy(files[-1], d.inbox / "again.dcm")
    (job,) = ended(d)
    row = decided(d, "SETTLED", revision=2)
    assert (job["state"], row["code"], row["incomplete"], row["quarantined"]) == ("DONE", "", "", 0)
    assert d.query("SELECT lacking FROM v_quarantine")[0][0] == 0


def test_a_late_damaged_file_refuses_its_series(daemon, tmp_path):
    """The series was completed without the damaged file. Its name now refuses the series."""
    files = head(tmp_path)
    d = daemon().start()
    put(files[:-1], d.inbox)
    ended(d)
    cut(files[-1], d.inbox / "last.dcm", -300)
    assert decided(d, "REFUSED", revision=2)["code"] == "INCOMPLETE_SERIES"
    shutil.copy(files[-1], d.inbox / "again.dcm")
    old, new = ended(d, 2)
    assert decided(d, "SETTLED", revision=3)["code"] == ""
    assert (old["superseded_by"], new["state"], new["revision"]) == (new["job"], "DONE", 3)


def test_a_damaged_copy_of_a_good_file_is_ignored(daemon, tmp_path):
    files = head(tmp_path)
    d = daemon().start()
    put(files, d.inbox)
    cut(files[3], d.inbox / "half.dcm", -300)
    (job,) = ended(d)
    wait_for(lambda: d.query("SELECT * FROM v_quarantine"), what="the quarantine")
    row = decided(d, "SETTLED")
    assert (job["state"], row["quarantined"], row["incomplete"]) == ("DONE", 0, "")


@pytest.mark.parametrize("received", [900, -300], ids=["header", "pixels"])
def test_an_aborted_c_store_makes_its_series_incomplete(daemon, tmp_path, received):
    files = head(tmp_path)
    d = daemon(dicom=PEERS).start()
    last = pydicom.dcmread(files[-1]).SOPInstanceUID
    with associated(d.port) as peer:
        for path in files[:-1]:
            assert peer.store(data_set_of(path), pydicom.dcmread(path).SOPInstanceUID) == SUCCESS
        peer.begin_store(last)
        peer.send(data_pdu(1, 0, data_set_of(files[-1])[:received]))
        peer.reset()
    wait_for(lambda: d.query("SELECT * FROM v_quarantine"), what="the note of the instance")
    row = decided(d, "REFUSED")
    assert (row["code"], row["quarantined"]) == ("INCOMPLETE_SERIES", 1)
    assert last in row["message"] and "the sender broke the association" in row["message"]
    (file,) = d.query("SELECT * FROM v_quarantine")
    assert (file["code"], file["path"], file["sop_instance_uid"]) == ("NOT_RECEIVED", "", last)
    assert file["original_path"] == f"scu:PYNETDICOM/{last}"
    assert not list((d.root / "quarantine").rglob("*.dcm")) and not list((d.root / "incoming").iterdir())
    storescu(d.port, files[-1])
    assert ended(d)[0]["state"] == "DONE"
    assert decided(d, "SETTLED", revision=2)["quarantined"] == 0


@pytest.mark.parametrize("received", [2, 64])
@pytest.mark.parametrize("earlier", ["running", "done"])
def test_an_instance_without_a_header_changes_no_series(daemon, tmp_path, received, earlier):
    """A C-STORE of another series that ends before its Series Instance UID arrived."""
    files = head(tmp_path)
    (other, *_) = phantom(tmp_path / "other", "--size", "32x32x3", "--seed", "9")
    d = daemon(dicom=PEERS).start()
    with associated(d.port) as peer:
        for path in files:
            assert peer.store(data_set_of(path), pydicom.dcmread(path).SOPInstanceUID) == SUCCESS
        if earlier == "done":
            assert ended(d)[0]["state"] == "DONE"
        peer.begin_store("1.2.3.4")
        peer.send(data_pdu(1, 0, data_set_of(other)[:received]))
        peer.reset()
    (file,) = wait_for(lambda: d.query("SELECT * FROM v_quarantine"), what="the note of the instance")
    assert (file["code"], file["series_uid"], file["sop_instance_uid"]) == ("NOT_RECEIVED", "", "1.2.3.4")
    (job,) = ended(d)
    row = decided(d, "SETTLED")
    assert (job["state"], row["revision"], row["quarantined"], row["jobs"]) == ("DONE", 1, 0, 1)


def ended_series(d, count):
    def found():
        rows = d.query("SELECT * FROM v_series WHERE state IN ('SETTLED', 'REFUSED')")
        return rows if len(rows) == count else None
    return wait_for(found, what="the end of both series")


def test_a_refused_c_store_makes_its_series_incomplete(daemon, tmp_path):
    """The refusal was sent to the peer. The series stays incomplete until the instance is sent again."""
    files = head(tmp_path)
    d = daemon(dicom=PEERS).start()
    with associated(d.port) as peer:
        for path in files[:-1]:
            assert peer.store(data_set_of(path), pydicom.dcmread(path).SOPInstanceUID) == SUCCESS
        assert peer.store(data_set_of(files[-1]), "1.2.3") == MISMATCH
    wait_for(lambda: d.query("SELECT * FROM v_quarantine"), what="the note of the instance")
    row = decided(d, "REFUSED")
    assert row["code"] == "INCOMPLETE_SERIES" and "COMMAND_MISMATCH" in row["message"]
    storescu(d.port, files[-1])
    assert decided(d, "SETTLED", revision=2)["quarantined"] == 0
    ended(d)


def test_a_c_store_during_paused_reception(daemon, tmp_path):
    """The header of a refused instance names its incomplete series. Other series of the association are not affected."""
    files = head(tmp_path)
    others = phantom(tmp_path / "other", "--size", "32x32x8", "--seed", "9")
    d = daemon(dicom=PEERS).start()
    text, last = d.config.read_text(), pydicom.dcmread(files[-1]).SOPInstanceUID

    def reload(free):
        before = len(events(d, "RELOAD"))
        d.config.write_text(text.replace("min_free_mib = 1;", f"min_free_mib = {free};"))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(events(d, "RELOAD")) > before, what="the reload")

    with associated(d.port) as peer:
        def store(path):
            return peer.store(data_set_of(path), pydicom.dcmread(path).SOPInstanceUID)

        assert [store(path) for path in files[:-1] + others] == [SUCCESS] * (SLICES - 1 + len(others))
        reload("1e9")
        wait_for(lambda: store(files[0]) == OUT_OF_RESOURCES, what="the pause")
        assert store(files[-1]) == OUT_OF_RESOURCES
    wait_for(lambda: d.query("SELECT * FROM v_quarantine"), what="the note of the instance")
    reload("1")
    rows = {row["series_uid"]: row for row in ended_series(d, 2)}
    row, other = (rows[pydicom.dcmread(path).SeriesInstanceUID] for path in (files[0], others[0]))
    assert (row["state"], row["code"], row["quarantined"]) == ("REFUSED", "INCOMPLETE_SERIES", 1)
    assert last in row["message"] and "reception was paused or the disk was low" in row["message"]
    assert (other["state"], other["revision"], other["quarantined"]) == ("SETTLED", 1, 0)
    storescu(d.port, files[-1])
    wait_for(lambda: {row["state"] for row in d.query("SELECT * FROM v_series")} == {"SETTLED"}, what="both series")
    assert {row["quarantined"] for row in d.query("SELECT * FROM v_series")} == {0}


def test_missing_slices_are_accepted_by_command(daemon, tmp_path):
    files = head(tmp_path)
    d = daemon().start()
    cut(files[-1], d.inbox / "last.dcm", -300)
    put(files[:-1], d.inbox)
    uid = decided(d, "REFUSED")["series_uid"]
    plain = d.ctl("complete", uid, check=False)
    assert plain.returncode == PARTIAL and "--accept-missing" in plain.stderr
    assert "complete without the missing instances" in d.ctl("complete", "--accept-missing", uid).stdout
    (job,) = ended(d)
    row = decided(d, "SETTLED", revision=2)
    assert (job["state"], row["quarantined"], row["incomplete"]) == ("DONE", 1, "")
    user = getpass.getuser()
    assert row["missing_accepted_by"].split()[0] == user
    assert f"taken as it is by {user}" in row["evidence"]
    (event,) = events(d, "MISSING_ACCEPTED")
    assert event.startswith(user) and "accepts the missing instances" in event
    shutil.copy(files[-1], d.inbox / "again.dcm")
    assert decided(d, "SETTLED", revision=3)["missing_accepted_by"] == ""
    ended(d, 2)


def test_slices_missing_by_header_counts(daemon, tmp_path):
    d = daemon().start()
    put(phantom(tmp_path / "series", "--series", "ct-end-missing-count"), d.inbox)
    row = decided(d, "REFUSED")
    assert row["code"] == "INCOMPLETE_SERIES" and row["incomplete"] and row["quarantined"] == 0
    d.ctl("complete", "--accept-missing", row["series_uid"])
    assert ended(d)[0]["state"] in ("DONE", "EMPTY")
    assert decided(d, "SETTLED", revision=2)["missing_accepted_by"]


def test_unsent_temporal_positions(daemon, tmp_path):
    """Series with numbered temporal positions are incomplete. Others are accepted with a note."""
    d = configured(daemon(), '{ %s stacks = "first"; }' % MR).start()
    put(phantom(tmp_path / "some", "--series", "fmri-some"), d.inbox)
    (job,) = ended(d)
    row = decided(d, "SETTLED")
    assert (row["code"], row["temporal_positions"], row["announced_temporal_positions"]) == ("", 3, 16)
    assert "; 3 of 16 temporal positions" in row["evidence"]
    assert "3 of 16 temporal positions are there" in job["note"]
    assert "temporal positions" in d.ctl("explain", row["series_uid"]).stdout
    put(phantom(tmp_path / "lacking", "--series", "mr-time-volume-missing"), d.inbox / "lacking")
    (row,) = completing(d, lambda: d.query("SELECT * FROM v_series WHERE state = 'REFUSED'"), "the refusal")
    assert (row["code"], row["temporal_positions"], row["announced_temporal_positions"]) == ("INCOMPLETE_SERIES", 3, 4)
    assert "(0020,0100) 4" in row["incomplete"] and "--accept-missing" in row["incomplete"]
    d.ctl("complete", "--accept-missing", row["series_uid"])
    ended(d, 2)


# ------------------------------------------------------------------------------------------------ size limits


@pytest.mark.parametrize("limit,higher,why", [
    ("max_instances = 11;", "max_instances = 12;", "has 12 instances, and series.max_instances is 11: raise it"),
    ("max_mib = 1.0;", "max_mib = 2.0;", r"MiB, and series.max_mib is 1.0: raise it"),
])
def test_a_series_over_the_size_limit_is_stored_and_refused(daemon, tmp_path, limit, higher, why):
    d = daemon(dicom=PEERS)
    d.config.write_text(d.config.read_text().replace("series = {", f"series = {{ {limit}"))
    d.start()
    size = "32x32x12" if "instances" in limit else "256x256x12"  # 1.5 MiB of pixels
    large = phantom(tmp_path / "large", "--size", size)
    storescu(d.port, *large)  # each response is success
    storescu(d.port, *phantom(tmp_path / "small", "--size", "32x32x11", "--seed", "2"))
    (job,) = ended(d)
    assert job["state"] == "DONE"
    (row,) = completing(d, lambda: d.query("SELECT * FROM v_series WHERE state = 'REFUSED'"), "the refusal")
    uid = row["series_uid"]
    assert uid != job["series_uid"] and row["code"] == "SERIES_TOO_LARGE"
    assert uid in row["message"] and why in row["message"]
    stored = d.query("SELECT path FROM v_instances WHERE series_uid = ?", uid)
    assert len(stored) == 12 and all((d.root / path).exists() for (path,) in stored)
    assert not d.query("SELECT * FROM v_quarantine")
    assert "SERIES_TOO_LARGE" in d.ctl("explain", uid).stdout
    refused = d.ctl("submit", "--pipeline", "head-ct", uid, check=False)
    assert refused.returncode == PARTIAL and "SERIES_TOO_LARGE" in refused.stdout + refused.stderr
    d.ctl("complete", uid)
    wait_for(lambda: len(d.query("SELECT 1 FROM v_events WHERE series_uid = ? AND to_state = 'REFUSED'", uid)) == 2,
             what="the same judgement again")
    d.config.write_text(d.config.read_text().replace(limit, higher))
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: events(d, "RELOAD"), what="the reload")
    d.ctl("complete", uid)
    d.wait_jobs(2, states=("DONE",))


# ------------------------------------------------------------------------------------------------ selection of
# volumes


MR = 'match = { modality = "MR"; }; pipeline = "head-ct";'


def test_many_volumes_get_jobs_only_if_selected(daemon, tmp_path):
    d = configured(daemon(), "{ %s }" % MR).start()
    put(phantom(tmp_path / "series", "--series", "mr-temporal", "--volumes", "12"), d.inbox)
    row = decided(d, "SETTLED")
    assert (row["code"], row["accepted_stacks"], row["jobs"]) == ("TOO_MANY_STACKS", 12, 0)
    assert "12 volumes" in row["message"] and "`stacks`" in row["message"]
    assert "Temporal Position" in row["split_by"] and f"12 stacks by {row['split_by']}" in row["evidence"]
    assert events(d, "TOO_MANY_STACKS") == [row["message"]]
    d.wait_log("event=series.too_many_stacks")
    configured(d, '{ %s stacks = "*1"; }' % MR)
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: events(d, "RELOAD"), what="the reload")
    d.ctl("complete", row["series_uid"])
    jobs = ended(d, 2)
    row = decided(d, "SETTLED", revision=2)
    assert (row["code"], row["jobs"]) == ("", 2)
    assert sorted(job["stack"] for job in jobs) == ["time 1", "time 11"]


@pytest.mark.parametrize("stacks,wanted", [
    ("all", list(range(1, 13))), ("first", [1]), ("last", [12]), ("time [45]", [4, 5]), ("b0", []), ("nothing", []),
], ids=str)
def test_volumes_selected_by_a_rule(daemon, tmp_path, stacks, wanted):
    d = configured(daemon(), '{ %s stacks = "%s"; }' % (MR, stacks)).start()
    put(phantom(tmp_path / "series", "--series", "mr-temporal", "--volumes", "12"), d.inbox)
    row = decided(d, "SETTLED")
    assert (row["code"], row["jobs"]) == ("" if wanted else "NO_RULE", len(wanted))
    assert {job["stack"] for job in d.jobs()} == {f"time {number}" for number in wanted}
    assert bool(events(d, "NO_RULE")) == (not wanted)
    assert not wanted or ended(d, len(wanted))


def test_the_volumes_of_an_ae_title(daemon, tmp_path):
    titles = 'titles = ( { ae_title = "FIRST"; pipeline = "head-ct"; stacks = "first"; } );'
    d = daemon(dicom=PEERS + titles, quiet=600.0).start()
    files = phantom(tmp_path / "series", "--series", "mr-temporal", "--volumes", "12")
    storescu(d.port, *files, called="FIRST")
    d.ctl("complete", pydicom.dcmread(files[0]).SeriesInstanceUID)
    (job,) = ended(d)
    assert job["stack"] == "time 1" and decided(d, "SETTLED")["jobs"] == 1


# ------------------------------------------------------------------------------------------------ one series or
# several


def test_a_mosaic_is_no_slice(daemon, tmp_path):
    d = configured(daemon(dicom=PEERS), "{ %s }" % MR).start()
    storescu(d.port, *phantom(tmp_path / "series", "--series", "siemens-mosaic"))
    row = decided(d, "REFUSED")
    assert (row["code"], row["jobs"]) == ("MOSAIC", 0) and row["file_a"]


@needs_shared
def test_a_real_mosaic(daemon):
    d = configured(daemon(dicom=PEERS), "{ %s }" % MR).start()
    files = sorted((SHARED / "mr-mosaic").rglob("*.dcm"))
    storescu(d.port, *files)
    series = {pydicom.dcmread(path).SeriesInstanceUID for path in files}
    rows = completing(d, lambda: (rows := d.query("SELECT * FROM v_series WHERE state <> 'GATHERING'"))
                      and len(rows) == len(series) and rows, "all series")
    assert {(row["state"], row["code"], row["jobs"]) for row in rows} == {("SETTLED", "", 2)}


@pytest.mark.parametrize("kind,code", [
    ("ct-two-patients", "MIXED_PATIENTS"), ("ct-two-studies", "MIXED_STUDIES"),
    ("ct-two-frames", "MIXED_FRAMES_OF_REFERENCE"), ("pet-ct-one-series", "MIXED_MODALITIES"),
])
def test_mixed_series_are_refused(daemon, tmp_path, kind, code):
    files = phantom(tmp_path / "series", "--series", kind)
    d = configured(daemon(dicom=PEERS), '{ pipeline = "head-ct"; }').start()
    storescu(d.port, *files)
    row = decided(d, "REFUSED")
    assert (row["code"], row["jobs"]) == (code, 0) and row["file_a"] and row["file_b"]
    for image in map(pydicom.dcmread, files):
        assert str(image.PatientName) not in row["message"] and image.PatientID not in row["message"].split()


def test_a_late_slice_of_another_patient(daemon, tmp_path):
    """The finished job keeps its results, marked as those of an obsolete revision."""
    files = head(tmp_path)
    d = daemon(dicom=PEERS).start()
    storescu(d.port, *files)
    (job,) = ended(d)
    late = pydicom.dcmread(files[-1])
    late.SOPInstanceUID = late.file_meta.MediaStorageSOPInstanceUID = late.SOPInstanceUID + ".9"
    late.PatientID, late.PatientName = "other", "Somebody^Else"
    late.ImagePositionPatient[2] += late.ImagePositionPatient[2] - pydicom.dcmread(files[-2]).ImagePositionPatient[2]
    late.save_as(tmp_path / "late.dcm")
    storescu(d.port, tmp_path / "late.dcm")
    row = decided(d, "REFUSED", revision=2)
    assert (row["code"], row["jobs"]) == ("MIXED_PATIENTS", 0) and "Somebody" not in row["message"]
    (job,) = d.jobs()
    assert (job["state"], job["revision"], job["superseded_by"]) == ("DONE", 1, None)
    assert d.ctl("retry", str(job["job"]), check=False).returncode != 0


def test_skipped_files_are_reported(daemon, tmp_path):
    d = daemon().start()
    put(phantom(tmp_path / "series", "--series", "ct-scout"), d.inbox)
    (job,) = ended(d)
    row = decided(d, "SETTLED")
    assert (row["code"], row["passed_over"], row["accepted_stacks"]) == ("", 1, 1)
    assert "1 image passed over (LOCALIZER)" in row["evidence"]


@pytest.mark.parametrize("kind,option,code", [
    ("ct-scout-alone", "", "LOCALIZER"), ("ct-mip-alone", "", "DERIVED_IMAGE"), ("ct-mip-alone", "derived = true;", ""),
    ("ct-resent", "", "DUPLICATE_POSITION"), ("ct-resent", 'duplicates = "newest";', ""),
])
def test_pipeline_options_for_derived_images_and_duplicates(daemon, tmp_path, kind, option, code):
    d = configured(daemon(), pipeline=option).start()
    put(phantom(tmp_path / "series", "--series", kind), d.inbox)
    if code:
        row = decided(d, "REFUSED")
        assert (row["code"], row["jobs"]) == (code, 0)
        return
    (job,) = ended(d)
    assert job["state"] in ("DONE", "EMPTY")
    assert decided(d, "SETTLED")["code"] == ""


# ------------------------------------------------------------------------------------------------ pipelines with
# different options


def with_a_second(d, option, modality="CT"):
    """Adds a pipeline "lenient" with an option that head-ct lacks, and rules for both."""
    text = d.config.read_text()
    head, _, tail = text.partition("pipelines = (")
    block, _, rest = tail.partition(" );\nrules")
    second = block.replace('name = "head-ct";', f'name = "lenient"; {option}')
    d.config.write_text(f"{head}pipelines = ({block},{second} );\nrules{rest}")
    return configured(d, '{ match = { modality = "CT"; }; pipeline = "head-ct"; },'
                         '{ match = { modality = "%s"; }; pipeline = "lenient"; }' % modality).start()


def test_pipelines_have_their_own_volumes(daemon, tmp_path):
    """Reformats in a series of slices: one pipeline uses them as a volume, the other skips them, and both have their
    results."""
    d = with_a_second(daemon(), "derived = true;")
    put(phantom(tmp_path / "series", "--series", "ct-mpr-beside"), d.inbox)
    jobs = ended(d, 3)
    assert sorted((job["pipeline"], job["stack"]) for job in jobs) == [
        ("head-ct", ""), ("lenient", "axial"), ("lenient", "coronal")]
    assert {job["state"] for job in jobs} <= {"DONE", "EMPTY"}
    row = decided(d, "SETTLED")
    assert (row["code"], row["accepted_stacks"], row["passed_over"]) == ("", 3, 6)
    assert {stack["stack"]: stack["options"] for stack in d.query("SELECT * FROM v_stacks")} == {
        "": "", "derived": "", "axial": "derived", "coronal": "derived"}


def test_one_pipeline_refuses_a_series_that_another_accepts(daemon, tmp_path):
    d = with_a_second(daemon(), 'duplicates = "newest";')
    put(phantom(tmp_path / "series", "--series", "ct-resent"), d.inbox)
    (job,) = ended(d)
    assert (job["pipeline"], job["state"]) == ("lenient", "DONE")
    row = decided(d, "SETTLED")
    assert (row["code"], row["jobs"], row["accepted_stacks"]) == ("DUPLICATE_POSITION", 1, 1)
    assert row["message"].startswith("Pipeline head-ct makes no job of it: ") and "lie at the same position" in row["message"]
    assert "none for pipeline head-ct (DUPLICATE_POSITION)" in row["evidence"]
    assert events(d, "DUPLICATE_POSITION") == [row["message"]]
    d.wait_log("event=series.no_job")


def test_options_of_pipelines_for_other_series_have_no_effect(daemon, tmp_path):
    """A pipeline for MR accepts projections. CT series must not get jobs for projections, because these would fail."""
    d = with_a_second(daemon(), "derived = true;", modality="MR")
    put(phantom(tmp_path / "series", "--series", "ct-mip-alone"), d.inbox)
    row = decided(d, "REFUSED")
    assert (row["code"], row["jobs"], row["passed_over"]) == ("DERIVED_IMAGE", 0, 8)


# ------------------------------------------------------------------------------------- temporary failures of the
# machine


def test_want_of_descriptors_is_no_fault_of_the_series(daemon, tmp_path):
    """The files are read again as soon as the receiver can open files."""
    files = head(tmp_path)
    d = daemon().start()
    put(files, d.inbox)
    wait_for(lambda: len(d.query("SELECT 1 FROM v_instances")) == len(files), what="the instances")
    (intake,) = d.children("intake")
    usual = resource.prlimit(intake, resource.RLIMIT_NOFILE)
    resource.prlimit(intake, resource.RLIMIT_NOFILE, (3, usual[1]))
    completing(d, lambda: "inspection.put_off" in d.log.read_text(), "the inspection")
    assert d.query("SELECT state FROM v_series")[0][0] == "GATHERING"
    resource.prlimit(intake, resource.RLIMIT_NOFILE, usual)
    decided(d, "SETTLED")
    assert ended(d)[0]["state"] == "DONE"
