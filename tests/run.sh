#!/usr/bin/env bash
# Passes all tests on a fresh Debian or Ubuntu machine: installs what is missing, builds, runs everything
# once as it is shipped (the demonstration on the release build, then all tests with crash points), and the
# C tests again under the sanitizers.
#   tests/run.sh            everything
#   tests/run.sh STAGE...   some of: demo ci asan tsan
set -euo pipefail
cd "$(dirname "$0")/.."

tests/tools/install-deps.sh test
(($#)) || set -- demo ci asan tsan

for preset; do
    echo "== $preset"
    if [[ $preset == demo ]]; then
        tests/demo.sh
        continue
    fi
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset"
    case $preset in
    ci | dev) ctest --preset "$preset" -j 2 ;;
    # What Python drives from outside has run above; here the C code runs under the sanitizers.
    asan) ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 ctest --preset asan -L 'unit|kernels|fuzz' -j 2 ;;
    # Only what starts threads: db and config do not, and of dicom only the decoding of pixels.
    tsan) TSAN_OPTIONS=halt_on_error=1 ctest --preset tsan -R '^(kernels|unit\.(common|daemon|intake|pipeline|worker|dicom_pixels))' -j 2 ;;
    esac
done
