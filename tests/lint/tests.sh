#!/usr/bin/env bash
# Compares the rows of tests/README.md with the tests that exist, and checks the cells of each row. Prints each offence.
#   tests.sh ROOT
# shellcheck disable=SC2016 # backquotes of the table, awk's $
set -uo pipefail
cd "$1" || exit
table=tests/README.md
offences=0

# offend REASON LINES: prints them, unless there are no lines.
offend() {
    [[ -n $2 ]] || return 0
    printf '%s:\n%s\n' "$1" "$2"
    offences=$((offences + 1))
}

files=$(find tests -type f)

# named FILE NAME: prints the test NAME for each file whose path below tests/ matches the pattern FILE.
named() {
    sed -nE "s#^tests/$1\$#$2#p" <<<"$files"
}

# The naming rules. tools.sh is one test per tool. integ.released runs two of the integration files on release programs.
existing() {
    named 'lint/([a-z0-9_]+)\.sh' 'lint.\1' | grep -vx 'lint\.tools'
    sed -nE 's/^([a-z0-9_]+)\).*/lint.\1/p' tests/lint/tools.sh
    named 'unit/([a-z]+)/test_([a-z0-9_]+)\.c' 'unit.\1_\2'
    named 'kernels/test_([a-z0-9_]+)\.c' 'kernels.\1'
    named 'fuzz/fuzz_([a-z0-9_]+)\.cc?' 'fuzz.\1' | grep -vx 'fuzz\.replay'
    named 'fuzz/fuzz_([a-z0-9_]+)\.cc?' 'fuzz.run.\1' | grep -vx 'fuzz\.run\.replay'
    named 'integ/test_([a-z0-9_]+)\.py' 'integ.\1'
    named 'integ/test_end_to_end\.py' 'integ.released'
    named 'fault/test_([a-z0-9_]+)\.py' 'fault.\1'
    named 'fault/test_([a-z0-9_]+)\.py' 'long.\1'
    named 'kernels/test_(cuda[a-z0-9_]*)\.c' 'emulated.\1'
    named 'kernels/test_(cuda[a-z0-9_]*)\.c' 'emulated.\1_whole'
    named 'unit/worker/test_(slots)\.c' 'emulated.\1'
    named 'gpu_(runs|service)\.py' 'emulated.\1'
}

rows=$(grep -E '^\|' "$table" | grep -vE '^\|( test \| tier \| seconds \| protects \||---\|---\|---\|---\|)$')
tests=$(sed -nE 's/^\| `([^`|]*)` \|.*/\1/p' <<<"$rows")

offend "a test has no row in $table" "$(LC_ALL=C comm -23 <(existing | LC_ALL=C sort -u) <(LC_ALL=C sort -u <<<"$tests"))"
offend "a row of $table has no test" "$(LC_ALL=C comm -13 <(existing | LC_ALL=C sort -u) <(LC_ALL=C sort -u <<<"$tests"))"
offend "a test has several rows in $table" "$(sort <<<"$tests" | uniq -d)"
# CMake reads rows of this form. Semicolons, backslashes and square brackets break its lists.
offend 'a row is not: test, tier, seconds or empty, protects' \
    "$(grep -vE '^\| `[a-z0-9_.]+` \| [^|]* \| ([0-9.]+ )?\| [^|]*\|$' <<<"$rows")"
offend 'CMake cannot read a row with a semicolon, a backslash or a square bracket' "$(grep -E '[][;\\]' <<<"$rows")"
offend 'a tier is not quick, gate, plain, turn 1 to turn 4, kernels, full or night' \
    "$(grep -vE '^\|[^|]*\| (quick|gate|plain|turn [1-4]|kernels|full|night) \|' <<<"$rows")"
offend 'a row has no text in protects' "$(grep -E '\|[[:space:]]*\|$' <<<"$rows")"
offend 'rows below a heading are sorted by test' \
    "$(LC_ALL=C awk -F'`' '/^## / { last = "" } /^\| `/ { if ($2 < last) print $0; last = $2 }' "$table")"
exit $((offences > 0))
