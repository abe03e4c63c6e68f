#!/usr/bin/env bash
# The tests' builds have crash points. What names one, or them, compiles without them too, as it is installed.
#   release.sh ROOT CC
set -uo pipefail
cd "$1" || exit
failures=0
while read -r source; do
    "$2" -std=c11 -D_GNU_SOURCE -DNOCTULE_VERSION='""' -O1 -Wall -Wextra -Werror -I. -fsyntax-only "$source" ||
        { echo "$source does not compile without crash points"; failures=$((failures + 1)); }
done < <(grep -rlE '\bcrash_point\(|NOCTULE_CRASH_POINTS' --include='*.c' base kernels dicom db config service)
exit $((failures > 0))
