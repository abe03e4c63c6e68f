"""Writes dicom/deidentify/attributes.def from two transcriptions of PS3.15 table E.1-1.

    pip download --no-deps idiscore==1.2.0 dicom-anonymizer==2.1.0
    python3 tests/tools/deidentify_table.py idiscore-*.whl dicom_anonymizer-*.whl > dicom/deidentify/attributes.def

idiscore 1.2.0 has the basic profile and all options of September 2024. dicom-anonymizer 2.1.0 has the basic profile of
2026c. Rows of either are kept. Two different basic actions of one attribute stop the script. An option that only the
later edition has is not known here, so its attribute follows the basic profile, which removes more.
"""

import re
import sys
import zipfile

from pydicom.datadict import keyword_for_tag

ACTIONS = {"DUMMY": "D", "EMPTY": "Z", "REMOVE": "X", "UID": "U", "EMPTY_OR_DUMMY": "ZD", "REMOVE_OR_EMPTY": "XZ",
           "REMOVE_OR_DUMMY": "XD", "REMOVE_OR_EMPTY_OR_DUMMY": "XZD", "REMOVE_OR_EMPTY_OR_UID": "XZU"}
GROUPS = {"D_TAGS": "D", "Z_TAGS": "Z", "X_TAGS": "X", "U_TAGS": "U", "Z_D_TAGS": "ZD", "X_Z_TAGS": "XZ",
          "X_D_TAGS": "XD", "X_Z_D_TAGS": "XZD", "X_Z_U_STAR_TAGS": "XZU"}
COLUMNS = ["retain_uid", "retain_device_id", "retain_institution_id", "retain_patient_characteristics",
           "retain_modified_dates", "clean_descriptors"]


def read(path, end):
    with zipfile.ZipFile(path) as wheel:
        name = next(each for each in wheel.namelist() if each.endswith(end))
        return wheel.read(name).decode()


def main():
    parts = re.split(r"\n(\w+) = RawNemaRuleSet", read(sys.argv[1], "_public_dicom.py"))
    rule = re.compile(r'SingleTag\("([0-9a-f]{8})"\),\s*ActionCodes\.(\w+)')
    sets = {name: dict(rule.findall(body)) for name, body in zip(parts[1::2], parts[2::2])}
    later = {}
    exec(read(sys.argv[2], "dicomfields_2026c.py"), later)  # lists of tags
    basic = {tag: ACTIONS[action] for tag, action in sets["basic_profile"].items()}
    old = set(basic)
    for group, action in GROUPS.items():
        for tag in later[group]:
            if len(tag) == 2:  # others are repeating groups, which the code has
                text = "%04x%04x" % tag
                if basic.setdefault(text, action) != action:
                    sys.exit(f"{text}: {basic[text]} and {action}")
    print("""/*
 * attributes.def - PS3.15 table E.1-1: the action of the Basic Application Level Confidentiality Profile per attribute,
 * and its options. tests/tools/deidentify_table.py wrote it, from the editions of September 2024 and 2026c.
 *
 * X removes, Z empties, D writes a dummy value, U maps UIDs; ZD, XZ, XD, XZD and XZU leave a choice to the type of the
 * attribute. Columns of options: UIDs, device, institution, characteristics, modified dates, descriptors; K keeps, C
 * cleans, - has no rule. Rows end in * if only 2026c has them. Repeating groups and private attributes are no rows.
 */
#ifndef PROFILED
#define PROFILED(tag, action, options) /* keyword */
#endif
""")
    for tag in sorted(basic):
        options = "".join({"KEEP": "K", "CLEAN": "C"}.get(sets[c].get(tag), "-") for c in COLUMNS)
        keyword = keyword_for_tag(int(tag, 16))
        print(f'PROFILED(0x{tag}, {basic[tag]}, "{options}") /* {keyword}{"" if tag in old else " *"} */')
    print("#undef PROFILED")


main()
