#!/usr/bin/env bash
# Each code of base/codes.def is given by some source; that docs/codes.md lists them is unit.base_error's.
#   codes.sh ROOT
set -uo pipefail
cd "$1" || exit
listed=$(grep -oE '^CODE\(\w+' base/codes.def | sed 's/CODE(/CODE_/' | sort -u)
given=$(grep -rhoE '\bCODE_[A-Z][A-Z0-9_]+|"[A-Z][A-Z0-9_]{3,}"' \
    --include='*.c' --include='*.cc' --include='*.h' base config service dicom db kernels | sed -E 's/^"(.*)"$/CODE_\1/' | sort -u)
unused=$(comm -23 <(printf '%s\n' "$listed") <(printf '%s\n' "$given"))
if [[ -n $unused ]]; then
    printf 'base/codes.def has codes that no source gives:\n%s\n' "$unused"
    exit 1
fi
