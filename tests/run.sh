#!/usr/bin/env bash
# Installs missing packages on Debian or Ubuntu, builds, and runs a tier of the tests (tests/README.md).
#   tests/run.sh            the gate, which CI runs: 11 to 15 minutes on 2 cores
#   tests/run.sh quick      tests for use while you edit: at most 2 minutes after the build
#   tests/run.sh full       every test except the night's, and the thread sanitizer
#   tests/run.sh long       a night: full sizes under the sanitizers, code for every GPU, soak tests
#   tests/run.sh STAGE...   some of the stages below
# NOCTULE_TURN=N: run the tests of turn N (1 to 4) instead of the turn that tests/landings.txt selects.
# NOCTULE_TEST_SHARE=N: run one of N similar cases in long loops (tests/share.h).
# NOCTULE_JOBS=N: run N tests at a time. STEADY_ROUNDS=N: rounds of the stage steady.
set -euo pipefail
cd "$(dirname "$0")/.."

begun=$SECONDS
reports=build/reports
rm -rf $reports
mkdir -p $reports/pictures
export NOCTULE_PICTURES=${NOCTULE_PICTURES:-$PWD/$reports/pictures} # screenshots of the web UI and of results in OHIF
jobs=${NOCTULE_JOBS:-$((2 * $(nproc) + 1))} # most integration tests wait for timers, disks and peers
share=7
case_turn= # the turn whose cases of a share run; all four turns of the gate run one in 7
uar=0 # 1: C tests find uses of a stack frame after its function has returned, at up to twice the time
asan=detect_leaks=1:quarantine_size_mb=16:malloc_context_size=5 # each page of a longer quarantine costs a page fault
turn=${NOCTULE_TURN:-$(($(wc -l <tests/landings.txt) % 4 + 1))}
left=()       # tiers that this call does not run, with the reason
release=plain # the preset of release code: plain, or cuda
cuda=ci       # the preset of CUDA code
programs=(integ_programs)
ahead=        # process that builds release code while the tests of the gate's first stage run

landed=$(tail -n 1 tests/landings.txt | cut -d' ' -f2)
git cat-file -e "$landed^{commit}" 2>/dev/null || landed= # a shallow clone

# Succeeds if CUDA code, a header that it includes, or its tests differ from the last landing, or if git does not have that landing.
kernels_changed() {
    local headers
    mapfile -t headers < <(git grep -hoE '"(kernels|base)/[^"]+\.h"' -- 'kernels/*.cu' 'kernels/*.cuh' | tr -d '"' | sort -u)
    [[ -z $landed ]] || ! git diff --quiet "$landed" -- 'kernels/*.cu' 'kernels/*.cuh' "${headers[@]}" tests/emulator \
        'tests/kernels/*cuda*' 'tests/gpu_*.py'
}

case ${1:-gate} in
gate)
    set -- asan turn
    share=28 case_turn=$turn
    export NOCTULE_LINT_SINCE=$landed # clang-format, cppcheck and clang-tidy read changed files only
    for other in 1 2 3 4; do
        [[ $other == "$turn" ]] || left+=("turn $other: runs at another landing; this one is turn $turn")
    done
    if [[ $turn == 4 ]] || kernels_changed; then
        set -- "$@" cuda
        release=cuda
        cuda=cuda
    else
        left+=("kernels: no change since the landing $landed")
    fi
    left+=("full, thread sanitizer, night: not part of the gate")
    ;;
full) set -- everything asan tsan && uar=1 && left+=("night: tests/run.sh long runs it") ;;
long) set -- release asan tsan kernels night && share=1 uar=1 ;;
esac
stages=("$@")
[[ $release != cuda ]] || programs+=(cuda_tests)

# build PRESET TARGET...: configures and builds; prints the log if that fails.
build() {
    local preset=$1 log=$reports/build-$1.log
    shift
    [[ -z $ahead ]] || wait "$ahead" || true # a build that failed ahead fails again below, with its log
    ahead=
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1; then
        grep -A 20 -E '^FAILED|[Ee]rror' "$log" | head -n 200
        tail -n 20 "$log"
        return 1
    fi
    echo "built $preset, $(date +%T)"
}

# build_ahead PRESET TARGET...: builds in the background at low priority, because tests that wait for timers leave the cores idle.
build_ahead() {
    set -m # a process group, which finish ends
    {
        renice -n 19 "$BASHPID"
        build "$@"
    } >/dev/null &
    ahead=$!
    set +m
}

