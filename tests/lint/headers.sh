#!/usr/bin/env bash
# Each public header compiles alone, as C11; those of kernels/ and dicom/ as C++17 too.
#   headers.sh ROOT CC CXX
set -uo pipefail
cd "$1"
failures=0
includes=(-Ikernels -Idicom -Idb -Iconfig -Iservice/{common,daemon,intake,worker,courier,cli})
for header in {kernels,dicom,db,config,service/*}/*.h; do
    "$2" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "${includes[@]}" -include "$header" -x c -fsyntax-only /dev/null ||
        { echo "$header does not compile alone"; failures=$((failures + 1)); }
done
for header in kernels/kernels.h dicom/{dicom,geometry,seg}.h; do
    "$3" -std=c++17 -Wall -Wextra -Werror "${includes[@]}" -include "$header" -x c++ -fsyntax-only /dev/null ||
        { echo "$header does not compile as C++17"; failures=$((failures + 1)); }
done
exit $((failures > 0))
