#!/usr/bin/env bash
# Checks that a source uses each code of base/codes.def. unit.base_error compares docs/codes.md with the table.
#   codes.sh ROOT
set -uo pipefail
cd "$1" || exit
listed=$(grep -oE '^CODE\(\w+' base/codes.def | sed 's/CODE(/CODE_/' | sort -u)
given=$(grep -rhoE '\bCODE_[A-Z][A-Z0-9_]+|"[A-Z][A-Z0-9_]{3,}"' \
    --include='*.c' --include='*.cc' --include='*.h' base config service dicom db kernels | sed -E 's/^"(.*)"$/CODE_\1/' | sort -u)
unused=$(comm -23 <(printf '%s\n' "$listed") <(printf '%s\n' "$given"))
if [[ -n $unused ]]; then
    printf 'base/codes.def has codes that no source uses:\n%s\n' "$unused"
    exit 1
fi
