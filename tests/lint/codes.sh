#!/usr/bin/env bash
# docs/codes.md lists every code that the sources give, and none that nobody gives.
#   codes.sh ROOT
set -uo pipefail
cd "$1"
given=$(grep -rhoE '"[A-Z][A-Z0-9_]{3,}"' \
    --include='*.c' --include='*.cc' --include='*.h' service dicom db | tr -d '"' | sort -u)
listed=$(grep -oE '^\| `?[A-Z][A-Z0-9_]+`? \|' docs/codes.md | tr -d '|` ' | sort -u)
unused=$(comm -13 <(printf '%s\n' "$given") <(printf '%s\n' "$listed"))
if [[ -n $unused ]]; then
    printf 'docs/codes.md lists codes that no source gives:\n%s\n' "$unused"
    exit 1
fi
# Faults and quarantines are given through these calls; what they give must be listed.
missing=$(comm -23 <(grep -rhoE '(fault_set|dicom_fault_set|fail_with|refuse|reject|quarantine)[a-z_]*\([^"]*"[A-Z][A-Z0-9_]+"' \
    --include='*.c' --include='*.cc' service dicom db | grep -oE '"[A-Z][A-Z0-9_]+"' | tr -d '"' | sort -u) \
    <(printf '%s\n' "$listed"))
if [[ -n $missing ]]; then
    printf 'docs/codes.md does not list:\n%s\n' "$missing"
    exit 1
fi
