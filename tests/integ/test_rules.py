"""Rules with attributes, contrast and geometry: jobs of the daemon, and output of explain."""

import json
import re
import shutil

import pydicom
import pytest
from conftest import PEERS, drop, phantom, run_program, storescu, wait_for

CONFIG = 5
CONDITIONS = [
    '{ tag = "StudyDescription"; glob = "*Schädel*"; }',
    '{ tag = "ProtocolName"; regex = "^(Kopf|Hals) +nativ$"; }',
    '{ tag = "ImageType"; is = [ "LOCALIZER", "axial" ]; }',
    '{ tag = "KVP"; range = [ 90.0, 120.0 ]; }',
    '{ tag = "(0029,100C)"; creator = "NOCTULE TEST"; range = [ 7.0, 7.0 ]; }',
    '{ tag = "InterventionDrugName"; present = false; }',
    '{ tag = "PatientID"; glob = "STUDY-*"; }',
    '{ tag = "StationName"; glob = "*OLD*"; not = true; }',
]
MATCH = 'orientation = "axial"; spacing = [ 0.1, 30.0 ]; contrast = true; attributes = ( %s );' % ", ".join(CONDITIONS)
SECRET = "SECRET-4711"


def fitting(dataset):
    dataset.SpecificCharacterSet = "ISO_IR 100"
    dataset.StudyDescription = "CT Schädel"
    dataset.ProtocolName = "kopf  NATIV"
    dataset.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    dataset.KVP = "120"
    dataset.ContrastBolusAgent = "Iomeron"
    dataset.PatientID = "STUDY-1"
    dataset.StationName = "NEW1"
    block = dataset.private_block(0x0029, "NOCTULE TEST", create=True)
    block.add_new(0x0C, "IS", "7")


