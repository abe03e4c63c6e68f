#!/usr/bin/env bash
# Runs the main job on generated data: installs missing packages, builds, starts noctuled in a temporary root with the
# shipped configuration and a rule, copies a synthetic head CT into its inbox, waits for the job, accepts its result, and prints it.
#   tests/demo.sh [FOLDER]    FOLDER: the folder of the root (default: a new one below /tmp)
# NOCTULE_PRESET: the CMake preset to build (default: demo, with CUDA code for the GPU of this machine only). A preset that builds tests has these programs in bin/released.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/tools/install-deps.sh build
preset=${NOCTULE_PRESET:-demo}
gpu=()
if [[ $preset == demo ]] && nvidia-smi -L >/dev/null 2>&1; then
    gpu=(-D NOCTULE_CUDA=AUTO -D CMAKE_CUDA_ARCHITECTURES=native)
fi
cmake --preset "$preset" "${gpu[@]}" >/dev/null
cmake --build --preset "$preset" --target noctuled noctule noctule-phantom
bin=$PWD/build/$preset/bin
phantom=$bin/noctule-phantom
[[ -d $bin/released ]] && bin=$bin/released

folder=$(realpath -m "${1:-$(mktemp -d /tmp/noctule-demo.XXXXXX)}")
root=$folder/root
mkdir -p "$root" "$folder/conf.d"

# The shipped configuration, and a rule in conf.d as a site would write it.
conf=$folder/noctule.conf
cp config/noctule.conf "$conf"
cat >"$folder/conf.d/rules.conf" <<'END'
rules = ( { name = "head"; match = { modality = "CT"; body_part = "HEAD"; }; pipeline = "head-ct"; } );
END

"$bin/noctuled" --config "$conf" --root "$root" 2>"$folder/noctuled.log" &
daemon=$!
stop_daemon() {
    kill -TERM "$daemon" 2>/dev/null || true
    wait "$daemon" || true
}
trap stop_daemon EXIT

ask() { sqlite3 -readonly -cmd '.timeout 5000' "$@" "$root/noctule.db"; }

# wait_until SECONDS NAME COMMAND...: waits until the command succeeds. Prints the log at the time limit.
wait_until() {
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        if ((SECONDS > deadline)) || ! kill -0 "$daemon" 2>/dev/null; then
            echo "demo: timeout for $what; the log:" >&2
            tail -n 30 "$folder/noctuled.log" >&2
            exit 1
        fi
        sleep 0.1
    done
}

wait_until 30 "the daemon's socket" test -S "$root/run/control.sock"
echo "== dropping a series into $root/inbox"
"$phantom" --output "$folder/series" >/dev/null
mkdir -p "$root/inbox/demo"
for file in "$folder"/series/*.dcm; do
    # The protocol for writers: copy under a name that is ignored, then rename into place.
    cp "$file" "$root/inbox/demo/${file##*/}.part"
    mv "$root/inbox/demo/${file##*/}.part" "$root/inbox/demo/${file##*/}"
done

job_has_ended() {
    [[ $(ask 2>/dev/null <<<"SELECT count(*) FROM v_jobs WHERE state IN ('DONE', 'REVIEW', 'EMPTY', 'FAILED', 'CANCELLED')") -gt 0 ]]
}
wait_until 120 "the end of the job" job_has_ended

[[ -z $(find "$root/inbox" -type f) ]] || { echo "demo: files are left in the inbox" >&2; exit 1; }
echo "== v_jobs"
ask -line <<<'SELECT * FROM v_jobs'
state=$(ask <<<'SELECT state FROM v_jobs LIMIT 1')
result=$(ask <<<'SELECT result_path FROM v_jobs LIMIT 1')
[[ $state == REVIEW ]] || { echo "demo: the job ended as $state" >&2; exit 1; }
echo "== the preset is not validated, so its result waits for REVIEW; this accepts it"
"$bin/noctule" --config "$conf" --root "$root" accept 1
state=$(ask <<<'SELECT state FROM v_jobs LIMIT 1')
[[ $state == DONE ]] || { echo "demo: the accepted job is $state" >&2; exit 1; }
echo "== result"
echo "SEG      $root/$result"
echo "preview  $root/${result%/*}/preview.png"
echo "log      $folder/noctuled.log"
