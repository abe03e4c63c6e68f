#!/usr/bin/env bash
# Checks that docs/conformance.md and the sources have the same version, UIDs and statuses, and that it lists the codes of settings
# in reports.
#   conformance.sh ROOT
set -uo pipefail
cd "$1" || exit
statement=docs/conformance.md
failures=0

# compare SUBJECT IN-THE-SOURCES IN-THE-STATEMENT
compare() {
    local difference
    [[ -n $2 ]] || { echo "no $1 found in the sources"; failures=$((failures + 1)); }
    difference=$(diff <(sort -u <<<"$2") <(sort -u <<<"$3"))
    if [[ -n $difference ]]; then
        printf '%s: < only in the sources, > only in %s\n%s\n' "$1" "$statement" "$difference"
        failures=$((failures + 1))
    fi
}

# section NUMBER: prints the text under that heading.
section() {
    awk -v number="$1" '/^#/ { inside = ($2 == number) } inside' "$statement"
}

# rows FILE: prints the UIDs of a table, with ROOT at the start of a row replaced by its value.
rows() {
    local root
    root=$(sed -n 's/^#define ROOT "\(.*\)"$/\1/p' "$1")
    sed -nE 's/^ *\{ROOT( "([0-9.]*)")?,.*/\2/p' "$1" | sed "s/^/$root/"
}

uids() {
    grep -oE '\b(1\.2\.840|2\.25)(\.[0-9]+)+'
}

defined() { # NAMES FILE
    grep -E "^#define ($1) " "$2" | uids
}

compare 'storage classes' "$(rows dicom/value/storage_class.c)" "$(section 2.1.2 | uids)"
compare 'transfer syntaxes' "$(rows dicom/value/transfer_syntax.c)" "$(section 2.1.4 | uids)"
compare 'other SOP classes' "$(defined SEG_SOP_CLASS_UID dicom/objects/seg/seg.h
    defined RTSTRUCT_CLASS_UID dicom/read/annotation/rtstruct.h
    defined 'SR_SOP_CLASS|SR_3D_SOP_CLASS' dicom/objects/sr/sr.h
    defined CAPTURE_SOP_CLASS dicom/objects/pmap/capture.h
    defined PMAP_SOP_CLASS dicom/objects/pmap/pmap.h
    defined 'PICTURE_SOP_CLASS|PICTURE_SINGLE_SOP_CLASS' dicom/objects/picture/picture.h
    defined 'DICOM_FIND_CLASS|DICOM_MOVE_CLASS' dicom/net/scu_query.h
    defined 'DICOM_VERIFICATION_CLASS|DICOM_COMMITMENT_CLASS|DICOM_COMMITMENT_INSTANCE' dicom/net/scp.h)" "$(section 2.1.3 | uids)"
implementation=$(defined UID_IMPLEMENTATION_CLASS dicom/value/uid.h)
for part in 2.2.1 2.3.1; do
    compare "implementation class UID of $part" "$implementation" "$(section $part | uids | grep '^2\.25')"
done
compare 'C-STORE statuses' \
    "$(awk '/^enum dicom_status/, /};/' dicom/net/scp.h | grep -oE '= 0x[0-9A-F]{4}' | cut -c3-)" \
    "$(section 2.2.4 | grep -oE '^\| 0x[0-9A-F]{4}' | cut -c3-)"
reports=$(section 4.2)
while read -r code; do
    grep -qw -- "$code" <<<"$reports" && continue
    echo "section 4.2 of $statement lacks the code $code of reports"
    failures=$((failures + 1))
done < <({ grep -hoE '\{"[A-Za-z0-9_]+", CONCEPT_(OWN|IBSI)_SCHEME' dicom/objects/sr/sr_*.c | cut -d'"' -f2
    sed -nE 's/^(FILTER|INTERPOLATION|AGGREGATION|DIMENSION)\([^"]*"[^"]*", [A-Z]+, "([A-Z0-9_]+)".*/\2/p' base/terms.def; } | sort -u)
compare version "$(sed -nE 's/^project\(.*VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)" \
    "$(sed -nE 's/^Noctule, version ([0-9.]+)\..*/\1/p' "$statement")"
exit $((failures > 0))