# Changes to a matching series, with the reason that explain gives. None: the series still matches.
CHANGES = {
    "fits": (lambda d: None, None),
    "umlaut": (lambda d: setattr(d, "StudyDescription", "CT Schadel"), 'StudyDescription "CT Schadel" is not like'),
    "regex": (lambda d: setattr(d, "ProtocolName", "Kopf KM"), 'ProtocolName "Kopf KM" is not matched by'),
    "absent": (lambda d: delattr(d, "KVP"), "there is no KVP"),
    "multi-valued": (lambda d: setattr(d, "ImageType", ["ORIGINAL", "PRIMARY"]), "is not \"LOCALIZER\" or \"axial\""),
    "private": (lambda d: d.private_block(0x0029, "NOCTULE TEST").add_new(0x0C, "IS", "8"), '(0029,100C) "8" is not within'),
    "other creator": (lambda d: setattr(d[0x0029, 0x0010], "value", "SOMEBODY"), "there is no (0029,100C)"),
    "not": (lambda d: setattr(d, "StationName", "OLD1"), 'StationName "OLD1" is like'),
    "not, absent": (lambda d: delattr(d, "StationName"), None),
    "contrast": (lambda d: setattr(d, "ContrastBolusAgent", ""), "there is no contrast agent"),
    "present": (lambda d: setattr(d, "InterventionDrugName", "X"), "there is a InterventionDrugName"),
    "identity": (lambda d: setattr(d, "PatientID", SECRET), "PatientID is not like"),
}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Returns the files of each change, by its name."""
    made = {}
    for number, (name, (change, _)) in enumerate(CHANGES.items()):
        files = phantom(tmp_path_factory.mktemp("series"), "--size", "32x32x6", "--seed", str(number + 1))
        for path in files:
            dataset = pydicom.dcmread(path)
            fitting(dataset)
            change(dataset)
            dataset.save_as(path)
        made[name] = files
    return made


def with_match(d, match):
    text = d.config.read_text()
    assert 'match = { modality = "CT"; }' in text
    d.config.write_text(text.replace('match = { modality = "CT"; }', 'match = { modality = "CT"; %s }' % match))


def test_series_by_c_store_are_matched(daemon, series):
    d = daemon(quiet=600.0, dicom=PEERS)
    with_match(d, MATCH)
    d.start()
    for files in series.values():
        storescu(d.port, *files)
    uids = {name: str(pydicom.dcmread(files[0]).SeriesInstanceUID) for name, files in series.items()}

    def completed_rows():
        rows = {row["series_uid"]: row for row in d.query("SELECT * FROM v_series WHERE state <> 'GATHERING'")}
        return rows if set(uids.values()) <= rows.keys() else None

    rows = wait_for(completed_rows, 60, "all series")
    for name, (_, reason) in CHANGES.items():
        row = rows[uids[name]]
        assert (row["jobs"], row["code"]) == ((1, "") if reason is None else (0, "NO_RULE")), name
    without = sum(reason is not None for _, reason in CHANGES.values())
    assert f"no rule for {without} of the settled" in d.ctl("status").stdout

    # Compared values must not be stored anywhere.
    kept = d.log.read_bytes() + b"".join(path.read_bytes() for path in d.root.glob("*.db*"))
    for value in (SECRET, "kopf  NATIV", "Iomeron"):
        assert value.encode() not in kept, value

    # A submission by rules has no such value either. One by pipeline needs no value.
    refused = d.ctl("submit", "--rules", uids["absent"], check=False)
    assert refused.returncode != 0 and "ATTRIBUTES_NOT_KEPT" in refused.stdout + refused.stderr
    assert "is new" in d.ctl("submit", "--pipeline", "head-ct", uids["absent"]).stdout
    told = d.ctl("explain", uids["regex"]).stdout
    assert "ProtocolName" in told and "no: " in told


def test_explain_lists_each_condition(daemon, series):
    d = daemon()
    with_match(d, MATCH)
    for name, (_, reason) in CHANGES.items():
        (told,) = json.loads(d.ctl("explain", "--json", *series[name]).stdout)["series"]
        (rule,) = told["rules"]
        assert rule["matches"] == (reason is None), name
        assert len(rule["conditions"]) == 4 + len(CONDITIONS)
        failing = [condition for condition in rule["conditions"] if not condition["holds"]]
        assert len(failing) == (reason is not None), failing
        assert SECRET not in json.dumps(rule)
        text = re.sub(r"\s+", " ", d.ctl("explain", *series[name]).stdout)
        assert "condition orientation axial: yes" in text
        if reason is not None:
            assert reason in failing[0]["reason"] and reason in rule["reasons"], failing
            assert f"no: {failing[0]['reason']}"[:60] in text


@pytest.mark.parametrize("condition, words", [
    ('{ tag = "StudyDescripton"; glob = "x"; }', '"StudyDescripton" is no attribute of a data set'),
    ('{ tag = "RequestAttributesSequence"; present = true; }', "is a sequence"),
    ('{ tag = "(0029,100C)"; range = [ 1.0, 2.0 ]; }', "give its creator"),
    ('{ tag = "KVP"; regex = "(120"; }', 'REGEX_UNSUPPORTED: "(120": a parenthesis ( is not closed'),
    ('{ tag = "KVP"; regex = "(1)2\\\\1"; }', 'character 5, "\\1": back-references are not supported'),
    ('{ tag = "KVP"; regex = "1(?!4)"; }', 'character 2, "(?": look-around and other groups (?...) are not supported'),
    ('{ tag = "KVP"; range = [ 2.0, 1.0 ]; }', "the lower end 2 is above the upper end 1"),
])
def test_check_config_uses_the_dictionary(daemon, condition, words):
    d = daemon()
    with_match(d, "attributes = ( %s,\n%s );" % (CONDITIONS[0], condition))
    line = d.config.read_text()[:d.config.read_text().index(condition)].count("\n") + 1
    result = run_program("noctule", "check-config", d.config, check=False)
    assert result.returncode == CONFIG
    assert words in result.stderr and f"noctule.conf:{line}: " in result.stderr


# Backtracking or expanding engines never returned for these expressions, or took 2.8 GiB.
EVIL = ["(a|b)*a(a|b){60}c", "(a|b)*a(a|b){999}c"]


def test_long_values_are_compared_in_linear_time(daemon, tmp_path):
    """1,000 characters are compared at once. 1,025 are too many, and the series reports that its rule is undecided."""
    d = daemon(quiet=0.5)
    with_match(d, "attributes = ( %s );" % ", ".join('{ tag = "ImageComments"; regex = "%s"; not = true; }' % regex for regex in EVIL))
    made = {}
    for comment in ("ab" * 500, "ab" * 512 + "a"):
        files = phantom(tmp_path / str(len(comment)), "--size", "32x32x6", "--seed", str(len(comment)))
        for path in files:
            dataset = pydicom.dcmread(path)
            dataset.ImageComments = comment
            dataset.save_as(path)
        made[len(comment)] = str(dataset.SeriesInstanceUID)
        drop(files, d.inbox / str(len(comment)))
    d.start()
    rows = wait_for(lambda: len(r := d.query("SELECT * FROM v_series WHERE state = 'SETTLED'")) == 2 and r, 60, "both series")
    rows = {row["series_uid"]: row for row in rows}
    assert (rows[made[1000]]["jobs"], rows[made[1000]]["code"]) == (1, "")
    undecided = rows[made[1025]]
    assert (undecided["jobs"], undecided["code"]) == (0, "RULE_UNDECIDED")
    assert "pipeline head-ct" in undecided["message"] and "ImageComments is longer than 1024 bytes" in undecided["message"]
    assert "ImageComments cannot be compared for pipeline head-ct" in undecided["evidence"]
    submitted = d.ctl("submit", "--pipeline", "head-ct", made[1025])
    assert "is new" in submitted.stdout


def test_a_configuration_is_passed_on_unchanged(daemon, tmp_path):
    d = daemon()
    with_match(d, MATCH)
    printed = run_program("noctule", "check-config", "--print", d.config).stdout
    (tmp_path / "again.conf").write_text(printed)
    assert run_program("noctule", "check-config", "--print", tmp_path / "again.conf").stdout == printed


def test_a_rule_compares_the_way_of_reception(daemon, tmp_path):
    """By inbox: its name. By C-STORE: the calling and called AE titles."""
    d = daemon(quiet=600.0, dicom=PEERS)
    d.config.write_text(d.config.read_text().replace('{ path = "inbox";', '{ name = "ct"; path = "inbox";'))
    with_match(d, 'inbox = "ct";')
    d.start()
    sent, dropped = (phantom(tmp_path / name, "--size", "32x32x6", "--seed", seed) for name, seed in (("a", "1"), ("b", "2")))
    storescu(d.port, *sent)
    for path in dropped:
        shutil.copy(path, d.inbox / path.name)
    uids = [str(pydicom.dcmread(files[0]).SeriesInstanceUID) for files in (sent, dropped)]

    def completed_rows():
        rows = {row["series_uid"]: row for row in d.query("SELECT * FROM v_series WHERE state <> 'GATHERING'")}
        return rows if set(uids) <= rows.keys() else None

    rows = wait_for(completed_rows, 60, "both series")
    assert [(rows[uid]["jobs"], rows[uid]["code"]) for uid in uids] == [(0, "NO_RULE"), (1, "")]
    assert [rows[uid]["inbox"] for uid in uids] == ["", str(d.inbox)]
    told = d.ctl("explain", uids[0]).stdout
    assert "the inbox is unknown, not ct" in re.sub(r"\s+", " ", told)
    assert "C-STORE from" in told
    for what in (uids[1], d.inbox / dropped[0].name):
        told = re.sub(r"\s+", " ", d.ctl("explain", what).stdout)
        assert "rule 1 head-ct: yes" in told and f"received by inbox ct ({d.inbox})" in told
    # For files elsewhere the way of reception is unknown.
    (told,) = json.loads(d.ctl("explain", "--json", *dropped).stdout)["series"]
    assert told["inbox"] == "" and not told["rules"][0]["matches"]


def test_which_rule_made_a_job_and_the_one_for_all_others(daemon, tmp_path):
    d = daemon(quiet=600.0)
    text = d.config.read_text()
    begin = text.index("rules = (")
    d.config.write_text(text[:begin] + """rules = ( { name = "thin"; match = { modality = "CT"; min_slices = 10; }; pipeline = "head-ct"; },
        { match = { modality = "CT"; max_slices = 7; }; pipeline = "head-ct"; },
        { name = "rest"; match = { modality = "CT"; }; otherwise = true; pipeline = "head-ct"; priority = 5; } );
