#!/usr/bin/env bash
# service_gpu.sh BIN WORK [OPTION...]: measures series per second through the whole service. Prints a JSON line.
#
#   BIN     a folder of noctuled, noctule and noctule-phantom (built, or bundled for another machine)
#   WORK    a folder on a local disk with room for twice the series (a 512x512x300 one has 157 MB)
#   OPTION  --backend auto|cuda|cpu  --series N  --size XxYxZ  --lanes N  --threads N  --keep-mib N  --held
#           --deadline S  --keep  --kind KIND (of noctule-phantom)
#           --preset NAME (its segments instead of one level set)
#           --source DIR (makes the series there once, for runs to compare)
#
# The script generates N synthetic series. A running noctuled receives them through its inbox, configured for a
# missing GPU, so that their jobs wait. Their files are then in the page cache, and synced. A reload sets the
# backend, and its worker starts. The time runs from the first job's start to the last job's end in the database.
# A job reads headers, decodes, computes, writes and syncs the SEG and its preview, reads the SEG back and
# compares it, and is committed as DONE. The device opens before the first start. The reservation of memory for
# the first volumes comes after it, unless the worker starts before the series (--held: a pause holds the jobs,
# not a missing GPU). Stages are those of v_jobs, medians over the jobs. CPU seconds are those of the workers,
# user and system.
#
# Needs only bash and python3.
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n '2,7s/^# \?//p' "$0" >&2; exit 2; }
bin=$1 work=$2
shift 2
exec python3 "$(dirname "${BASH_SOURCE[0]}")/service_gpu.py" --bin "$bin" --work "$work" "$@"
