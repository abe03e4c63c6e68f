#!/usr/bin/env bash
# Which folder may include what (README, "The rooms"). Prints each offending line; fails when there is one.
#   fences.sh ROOT
set -uo pipefail
cd "$1"
offences=0

# fence WHAT PATTERN ALLOWED-FILES: an #include that matches PATTERN may stand only in files that match the last.
fence() {
    local lines
    lines=$(grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$2" -r \
        service kernels dicom db config tests --include='*.[ch]' --include='*.cc' --include='*.cu' \
        --include='*.cuh' | grep -vE "^($3)")
    if [[ -n $lines ]]; then
        printf '%s is fenced in (%s):\n%s\n' "$1" "$3" "$lines"
        offences=$((offences + 1))
    fi
}

fence libuv 'uv\.h' 'service/|tests/unit/test_service_|tests/tools/'
fence SQLite 'sqlite3' 'db/[a-z_]+\.[ch]:|tests/unit/(test_db_|db_sample|failing_vfs)'
fence libconfig 'libconfig' 'config/[a-z_]+\.[ch]:'
fence DCMTK '(dcmtk/|openjpeg)' 'dicom/[a-z0-9_]+\.(cc|hh):'
fence CUDA '(cuda|cub/)' '(kernels|tests/kernels|tests/bench)/[a-z_0-9]+\.(cu|cuh):'
fence libpng 'png\.h' 'service/worker/indexed_png\.c:|tests/unit/test_service_preview\.c:'
fence systemd 'systemd/' 'service/daemon/notify\.c:'

# The four leaves know nobody: neither service/ nor each other.
for leaf in kernels dicom db config; do
    for other in service kernels dicom db config; do
        [[ $leaf == "$other" ]] && continue
        for header in "$other"/*.h; do
            [[ -e $leaf/${header##*/} ]] && continue
            lines=$(grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*\"(\.\./$other/)?${header##*/}\"" \
                "$leaf"/* 2>/dev/null)
            if [[ -n $lines ]]; then
                printf '%s may not know %s:\n%s\n' "$leaf" "$other" "$lines"
                offences=$((offences + 1))
            fi
        done
    done
done
# Within service/ every room may use common/; the command line's `run` also uses the worker's pipeline.
for room in daemon intake worker courier cli; do
    for other in daemon intake worker courier cli; do
        [[ $room == "$other" || $room/$other == cli/worker ]] && continue
        for header in "service/$other"/*.h; do
            lines=$(grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*\"${header##*/}\"" "service/$room"/*)
            if [[ -n $lines ]]; then
                printf 'service/%s may not know service/%s:\n%s\n' "$room" "$other" "$lines"
                offences=$((offences + 1))
            fi
        done
    done
done
exit $((offences > 0))
