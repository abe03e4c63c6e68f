#!/usr/bin/env bash
# A name is one thing. No static function's name stands in two files of production, no struct's tag either: each
# carries its object's name (CONTRIBUTING, "Rules"), so that a search finds one definition. No word for two things: what
# the glossary has another word for is not used.
#   names.sh ROOT
set -uo pipefail
cd "$1" || exit
rooms=(base kernels dicom db config service)
offences=0

# offend WHAT LINES: nothing when there are none.
offend() {
    [[ -n $2 ]] || return 0
    printf '%s:\n%s\n' "$1" "$2"
    offences=$((offences + 1))
}

sources() {
    find "${rooms[@]}" -name '*.[ch]' -o -name '*.cc' -o -name '*.hh' -o -name '*.cu' -o -name '*.cuh'
}

# twice: of lines "name file", the names with two files, with the files.
twice() {
    sort -u | awk '{ files[$1] = files[$1] " " $2; count[$1]++ }
        END { for (name in count) if (count[name] > 1) print "  " name ":" files[name] }' | sort
}

# shellcheck disable=SC2016 # awk's $
# The style puts a function's name at the start of a line, below "static" and its type.
offend 'a static function of that name is in each of these files' "$(sources | xargs awk '
    FNR == 1 { is_static = 0 }
    /^static / { is_static = 1 }
    is_static && /^[a-z_0-9]+\(/ && !/^__/ { name = $0; sub(/\(.*/, "", name); print name, FILENAME }
    /^[a-z_0-9]+\(|;$|^}/ { is_static = 0 }' | twice)"
# shellcheck disable=SC2016
offend 'a struct of that tag is in each of these files' "$(sources | xargs awk '
    /^(static |typedef )?(const )?struct [a-z_0-9]+ \{/ { sub(/.*struct /, ""); sub(/ \{.*/, ""); print $0, FILENAME }' | twice)"
# shellcheck disable=SC2016
# The presets asan and plain compile the sources of a folder as one, without those that CMakeLists.txt gives to noctule_unity.
offend 'a macro or a static object of that name is in each of these sources, which are compiled together: rename one' "$(
    alone=$(cat ./*/CMakeLists.txt | sed -n '/^noctule_unity(/,/)/p' | grep -oE '[a-z_0-9/]+\.cc?' | sed 's#^#/#')
    find base dicom db config service -name '*.c' | grep -vFf <(printf '%s\n' "$alone") | sort | xargs awk '
        /^#define [A-Za-z_0-9]+/ { name = $2; sub(/\(.*/, "", name); }
        /^static [^(]*( =|\[|;)/ { name = $0; sub(/(\[| =|;).*/, "", name); sub(/.*[ *]/, "", name); $0 = FILENAME FNR }
        name { folder = FILENAME; sub(/\/[^\/]*$/, "", folder); key = folder " " name
            if (key in text && text[key] != $0 && first[key] != FILENAME) print name, FILENAME, first[key]
            if (!(key in text)) { text[key] = $0; first[key] = FILENAME }
            name = "" }')"
# shellcheck disable=SC2016
offend 'a file of that name is in each of these folders' "$(find "${rooms[@]}" -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' |
    awk -F/ '{ print $NF, $0 }' | twice)"
# shellcheck disable=SC2016
offend 'an include guard follows the path' "$(find "${rooms[@]}" '(' -name '*.h' -o -name '*.cuh' ')' -exec awk '
    FNR == 1 { guard = "NOCTULE_" toupper(FILENAME); gsub(/[^A-Z0-9]/, "_", guard); found = 0 }
    !found && /^#ifndef / { found = 1; if ($2 != guard) print "  " FILENAME ": " $2 }' {} +)"
offend 'a document names a file that does not exist' "$(git grep -noE '`(base|config|db|dicom|kernels|service|tests)/[a-z0-9_./-]*[a-z0-9_]' -- docs/architecture.md CONTRIBUTING.md |
    while IFS=: read -r file line path; do compgen -G "${path#?}*" >/dev/null || echo "$file:$line: ${path#?}"; done)"
offend 'papers are cited by author and year (docs/references.md)' \
    "$(git grep -niE 'paper[ _-]?00[1-4]' -- . ':!tests/lint')"
offend 'the glossary has another word' \
    "$(git grep -nE '[A-Z]_A_(FRAME|PROCESSOR|SLICE|BLOCK|THREAD|TILE|WARP)\b|_a_slice\b' -- "${rooms[@]}" tests ':!tests/lint')"
offend 'the text beside a code is a message' "$(git grep -niE 'sentence' -- "${rooms[@]}" docs README.md ':!db/migrations')"
offend 'how strongly voxels hang together is a connectedness map' "$(git grep -niE '\bscene' -- "${rooms[@]}" docs ':!config/options/option_segment.c')"
exit $((offences > 0))
