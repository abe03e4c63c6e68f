#!/usr/bin/env bash
# Measures every figure of docs/measurements.md and prints it after its command. Run it on an idle machine.
#   tests/bench/measure.sh [FOLDER]   FOLDER: a scratch folder on the disk to measure; default: below build/
# It uses the real series if ../shared exists.
set -euo pipefail
cd "$(dirname "$0")/../.."

cmake --preset ci >/dev/null
cmake --build --preset ci >/dev/null
bin=build/ci/bin
python=build/venv/bin/python
scratch=$(mktemp -d "${1:-build}/measure.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
brain=../shared/data/mr-brain-t1

measure() {
    printf '$ %s\n' "$*"
    "$@"
    echo
}

echo "commit $(git describe --always --dirty), $(date -u +%F), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
echo
measure $bin/noctule-bench sphere-512 sphere-512-uint8 sphere-512-labels-4 maze-x-512 maze-y-512 maze-z-512 \
    maze-random-512 checkerboard-512 noise-30-512 noise-60-512
measure $python tests/bench/peers_level_set.py --bench $bin/noctule-bench
measure $python tests/bench/peers_mask.py $bin/noctule-bench
measure $python tests/bench/peers_features.py --bench $bin/bench_features
measure $bin/bench_fuzzy 5
measure $bin/bench_reading 2 1000 5
measure $bin/noctule-phantom --series fmri-ge --size 64x64x40 --volumes 250 --output "$scratch/fmri"
measure $bin/bench_admission "$scratch/fmri" 2 21
measure $bin/bench_volume /dev/shm 9
measure $python tests/bench/program_overhead.py $bin "$scratch" 7
measure $bin/bench_seg /dev/shm 9
measure $bin/bench_structures /dev/shm 7
measure $bin/bench_seg "$scratch" 5
(cd "$scratch" && measure "$OLDPWD/$bin/bench_queue" 5)
if [[ -d $brain ]]; then
    measure $bin/bench_admission $brain 2 21
    cat >"$scratch/brain.conf" <<'END'
pipelines = ( { name = "brain-mr"; min_slices = 1;
    segments = ( { label = "White matter"; range = [ 58.0, 90.0 ];
        shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_voxels = 50.0; } );
        type = { code = "68523003"; scheme = "SCT"; meaning = "Cerebral white matter"; }; } ); } );
END
    for _ in 1 2 3 4 5 6; do
        measure /usr/bin/time -f '%e s, %M KiB' $bin/noctule --config "$scratch/brain.conf" run --quiet \
            --pipeline brain-mr --output "$scratch/brain" $brain
    done
    for label in scipy cc3d; do
        for _ in 1 2 3; do
            measure /usr/bin/time -f '%e s, %M KiB' $python tests/bench/peer_pipeline.py --range 58 90 \
                --label $label "$scratch/peer.dcm" $brain
        done
    done
fi
