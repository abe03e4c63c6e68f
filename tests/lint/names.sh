#!/usr/bin/env bash
# Checks names: a static function or a struct tag is defined in one file only (CONTRIBUTING, "Rules"), so that a search
# finds one definition; words follow the glossary; documents name only files that exist.
#   names.sh ROOT
set -uo pipefail
cd "$1" || exit
rooms=(base kernels dicom db config service)
offences=0

# offend RULE LINES: prints the lines as an offence against the rule, if there are any.
offend() {
    [[ -n $2 ]] || return 0
    printf '%s:\n%s\n' "$1" "$2"
    offences=$((offences + 1))
}

sources() {
    find "${rooms[@]}" -name '*.[ch]' -o -name '*.cc' -o -name '*.hh' -o -name '*.cu' -o -name '*.cuh'
}

# twice: reads lines "name file", and prints the names with more than one file, and the files.
twice() {
    sort -u | awk '{ files[$1] = files[$1] " " $2; count[$1]++ }
        END { for (name in count) if (count[name] > 1) print "  " name ":" files[name] }' | sort
}

# shellcheck disable=SC2016 # awk's $
# clang-format puts a function's name at the start of a line, below "static" and its type.
offend 'each of these files has a static function of that name' "$(sources | xargs awk '
    FNR == 1 { is_static = 0 }
    /^static / { is_static = 1 }
    is_static && /^[a-z_0-9]+\(/ && !/^__/ { name = $0; sub(/\(.*/, "", name); print name, FILENAME }
    /^[a-z_0-9]+\(|;$|^}/ { is_static = 0 }' | twice)"
# shellcheck disable=SC2016
offend 'each of these files has a struct of that tag' "$(sources | xargs awk '
    /^(static |typedef )?(const )?struct [a-z_0-9]+ \{/ { sub(/.*struct /, ""); sub(/ \{.*/, ""); print $0, FILENAME }' | twice)"
offend 'cite papers by author and year (docs/references.md)' \
    "$(git grep -niE 'paper[ _-]?00[1-4]' -- . ':!tests/lint')"
offend 'use the word of the glossary' \
    "$(git grep -nE '[A-Z]_A_(FRAME|PROCESSOR|SLICE|BLOCK|THREAD|TILE|WARP)\b|_a_slice\b' -- "${rooms[@]}" tests ':!tests/lint')"
offend 'use the term message for the text of a code' "$(git grep -niE 'sentence' -- "${rooms[@]}" docs README.md ':!db/migrations')"
offend 'use the term connectedness map' "$(git grep -niE '\bscene' -- "${rooms[@]}" docs ':!config/options/option_segment.c')"
# shellcheck disable=SC2016 # backquotes of the documents
offend 'a document names a file that does not exist' \
    "$(grep -oE '`(base|config|container|db|dicom|docs|kernels|packaging|service|systemd|tests)/[a-z0-9_./-]+`' \
        README.md CONTRIBUTING.md docs/architecture.md docs/operations.md | tr -d '`' |
        while IFS=: read -r document path; do [[ -e $path ]] || printf '  %s: %s\n' "$document" "$path"; done)"
exit $((offences > 0))
