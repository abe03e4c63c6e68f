#!/usr/bin/env bash
# Checks that each header compiles alone as C11, and, if C++ or CUDA sources include it, as C++17.
#   headers.sh ROOT CC CXX
set -uo pipefail
cd "$1" || exit
failures=0
while read -r header; do
    "$2" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -include "$header" -x c -fsyntax-only /dev/null ||
        { echo "$header does not compile alone"; failures=$((failures + 1)); }
done < <(find base kernels dicom db config service -name '*.h' 2>/dev/null)
for header in kernels/kernels.h kernels/texture/texture.h dicom/{dicom,read/geometry/geometry,objects/seg/seg}.h; do
    "$3" -std=c++17 -Wall -Wextra -Werror -I. -include "$header" -x c++ -fsyntax-only /dev/null ||
        { echo "$header does not compile as C++17"; failures=$((failures + 1)); }
done
exit $((failures > 0))
