#!/usr/bin/env bash
# service_gpu.sh BIN WORK [OPTION...]: series a second through the whole service, as one JSON line.
#
#   BIN     a folder of noctuled, noctule and noctule-phantom (built, or bundled for another machine)
#   WORK    a folder on a local disk with room for twice the series (a 512x512x300 one has 157 MB)
#   OPTION  --backend auto|cuda|cpu  --series N  --size XxYxZ  --lanes N  --threads N  --keep-mib N  --held
#           --deadline S  --keep  --kind KIND (of noctule-phantom)
#           --preset NAME (its segments instead of one level set)
#           --source DIR (series are made there once, for runs that are compared)
#
# What is measured: N synthetic series are generated, taken in by a running noctuled through its inbox and
# settled, while it is configured for a GPU that is not there, so that their jobs wait. Their files are in
# the page cache then, and synced. A reload names the backend, its worker starts, and the time runs from the
# first job's start to the last job's end, as the database has them: a job reads headers, decodes, computes,
# writes and syncs the SEG and its preview, reads the SEG back and compares it, and is committed as DONE.
# Opening the device lies before the first start; reserving memory for the first volumes lies behind it, unless
# the worker is there before the series (--held: a pause holds the jobs, and not a GPU that is not there). The
# stages are those of v_jobs, medians over the jobs; processor seconds are those of the workers, user and system.
#
# Needs bash and python3, nothing else.
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n '2,7s/^# \?//p' "$0" >&2; exit 2; }
bin=$1 work=$2
shift 2
exec python3 "$(dirname "${BASH_SOURCE[0]}")/service_gpu.py" --bin "$bin" --work "$work" "$@"
