#!/usr/bin/env bash
# Checks the includes between folders and of libraries (docs/architecture.md, "Source layout"). Prints each offending line.
#   fences.sh ROOT
set -uo pipefail
cd "$1" || exit
offences=0

# offend RULE LINES: prints the lines as an offence against the rule, if there are any.
offend() {
    [[ -n $2 ]] || return 0
    printf '%s:\n%s\n' "$1" "$2"
    offences=$((offences + 1))
}

# includes PATTERN FOLDER...: every #include whose file matches, as "file:line:text".
includes() {
    local pattern=$1
    shift
    grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$pattern" "$@" \
        --include='*.[ch]' --include='*.cc' --include='*.hh' --include='*.cu' --include='*.cuh'
}

rooms=(base kernels dicom db config service)

# fence LIBRARY PATTERN ALLOWED-FILES: only files that match ALLOWED-FILES may have an #include that matches PATTERN.
fence() {
    offend "$1 may be included only in ($3)" "$(includes "$2" "${rooms[@]}" tests | grep -vE "^($3)")"
}

fence libuv 'uv\.h' 'service/|tests/unit/(common|daemon|intake|pipeline|worker)/|tests/tools/'
fence SQLite 'sqlite3' 'db/[a-z_/]+\.[ch]:|tests/unit/db/'
fence libconfig 'libconfig' 'config/[a-z_/]+\.[ch]:'
fence RE2 're2/' 'config/expression\.cc:'
fence DCMTK '(dcmtk/|openjpeg)' 'dicom/[a-z0-9_/]+\.(cc|hh):'
fence CUDA '(cuda|cub/)' '(kernels|tests/kernels|tests/bench)/[a-z_0-9/]+\.(cu|cuh):|tests/emulator/[a-z_0-9/]+\.(cc|hh|h|cuh):'
fence libpng 'png\.h' 'service/common/picture/indexed_png\.c:|tests/unit/pipeline/test_preview\.c:'
fence libyaml 'yaml\.h' 'service/cli/profile_pyradiomics\.c:'
fence FreeType 'ft2build\.h' 'service/pipeline/results/lettering\.c:'
fence libmicrohttpd 'microhttpd' 'service/web/server/web_server\.c:'
fence systemd 'systemd/' 'service/daemon/systemd_notify\.c:'
fence libseccomp 'seccomp\.h' 'service/common/confine/call_filter\.c:'

# foreign TEXT PATTERN ALLOWED-FILES: only these files may use a text that may name a patient. They must not write it into the log,
# a report, the web UI or metrics.
foreign() {
    offend "$1 may name a patient, so only these files may use it: ($3)" "$(grep -rnE "$2" base db service dicom \
        --include='*.[ch]' --include='*.cc' --include='*.def' --include='*.sql' | grep -vE "^($3)")"
}

foreign 'the original path of a file' '\boriginal_path\b' \
    'db/migrations/|db/views\.sql:|db/queue\.h:|db/queue/[a-z_]+\.c:|db/report/lists\.c:|service/daemon/(command_requests|series/(arrivals|quarantine_release))\.c:|service/receiver/spool/(import|quarantine_files)\.c:'
foreign 'the original path of a quarantined file' '(told|reason)(->|\.)original\b' \
    'service/daemon/series/arrivals\.c:|service/receiver/spool/quarantine_files\.c:'
foreign 'a file name within an inbox' '(->|\.)relative\b' \
    'service/receiver/(inbox/(inbox|inbox_scan)|receiver_batches|net/receive|spool/[a-z_]+)\.[ch]:|service/common/file_ops\.c:|service/pipeline/|service/daemon/retention/remover\.c:'
foreign "the text of a STOW-RS server or of libcurl about it" '(reply(->|\.)body|CURLOPT_ERRORBUFFER)' 'service/common/stow/stow\.c:'
foreign "a peer's Error Comment" 'DCM_ErrorComment|0x00000902' '-'
foreign "a patient's name or ID" 'DCM_Patient(s?Name|ID)\b' 'dicom/(read/image/peek|init|deidentify/dataset_cleaner|net/scu_query)\.cc:'
offend 'the log must not contain text that may name a patient' \
    "$(grep -rnE 'LOG_STR\([^)]*(original|relative|reply|series_description)' service --include='*.c' | grep -v 'handover->relative')" # a UID

# The emulator (tests/emulator/) replaces this file.
offend 'PTX must be in kernels/cuda/ptx.cuh' \
    "$(grep -rnE '(^|[^a-z_])asm( volatile)?\(' kernels --include='*.cu' --include='*.cuh' | grep -v '^kernels/cuda/ptx\.cuh:')"

# Paths of includes begin at the root, so that each shows its folder.
offend 'the path of an include must begin at the root' \
    "$(includes '' "${rooms[@]}" tests | grep '#[[:space:]]*include[[:space:]]*"' |
        grep -vE 'include "(base|kernels|dicom|db|config|service|tests)/|include "dcmtk/')"

# deny FOLDER OTHER...: files of the folder must not include files of the others.
deny() {
    local room=$1 other
    shift
    for other; do
        [[ $other == "$room" ]] || offend "$room must not include $other" "$(includes "$other/" "$room")"
    done
}

# base/ includes no other folder. kernels/, dicom/, db/ and config/ include only base/.
deny base kernels dicom db config service
for leaf in kernels dicom db config; do
    deny $leaf kernels dicom db config service
done
# Within service/ each folder may include common/, and folders that run jobs include pipeline/.
roles=(service/{daemon,receiver,worker,sender,web,slurm,program,cli})
for room in "${roles[@]}"; do
    deny "$room" "${roles[@]}"
done
for room in service/{daemon,receiver,sender,web,slurm}; do
    deny "$room" service/pipeline
done
deny service/pipeline "${roles[@]}"
deny service/common service/pipeline "${roles[@]}"

# circles FOLDER: includes within a folder must not be circular. A file and its headers count as one.
circles() {
    offend "circular includes in $1" "$(grep -roE --include='*.[ch]' '^#include "[^"]+"' "$1" |
        sed -E 's/(_private)?\.[ch]:#include "/ /; s/(_private)?\.h"$//' |
        awk -v room="$1/" '$1 != $2 && index($2, room) == 1' | tsort 2>&1 >/dev/null)"
}
for room in db service/{common,daemon,receiver,worker,sender,web,slurm,program}; do
    circles "$room"
done
exit $((offences > 0))
