#!/usr/bin/env bash
# What other people's tools say of the sources: nothing. tests/tools/install-deps.sh test installs them.
#   tools.sh ROOT format|cppcheck|shellcheck|tidy
set -uo pipefail
cd "$1" || exit
rooms=(base kernels dicom db config service)

# files FOLDER... PATTERN: the files of the pattern, with NUL after each; with NOCTULE_LINT_SINCE=COMMIT only those that changed since
# then or that git does not know.
files() {
    local pattern=${*: -1} folders=("${@:1:$#-1}")
    if [[ -n ${NOCTULE_LINT_SINCE:-} ]]; then
        git diff --name-only --diff-filter=d -z "$NOCTULE_LINT_SINCE" -- "${folders[@]}"
        git ls-files --others --exclude-standard -z -- "${folders[@]}"
    else
        find "${folders[@]}" -type f -print0
    fi | grep -zE "$pattern"
}

case $2 in
format)
    # Versions differ in line breaks; the sources have those of version 14.
    clang-format --version | grep -q ' version 14\.' || { echo "clang-format 14 is not here"; exit 77; }
    files "${rooms[@]}" tests '\.([ch]|cc|hh|cuh?)$' | xargs -0 -r clang-format --dry-run -Werror
    ;;
cppcheck)
    # uninitvar, ctuuninitvar: 2.10 takes an address that is given to a function for a read where a compound literal
    # or a macro stands beside it. gcc's -Wmaybe-uninitialized, in -Wall, and the sanitizers look for these.
    # internalAstError: it cannot parse two members of a structure behind a compound literal in one call.
    # VALUES: 2.10 gives up a file where another address follows what it stands for; it may be any function.
    # autoVariables: the pool's caller waits below its local for those who use it.
    files "${rooms[@]}" '\.c$' | xargs -0 -r cppcheck --quiet --language=c --error-exitcode=1 --inline-suppr --template=gcc \
        --enable=warning,performance,portability --suppress=uninitvar --suppress=ctuuninitvar \
        --suppress=internalAstError \
        --suppress=autoVariables:kernels/cpu/cpu_pool.c \
        --std=c11 -D_GNU_SOURCE '-DNOCTULE_VERSION="0"' -UVALUES -I.
    ;;
shellcheck)
    { find tests docs '(' -name '*.sh' -o -name '*.bash' ')' -print0 && printf '%s\0' .ci/run packaging/debian/{postinst,prerm,postrm}; } | xargs -0 shellcheck
    ;;
tidy) # .clang-tidy says what is asked; sh, as the files stand before the compiler's options
    # shellcheck disable=SC2016
    files "${rooms[@]}" '\.c$' | xargs -0 -r -n 12 -P "$(nproc)" \
        sh -c 'clang-tidy --quiet "$@" -- -std=c11 -D_GNU_SOURCE -DNOCTULE_VERSION=\"0\" -I. 2>/dev/null' sh
    ;;
esac
