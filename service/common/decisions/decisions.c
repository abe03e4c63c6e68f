#include "service/common/decisions/decisions.h"

#include <errno.h>
#include <string.h>

const struct decision_rule decision_rules[] = {
    {"accept", "job", CONF_PAGE_REVIEW, PERSON_REVIEWER, false},
    {"reject", "job", CONF_PAGE_REVIEW, PERSON_REVIEWER, true},
    {"undo", "job", CONF_PAGE_REVIEW, PERSON_REVIEWER, false},
    {"accept", "delivery", CONF_PAGE_REVIEW, PERSON_REVIEWER, false},
    {"reject", "delivery", CONF_PAGE_REVIEW, PERSON_REVIEWER, true},
    {"correct", "job", CONF_PAGE_MASKS, PERSON_REVIEWER, false}, /* with a file: UPLOAD, not DECIDE */
    {"retry", "job", CONF_PAGE_JOBS, PERSON_OPERATOR, false},
    {"cancel", "job", CONF_PAGE_JOBS, PERSON_OPERATOR, false},
    {"priority", "job", CONF_PAGE_JOBS, PERSON_OPERATOR, false},
    {"hold", "job", CONF_PAGE_JOBS, PERSON_OPERATOR, false},
    {"release", "job", CONF_PAGE_JOBS, PERSON_OPERATOR, false},
    {"complete", "series", CONF_PAGE_JOBS, PERSON_OPERATOR, false},
    {"hold", "destination", CONF_PAGE_DELIVERIES, PERSON_OPERATOR, false},
    {"release", "destination", CONF_PAGE_DELIVERIES, PERSON_OPERATOR, false},
    {"resend", "destination", CONF_PAGE_DELIVERIES, PERSON_OPERATOR, false},
    {"resend", "delivery", CONF_PAGE_DELIVERIES, PERSON_OPERATOR, false},
    {"release", "file", CONF_PAGE_QUARANTINE, PERSON_OPERATOR, false},
    {"forget", "file", CONF_PAGE_QUARANTINE, PERSON_OPERATOR, false},
    {"acknowledge", "alert", CONF_PAGE_ALERTS, PERSON_OPERATOR, false},
    {"unacknowledge", "alert", CONF_PAGE_ALERTS, PERSON_OPERATOR, false},
    {"save", "filter", CONF_PAGE_FILTERS, PERSON_VIEWER, true},
    {"delete", "filter", CONF_PAGE_FILTERS, PERSON_VIEWER, false},
};

const size_t decision_rule_count = sizeof decision_rules / sizeof *decision_rules;

const struct decision_rule *
decision_find(const char *action, const char *subject, const char **name)
{
    const size_t length = strcspn(subject, " ");
    for (size_t i = 0; i < decision_rule_count; i++) {
        const struct decision_rule *rule = &decision_rules[i];
        if (strcmp(rule->action, action) != 0 || strlen(rule->subject) != length ||
            memcmp(rule->subject, subject, length) != 0 || !subject[length] || !subject[length + 1])
            continue;
        *name = subject + length + 1;
        return rule;
    }
    return NULL;
}

const char *
decision_split_filter(const char *subject, char list[DECISION_LIST])
{
    static const char *const lists[] = {"work", "deliveries"};
    const size_t length = strcspn(subject, " ");
    const char *name = subject[length] ? subject + length + 1 : "";
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strlen(lists[i]) == length && memcmp(lists[i], subject, length) == 0 && *name &&
            strlen(name) <= DECISION_FILTER_NAME) {
            strcpy(list, lists[i]);
            return name;
        }
    return NULL;
}

bool
decision_is_filter(const char *filter)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%=&";
    return *filter && strlen(filter) <= DECISION_REASON && !filter[strspn(filter, allowed)] &&
           strncmp(filter, "text=", 5) != 0 && !strstr(filter, "&text=");
}

int
decision_check(const struct decision_rule *rule, const struct conf_page *page, const char *person,
               enum person_role role, struct error *error)
{
    if (!*person)
        return error_set(error, -EACCES, CODE_NONE, "a decision needs a person with a name: log in");
    if (!(page->may & rule->may))
        return error_set(error, -EACCES, CODE_NONE, "page.may does not allow %s of a %s", rule->action, rule->subject);
    if (role < rule->role)
        return error_set(error, -EACCES, CODE_NONE, "%s is a %s; %s of a %s needs a%s %s", person, person_roles[role],
                         rule->action, rule->subject, rule->role == PERSON_OPERATOR ? "n" : "",
                         person_roles[rule->role]);
    return 0;
}
