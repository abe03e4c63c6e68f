/* wish.h - what the rules, or an operator, want done with a series: which stacks by which pipeline. */
#ifndef NOCTULE_WISH_H
#define NOCTULE_WISH_H

#include "service/common/rules.h"
#include "service/daemon/core.h"

struct wish {
    struct rules_pick *picks;
    size_t count;
    struct rules_outcome outcome;
};

/* Of the rules and titles in force; or of this rule alone, NULL: not. -ENOMEM. */
int wish_make(const struct conf *conf, const struct queue_series *series,
              const struct rules_stack *stacks, size_t count, const struct conf_rule *only,
              struct wish *wish);
void wish_release(struct wish *wish);

/* One job of a wish. */
struct wish_job {
    const char *stack;
    const struct rules_pick *pick;
    bool again, dry_run; /* as in queue_new_job */
    const char *asked;   /* likewise */
    int64_t id;          /* of the job: the new one, or with -EEXIST the one that there is */
};

/* In the open batch, as queue_add_job does; stops those that give way. */
int wish_add_job(struct core *core, const struct queue_series *series, struct wish_job *job);

#endif