# run FOLDER OPTION...: runs tests of that build. Up to three integration or fault tests that fail run a second time, alone.
# A test that then passes is unsteady: tests/unsteady.txt gets its date, name and cause. A sanitizer report has no second try.
run() {
    local folder=$1 report status=0
    shift
    wait "$venv" || return 1
    report=$PWD/$reports/$(find $reports -name '*.xml' | wc -l).xml
    ctest --test-dir "$folder" --output-on-failure --test-output-size-passed 65536 --no-tests=error \
        --output-junit "$report" "$@" >"$report.log" || status=$?
    python3 tests/tools/report.py failures "$report"
    ((status)) || return 0
    local failed
    failed=$(python3 tests/tools/report.py again "$report") || return 1
    echo "== second try: $failed"
    ctest --test-dir "$folder" --output-on-failure --output-junit "$report.again" -R "^(${failed// /|})\$" -j 1 || return 1
    python3 tests/tools/report.py unsteady "$report" | tee -a tests/unsteady.txt
}

# steady FOLDER ROUNDS: runs every integration and fault test that many times, with four busy processes as load.
steady() (
    busy=()
    for _ in 1 2 3 4; do
        sh -c 'while :; do :; done' &
        busy+=($!)
    done
    trap 'kill "${busy[@]}"' EXIT
    ctest --test-dir "$1" --output-on-failure --output-junit "$PWD/$reports/steady.xml" -L '^integ$' -LE '^night$' \
        --repeat "until-fail:$2" -j "$jobs"
)

stage() {
    case $1 in
    quick)
        build dev
        NOCTULE_TEST_SHARE=$share run build/dev -L '^quick$' -j "$(nproc)"
        ;;
    # C tests and the integration tests of the state machine, with the programs under ASan and UBSan; lints.
    asan)
        build asan
        [[ " ${stages[*]} " != *" turn "* ]] || build_ahead $release "${programs[@]}"
        NOCTULE_TEST_SHARE=${NOCTULE_TEST_SHARE:-$share} NOCTULE_TEST_TURN=$case_turn ASAN_OPTIONS=$asan:detect_stack_use_after_return=$uar \
            run build/asan -L '^gate$' -j "$jobs"
        ;;
    # Release code: the demonstration, further tests of each landing, and this landing's turn of the others.
    turn)
        build $release "${programs[@]}"
        NOCTULE_PRESET=$release tests/demo.sh
        run build/$release -L "^(plain|turn$turn)\$" -j "$jobs"
        ;;
    # CUDA code compiles, and the emulator runs it.
    cuda)
        build $cuda integ_programs cuda_tests
        NOCTULE_TEST_SHARE=7 run build/$cuda -L '^cuda$' -j "$(nproc)"
        ;;
    everything)
        tests/tools/install-deps.sh models >$reports/models.log 2>&1 &
        local models=$!
        build ci
        wait "$models" || left+=("integ.deepbet: its packages cannot be installed, see $reports/models.log")
        NOCTULE_PRESET=ci tests/demo.sh
        run build/ci -L '^full$' -j "$jobs"
        ;;
    release) build release ;;
    # A race shows in the first few cases, and each takes ten times as long.
    tsan)
        build tsan threaded_tests
        NOCTULE_TEST_SHARE=$((share > 1 ? 19 : 1)) TSAN_OPTIONS=halt_on_error=1 run build/tsan -L '^threads$' -j "$(nproc)"
        ;;
    # Memory accesses of kernels, as compute-sanitizer checks them on a GPU.
    kernels)
        cmake --preset asan -B build/kernels -DNOCTULE_CUDA=EMULATED >/dev/null
        cmake --build build/kernels --target emulated_suites
        run build/kernels -L '^emulated$' -j "$(nproc)"
        ;;
    night)
        build ci
        run build/ci -L '^night$'
        ;;
    steady)
        build ci
        steady build/ci "${STEADY_ROUNDS:-20}"
        ;;
    *)
        echo "tests/run.sh: no stage $1" >&2
        exit 2
        ;;
    esac
}

# Prints the summary at the end, also after a failure.
finish() {
    local status=$? reason
    trap - EXIT
    [[ -z $ahead ]] || kill -- "-$ahead" 2>/dev/null || true
    for reason in "${left[@]}"; do
        echo "not run: $reason"
    done
    ((status)) && times+=("and the stage that failed ")
    echo "== stages: ${times[*]}in all $((SECONDS - begun)) s"
    python3 tests/tools/report.py summary "$status" $reports
    exit "$status"
}
trap finish EXIT

times=()
from=$SECONDS
echo "== install, $(date +%T)"
tests/tools/install-deps.sh packages
times+=("packages $((SECONDS - from)) s,")
tests/tools/install-deps.sh venv & # during the first build
venv=$!
for name; do
    from=$SECONDS
    echo "== $name, $(date +%T)"
    stage "$name"
    times+=("$name $((SECONDS - from)) s,")
done
if (($(grep -c . tests/unsteady.txt || true) > 3)); then
    echo "tests/unsteady.txt has more than three tests. Fix the races and remove their lines."
    exit 1
fi
