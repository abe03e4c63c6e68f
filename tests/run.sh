#!/usr/bin/env bash
# Passes the tests on a fresh Debian or Ubuntu machine: installs what is missing, builds, runs a tier of them.
#   tests/run.sh            everything, as CI runs it: all tests and the demonstration on what is shipped, with crash
#                           points; then the C tests under the sanitizers, a share of their long loops
#   tests/run.sh quick      what is run while one works: under two minutes of tests
#   tests/run.sh long       what is only worth a night: all of the loops under the sanitizers, hundreds of kills, code for
#                           every kind of GPU
#   tests/run.sh STAGE...   some of: ci demo asan tsan kernels release soak
# NOCTULE_TEST_SHARE=N: of long loops over like cases one case in N runs (tests/share.h).
set -euo pipefail
cd "$(dirname "$0")/.."

tests/tools/install-deps.sh test
share=7
case ${1:-all} in
all) set -- ci demo asan tsan ;;
long) set -- release asan tsan kernels soak && share=1 ;;
esac

build() { # PRESET: what its tests need
    cmake --preset "$1" >/dev/null
    cmake --build --preset "$1"
}

# once_more PRESET: tests that drive real programs wait for what other work on the machine may hold up. A few of them that failed
# are run again alone, and named: twice is a failure. What computes, and what sanitizers find, is right at the first try.
once_more() {
    local failed=build/$1/Testing/Temporary/LastTestsFailed.log
    if grep -qvE '^[0-9]+:(integ|fault)\.' "$failed" || (($(wc -l <"$failed") > 3)); then
        return 1
    fi
    echo "== unsteady: $(cut -d: -f2 "$failed" | xargs)"
    ctest --preset "$1" --rerun-failed
}

for stage; do
    echo "== $stage, $(date +%T)"
    case $stage in
    quick)
        build dev
        NOCTULE_TEST_SHARE=$share ctest --preset dev -L quick -j "$(nproc)"
        ;;
    # Most of these wait for timers, disks and each other.
    ci)
        build ci
        ctest --preset ci -j $((2 * $(nproc))) || once_more ci
        ;;
    demo) NOCTULE_PRESET=ci tests/demo.sh ;;
    release) build release ;;
    # What Python drives from outside runs above; here the C code runs under the sanitizers. Threads are started by few.
    asan)
        build asan
        NOCTULE_TEST_SHARE=$share ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 \
            ctest --preset asan -L 'unit|kernels|fuzz' -j "$(nproc)"
        ;;
    tsan)
        build tsan
        # A race shows in the first few cases, and each takes ten times as long.
        NOCTULE_TEST_SHARE=$((share > 1 ? 19 : 1)) TSAN_OPTIONS=halt_on_error=1 \
            ctest --preset tsan -L threads -j "$(nproc)"
        ;;
    # What kernels read and write, as compute-sanitizer looks at it on a GPU.
    kernels)
        cmake --preset asan -B build/kernels -DNOCTULE_CUDA=EMULATED >/dev/null
        cmake --build build/kernels --target emulated_suites
        ctest --test-dir build/kernels --output-on-failure -L emulated -j "$(nproc)"
        ;;
    soak)
        build ci
        ctest --test-dir build/ci --output-on-failure -L long
        ;;
    *)
        echo "tests/run.sh: no stage $stage" >&2
        exit 2
        ;;
    esac
done
echo "== passed, $(date +%T)"
