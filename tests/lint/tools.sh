#!/usr/bin/env bash
# Runs a checking tool over the sources, and fails if it reports a defect. tests/tools/install-deps.sh test installs the tools.
#   tools.sh ROOT format|cppcheck|shellcheck|tidy
set -uo pipefail
cd "$1" || exit
rooms=(base kernels dicom db config service)

# files FOLDER... PATTERN: prints the files that match the pattern, with NUL after each. With NOCTULE_LINT_SINCE=COMMIT only files
# changed since then, and untracked ones.
files() {
    local pattern=${*: -1} folders=("${@:1:$#-1}")
    if [[ -n ${NOCTULE_LINT_SINCE:-} ]]; then
        git diff --name-only --diff-filter=d -z "$NOCTULE_LINT_SINCE" -- "${folders[@]}"
        git ls-files --others --exclude-standard -z -- "${folders[@]}"
    else
        find "${folders[@]}" -type f -print0
    fi | { grep -zE "$pattern" || true; } # no match is no defect
}

case $2 in
format)
    # Line breaks differ between versions. The sources have those of version 14.
    clang-format --version | grep -q ' version 14\.' || { echo "clang-format 14 is not installed"; exit 77; }
    files "${rooms[@]}" tests '\.([ch]|cc|hh|cuh?)$' | xargs -0 -r clang-format --dry-run -Werror
    ;;
cppcheck)
    # uninitvar, ctuuninitvar: next to a compound literal or a macro, 2.10 reports the address of an argument as a read.
    # gcc's -Wmaybe-uninitialized, in -Wall, and the sanitizers check for these.
    # internalAstError: 2.10 cannot parse two members of a structure after a compound literal in one call.
    # VALUES: 2.10 gives up on a file if another address follows the macro. The value may be any function.
    # autoVariables: the caller of the pool waits for all users of its local variable.
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
        sh -c 'clang-tidy --quiet "$@" -- -std=c11 -D_GNU_SOURCE -DNOCTULE_VERSION=\"0\" -DNOCTULE_FONT=\"\" -DNOCTULE_STYLE=\"\" -DNOCTULE_ASSETS=\"\" -DNOCTULE_STYLES=\"\" -I. -I/usr/include/freetype2 2>/dev/null' sh
    ;;
esac
