#!/usr/bin/env bash
# Runs the tests that need a GPU on a machine with one, and measures the kernels there.
#   tests/gpu.sh [FOLDER]    the programs' folder: build/ci/bin, or a copy of it on another machine
# Steps: parity with the CPU and the references, fault injection, whole runs compared with the CPU, the service with its workers (needs
# pytest and pydicom), compute-sanitizer, then noctule-bench. NOCTULE_TEST_VOLUMES names real volumes (tests/kernels/test_cuda.c).
# LOGS is the folder of the logs. STEPS selects some of parity objects masks enclosed texture peaks resample smooth filter spectral images voxelwise runs service memcheck racecheck
# bench, or single steps below. LIMIT is the time limit of each. Prints a summary at the end. Returns non-zero if a step fails, or is
# skipped because there is no GPU.
set -uo pipefail
programs=${1:-$(dirname "$0")/../build/ci/bin}
logs=${LOGS:-$(mktemp -d)}
steps=${STEPS:-parity objects masks enclosed texture peaks resample smooth filter spectral images voxelwise runs service memcheck racecheck bench}
limit=${LIMIT:-15m}
mkdir -p "$logs"
export CK_FORK=no CK_DEFAULT_TIMEOUT=0
# A call that fails for one of several GPUs is not an error while another one is left.
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
summary=()
failures=0

# step NAME COMMAND...: the kind is the part of NAME before the first dash
step() {
    local name=$1 begun=$SECONDS status=0
    shift
    [[ " $steps " == *" $name "* || " $steps " == *" ${name%%-*} "* ]] || return 0
    "$@" >"$logs/$name.log" 2>&1 || status=$?
    grep -q '^100%: Checks: 0,' "$logs/$name.log" && status=1 # no case has that name
    case $status in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    *) verdict="FAILED ($status)" && tail -n 25 "$logs/$name.log" ;;
    esac
    ((status == 0)) || failures=$((failures + 1))
    summary+=("$(printf '%-19s %-12s %4d s  %s' "$name" "$verdict" $((SECONDS - begun)) \
        "$(grep -E '^[0-9]+%: |ERROR SUMMARY|RACECHECK SUMMARY|^skipped|^[0-9]+ (passed|failed)' "$logs/$name.log" | tail -n 1)")")
}

# check PROGRAM [ARGUMENT...]
# shellcheck disable=SC2317 # called through step
check() {
    timeout "$limit" "$programs/$1" "${@:2}"
}

# sanitize TOOL PROGRAM: runs its quick selection, or the cases of CK_RUN_CASE. For all processes, because a script may start it.
# shellcheck disable=SC2317 # called through step
sanitize() {
    timeout "$limit" "$sanitizer" --tool "$1" --target-processes all --error-exitcode 1 "$programs/$2" --quick
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
step parity check kernels_test_cuda
step objects check kernels_test_cuda_fuzzy
step leave check kernels_test_cuda_leave
step masks check kernels_test_cuda_mask
step enclosed check kernels_test_cuda_enclosed
step texture check kernels_test_cuda_texture
step peaks check kernels_test_cuda_peaks
step resample check kernels_test_cuda_resample
step smooth check kernels_test_cuda_smooth
step filter check kernels_test_cuda_filter
step spectral check kernels_test_cuda_filter_spectral
step images check kernels_test_cuda_image_type
step voxelwise check kernels_test_cuda_voxelwise
step runs timeout "$limit" python3 "$(dirname "$0")/gpu_runs.py" "$programs"
PYTHONPATH=$(dirname "$0")/integ${PYTHONPATH:+:$PYTHONPATH} NOCTULE_BIN=$(realpath "$programs") step service timeout "$limit" \
    python3 -m pytest -q -s -p no:cacheprovider "$(dirname "$0")/gpu_service.py"
step memcheck sanitize memcheck kernels_test_cuda
step memcheck-objects sanitize memcheck kernels_test_cuda_fuzzy
step memcheck-masks sanitize memcheck kernels_test_cuda_mask
step memcheck-enclosed sanitize memcheck kernels_test_cuda_enclosed
step memcheck-texture sanitize memcheck kernels_test_cuda_texture
step memcheck-peaks sanitize memcheck kernels_test_cuda_peaks
step memcheck-resample sanitize memcheck kernels_test_cuda_resample
step memcheck-smooth sanitize memcheck kernels_test_cuda_smooth
step memcheck-filter sanitize memcheck kernels_test_cuda_filter
step memcheck-spectral sanitize memcheck kernels_test_cuda_filter_spectral
step memcheck-images sanitize memcheck kernels_test_cuda_image_type
step memcheck-voxelwise sanitize memcheck kernels_test_cuda_voxelwise
# Racecheck is slow, so it runs cases of one or two jobs.
CK_RUN_CASE=level_set step racecheck-level-set sanitize racecheck kernels_test_cuda
CK_RUN_CASE=fuzzy step racecheck-fuzzy sanitize racecheck kernels_test_cuda
CK_RUN_CASE=small step racecheck-masks sanitize racecheck kernels_test_cuda_mask
CK_RUN_CASE=parity step racecheck-enclosed sanitize racecheck kernels_test_cuda_enclosed
CK_RUN_CASE=small step racecheck-texture sanitize racecheck kernels_test_cuda_texture
CK_RUN_CASE=parity step racecheck-peaks sanitize racecheck kernels_test_cuda_peaks
CK_RUN_CASE=small step racecheck-resample sanitize racecheck kernels_test_cuda_resample
CK_RUN_CASE=parity step racecheck-smooth sanitize racecheck kernels_test_cuda_smooth
CK_RUN_CASE=parity step racecheck-filter sanitize racecheck kernels_test_cuda_filter
CK_RUN_CASE=parity step racecheck-spectral sanitize racecheck kernels_test_cuda_filter_spectral
step racecheck-images sanitize racecheck kernels_test_cuda_image_type
step racecheck-voxelwise sanitize racecheck kernels_test_cuda_voxelwise
step bench check noctule-bench --backend cuda
step bench-resample check bench_resample cuda
step bench-smooth check bench_smooth cuda
step bench-enclosed check bench_enclosed cuda

# One line per case, from the JSON lines in the log.
[[ -s $logs/bench.log ]] && python3 - "$logs/bench.log" <<'END'
import json, sys
for line in open(sys.argv[1]):
    case = json.loads(line) if line.startswith("{") else {}
    milliseconds = case.get("median_ms") or 1000 * case.get("median_seconds", 0) or case.get("ms")
    if milliseconds is None: # counts, not a time
        continue
    def number(name):
        return "     -" if case.get(name) is None else "%6.2f" % case[name]
    print("%-44s %9.3f ms  read x%s  upload x%s  paper /%s  mismatches %s" % (
        case["case"], milliseconds, number("ratio_to_read"), number("ratio_to_upload"),
        number("ratio_to_paper"), "-" if case.get("mismatches") is None else case["mismatches"]))
END
printf '%s\n' "${summary[@]}" "logs in $logs"
exit $((failures > 0))