""" + text[text.index(";", text.index(");", begin)) + 1:])
    d.start()
    expected = {12: "thin", 6: "rule-2", 8: "rest"}  # by number of slices
    uids = {}
    for slices in expected:
        files = phantom(tmp_path / str(slices), "--size", f"32x32x{slices}", "--seed", str(slices))
        uids[slices] = str(pydicom.dcmread(files[0]).SeriesInstanceUID)
        drop(files, d.inbox / str(slices))
    d.wait_jobs(3)
    by_uid = {row["series_uid"]: row for row in d.jobs()}
    assert {slices: by_uid[uid]["rule"] for slices, uid in uids.items()} == expected
    assert {slices: by_uid[uid]["priority"] for slices, uid in uids.items()} == {12: 0, 6: 0, 8: 5}
    assert re.search(r"^rule +rest$", d.ctl("show", str(by_uid[uids[8]]["job"])).stdout, re.MULTILINE)
    told = re.sub(r"[ \n]+", " ", d.ctl("explain", uids[12]).stdout)
    assert "rule 1, thin head-ct: yes" in told and "rule 3, rest head-ct: no: otherwise: rule 1 matches" in told
    (told,) = json.loads(d.ctl("explain", "--json", uids[8]).stdout)["series"]
    assert [(rule["rule"], rule["matches"]) for rule in told["rules"]] == [("thin", False), ("", False), ("rest", True)]
    assert [job["pipeline"] for job in told["jobs"]] == ["head-ct"]

    d.ctl("retry", "--force", str(by_uid[uids[8]]["job"]))
    d.wait_jobs(4)
    d.ctl("submit", "--force", "--pipeline", "head-ct", uids[12])
    d.wait_jobs(5)
    assert [row["rule"] for row in d.jobs()][3:] == ["rest", ""]


def test_attributes_in_functional_groups(daemon, tmp_path):
    """In an enhanced image each volume is compared by its own frames: one of two echoes gets a job."""
    files = phantom(tmp_path / "a", "--series", "uih-enhanced")
    d = daemon(quiet=0.5)
    d.config.write_text(d.config.read_text().replace('match = { modality = "CT"; }', 'match = { modality = "MR"; }'))
    d.config.write_text(d.config.read_text().replace('modality = "MR"; }', """modality = "MR"; attributes = (
        { tag = "EchoTime"; range = [ 10.0, 20.0 ]; }, { tag = "PixelSpacing"; range = [ 0.1, 9.0 ]; } ); }"""))
    (told,) = json.loads(d.ctl("explain", "--json", *files).stdout)["series"]
    (rule,) = told["rules"]
    assert (rule["stacks_asked"], rule["stacks_matching"]) == (2, 1)
    echo, spacing = rule["conditions"][1:]
    assert re.fullmatch(r"it is EffectiveEchoTime in MREchoSequence of frame \d+", echo["note"])
    assert echo["reason"] == 'EchoTime "5" is not within 10 to 20'
    assert spacing == {"condition": "PixelSpacing within 0.1 to 9", "holds": True, "reason": "",
                       "note": "it is PixelSpacing in PixelMeasuresSequence of all frames"}
    assert "it is EffectiveEchoTime in MREchoSequence of frame" in re.sub(r"\s+", " ", d.ctl("explain", *files).stdout)
    d.start()
    drop(files, d.inbox)
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'SETTLED'"), 60, "the series")
    assert [job["stack"] for job in d.jobs()] == ["echo 15 ms"]
