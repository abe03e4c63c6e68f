# noctule.bash - what bash completes of noctule(1); written by unit.cli_commands.
# shellcheck shell=bash

# _noctule_names WHAT OPTION...: the pipelines, destinations or programs of the configuration.
_noctule_names() {
    noctule "${@:2}" check-config 2>/dev/null | sed -n "s/^$1: \\([^ ,]*\\).*/\\1/p"
}

_noctule() {
    local current=${COMP_WORDS[COMP_CWORD]} command='' kind='' words='' options='' globals=() i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --config | -c | --root | -r)
            globals+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}")
            ((++i))
            ;;
        -*) ;;
        *) [[ $command ]] || command=${COMP_WORDS[i]} ;;
        esac
    done
    case $command in
    run)
        options='--pipeline --output --stack --stacks --object --mask --image --pairs --label --keep-masks --slices --accept-missing --threads --json --quiet --cohort --table'
        kind=files
        ;;
    explain)
        options='--pipeline --json'
        kind=files
        ;;
    compare)
        options='--images --region --tolerance --json'
        kind=files
        ;;
    validate)
        options='--references --others --region --output --dry-run --quiet'
        kind=pipelines
        ;;
    run-job)
        options='--scratch --series --programs'
        kind=folders
        ;;
    status)
        options='--watch --interval --json --check'
        kind=nothing
        ;;
    report)
        options='--since --until --json --html --send'
        kind=nothing
        ;;
    list)
        options='--sort --after --limit --csv --json'
        kind=nothing
        ;;
    jobs)
        options='--state --pipeline --series --code --modality --accession --patient --sender --since --limit --watch --interval --json'
        kind=nothing
        ;;
    review)
        options='--pipeline --series --limit --json'
        kind=nothing
        ;;
    show)
        options='--json'
        kind=nothing
        ;;
    features)
        options='--segment --json --csv'
        kind=nothing
        ;;
    cohort)
        options='--pipeline --since --modality --all-revisions --dictionary --reasons --failed'
        kind=nothing
        ;;
    similar)
        options='--segment --by --distance --pipeline --spacing --limit --evaluate --labels --csv --json'
        kind=nothing
        ;;
    series)
        options='--state --series --code --modality --accession --patient --sender --since --limit --watch --interval --json'
        kind=nothing
        ;;
    programs)
        options='--runs --limit --watch --interval --json'
        kind=programs
        ;;
    validations)
        options='--pipeline --limit --json'
        kind=nothing
        ;;
    destinations)
        options='--json'
        kind=nothing
        ;;
    deliveries)
        options='--state --destination --job --limit --watch --interval --json'
        kind=nothing
        ;;
    retry)
        options='--current --force --program --failed --pipeline --code --since --dry-run'
        kind=nothing
        ;;
    submit)
        options='--pipeline --stacks --rules --all --since --force --dry-run --json'
        kind=nothing
        ;;
    cancel)
        options=''
        kind=nothing
        ;;
    accept)
        options='--pipeline --code --dry-run --delivery'
        kind=nothing
        ;;
    reject)
        options='--delivery'
        kind=nothing
        ;;
    undo)
        options=''
        kind=nothing
        ;;
    hold)
        options='--pipeline --destination --queue --reason'
        kind=nothing
        ;;
    release)
        options='--pipeline --destination --queue'
        kind=nothing
        ;;
    pause)
        options='--reason'
        kind=nothing
        ;;
    resume)
        options=''
        kind=nothing
        ;;
    drain)
        options='--reason --wait'
        kind=nothing
        ;;
    priority)
        options=''
        kind=nothing
        ;;
    complete)
        options='--accept-missing'
        kind=nothing
        ;;
    ack)
        options='--until --reason --undo'
        kind=nothing
        ;;
    resend)
        options='--job --destination --failed'
        kind=nothing
        ;;
    purge)
        options='--patient --before --undelivered --dry-run --yes --json'
        kind=nothing
        ;;
    pull)
        options='--accession --study --series --list --dry-run --cancel --state --batch --limit --json'
        kind=nothing
        ;;
    quarantine)
        options='--code --since --limit --json'
        kind=nothing
        ;;
    identity)
        options=''
        kind=nothing
        ;;
    reload)
        options=''
        kind=nothing
        ;;
    ping)
        options=''
        kind=nothing
        ;;
    check-config)
        options='--print'
        kind=files
        ;;
    doctor)
        options='--nodes --json'
        kind=nothing
        ;;
    echo)
        options=''
        kind=destinations
        ;;
    presets)
        options='--json --test --output'
        kind=presets
        ;;
    profiles)
        options='--json --pyradiomics'
        kind=profiles
        ;;
    version)
        options=''
        kind=nothing
        ;;
    help)
        options=''
        kind=commands
        ;;
    *) kind=commands ;;
    esac
    options+=' --config --root --help --version'
    local commands='run explain compare validate run-job status report list jobs review show features cohort similar series programs validations destinations deliveries retry submit cancel accept reject undo hold release pause resume drain priority complete ack resend purge pull quarantine identity reload ping check-config doctor echo presets profiles version help'
    local value=yes
    case $command:${COMP_WORDS[COMP_CWORD - 1]} in
    *:--config | *:-c) kind=files ;;
    *:--root | *:-r) kind=folders ;;
    run:--pipeline | run:-p) kind=pipelines ;;
    run:--output | run:-o) kind=folders ;;
    run:--stack | run:-s) kind=nothing ;;
    run:--stacks) kind=nothing ;;
    run:--object) kind=files ;;
    run:--mask) kind=files ;;
    run:--image) kind=files ;;
    run:--pairs) kind=files ;;
    run:--label) kind=nothing ;;
    run:--threads | run:-t) kind=nothing ;;
    explain:--pipeline | explain:-p) kind=pipelines ;;
    compare:--images) kind=files ;;
    compare:--region) kind=files ;;
    compare:--tolerance) kind=nothing ;;
    validate:--references) kind=files ;;
    validate:--others) kind=files ;;
    validate:--region) kind=files ;;
    validate:--output | validate:-o) kind=folders ;;
    run-job:--scratch) kind=folders ;;
    run-job:--series) kind=folders ;;
    status:--interval) kind=nothing ;;
    report:--since) kind=nothing ;;
    report:--until) kind=nothing ;;
    report:--html) kind=files ;;
    list:--sort) kind=nothing ;;
    list:--after) kind=nothing ;;
    list:--limit) kind=nothing ;;
    jobs:--state) words='READY RUNNING DONE EMPTY REVIEW REJECTED DELAYED FAILED CANCELLED' ;;
    jobs:--pipeline) kind=pipelines ;;
    jobs:--series) kind=nothing ;;
    jobs:--code) kind=nothing ;;
    jobs:--modality) kind=nothing ;;
    jobs:--accession) kind=nothing ;;
    jobs:--patient) kind=nothing ;;
    jobs:--sender) kind=nothing ;;
    jobs:--since) kind=nothing ;;
    jobs:--limit) kind=nothing ;;
    jobs:--interval) kind=nothing ;;
    review:--pipeline) kind=pipelines ;;
    review:--series) kind=nothing ;;
    review:--limit) kind=nothing ;;
    features:--segment) kind=nothing ;;
    cohort:--pipeline | cohort:-p) kind=pipelines ;;
    cohort:--since) kind=nothing ;;
    cohort:--modality) kind=nothing ;;
    cohort:--dictionary) kind=files ;;
    cohort:--reasons) kind=files ;;
    similar:--segment | similar:-s) kind=nothing ;;
    similar:--by) words='lbp tlbap lanadp patterns glcm' ;;
    similar:--distance) words='chi-square l1 cosine euclidean' ;;
    similar:--pipeline | similar:-p) kind=pipelines ;;
    similar:--spacing) kind=nothing ;;
    similar:--limit) kind=nothing ;;
    similar:--evaluate) words='patient study series job label pipeline modality body_part manufacturer model station description' ;;
    similar:--labels) kind=files ;;
    series:--state) words='GATHERING SETTLED REFUSED' ;;
    series:--series) kind=nothing ;;
    series:--code) kind=nothing ;;
    series:--modality) kind=nothing ;;
    series:--accession) kind=nothing ;;
    series:--patient) kind=nothing ;;
    series:--sender) kind=nothing ;;
    series:--since) kind=nothing ;;
    series:--limit) kind=nothing ;;
    series:--interval) kind=nothing ;;
    programs:--limit) kind=nothing ;;
    programs:--interval) kind=nothing ;;
    validations:--pipeline) kind=pipelines ;;
    validations:--limit) kind=nothing ;;
    deliveries:--state) words='PENDING SENDING SENT DELAYED FAILED REVIEW CANCELLED' ;;
    deliveries:--destination) kind=destinations ;;
    deliveries:--job) kind=nothing ;;
    deliveries:--limit) kind=nothing ;;
    deliveries:--interval) kind=nothing ;;
    retry:--pipeline) kind=pipelines ;;
    retry:--code) kind=nothing ;;
    retry:--since) kind=nothing ;;
    submit:--pipeline) kind=pipelines ;;
    submit:--stacks) kind=nothing ;;
    submit:--since) kind=nothing ;;
    accept:--pipeline) kind=pipelines ;;
    accept:--code) kind=nothing ;;
    hold:--pipeline) kind=pipelines ;;
    hold:--destination) kind=destinations ;;
    hold:--reason) kind=nothing ;;
    release:--pipeline) kind=pipelines ;;
    release:--destination) kind=destinations ;;
    pause:--reason) kind=nothing ;;
    drain:--reason) kind=nothing ;;
    drain:--wait) kind=nothing ;;
    ack:--until) kind=nothing ;;
    ack:--reason) kind=nothing ;;
    resend:--job) kind=nothing ;;
    resend:--destination) kind=destinations ;;
    purge:--patient) kind=nothing ;;
    purge:--before) kind=nothing ;;
    pull:--list) kind=files ;;
    pull:--cancel) kind=nothing ;;
    pull:--state) words='WAITING FINDING MOVING DONE NOT_FOUND PARTIAL FAILED CANCELLED' ;;
    pull:--batch) kind=nothing ;;
    pull:--limit) kind=nothing ;;
    quarantine:--code) kind=nothing ;;
    quarantine:--since) kind=nothing ;;
    quarantine:--limit) kind=nothing ;;
    presets:--test) kind=folders ;;
    presets:--output | presets:-o) kind=folders ;;
    profiles:--pyradiomics) kind=files ;;
    *) value='' ;;
    esac
    [[ $current == -* && ! $value ]] && kind='' words=$options
    case $kind in
    files) return ;; # as bash does
    folders)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
        ;;
    pipelines) words=$(_noctule_names pipeline "${globals[@]}") ;;
    destinations) words=$(_noctule_names destination "${globals[@]}") ;;
    programs) words=$(_noctule_names program "${globals[@]}") ;;
    presets | profiles) words=$(noctule $kind --json 2>/dev/null | sed -n 's/.*"name": "\([^"]*\)".*/\1/p') ;;
    commands) words=$commands ;;
    esac
    compopt +o default 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _noctule noctule
