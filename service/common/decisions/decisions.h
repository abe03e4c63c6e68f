/*
 * decisions.h - decisions that persons make through the web UI, and these persons.
 *
 * The web process and the daemon check them by the same code. A person has a name and a role, by a token of
 * page.tokens_file or by the proxy of page.user_header. All functions may be called by any thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_DECISIONS_DECISIONS_H
#define NOCTULE_SERVICE_COMMON_DECISIONS_DECISIONS_H

#include "base/error.h"
#include "config/config.h"

#define PERSON_NAME     65 /* its size, with the terminator */
#define PERSON_DIGEST   65 /* of a SHA-256 in hexadecimal, likewise */
#define DECISION_REASON 400

enum person_role { PERSON_VIEWER, PERSON_REVIEWER, PERSON_OPERATOR };

extern const char *const person_roles[PERSON_OPERATOR + 1];

/* Returns the role of that name, or -1. */
int person_role_of(const char *word);

struct person {
    char name[PERSON_NAME];
    char token[PERSON_DIGEST]; /* SHA-256 of the token; "" without one */
    enum person_role role;
};

struct persons {
    struct person *at;
    size_t count;
};

/* Reads a file of persons (page.tokens_file). Returns 0 or -errno with a message that names the line, but no text of it.
 * The caller must call persons_free(). */
int persons_read(const char *path, struct persons *persons, struct error *error);
void persons_free(struct persons *persons);

/* Returns NULL if there is no such person. */
const struct person *persons_find(const struct persons *persons, const char *name);

/* Checks a name from a proxy: 1 to 64 bytes of UTF-8 without control characters. */
bool person_is_name(const char *name);
/* Returns the role of a name from the proxy. */
enum person_role person_proxy_role(const struct conf_page *page, const char *name);

/* A kind of decision. */
struct decision_rule {
    const char *action;  /* "hold" */
    const char *subject; /* its kind: "destination" */
    unsigned may;        /* enum conf_page_may */
    enum person_role role;
    bool has_reason; /* a reason is required */
};

extern const struct decision_rule decision_rules[];
extern const size_t decision_rule_count;

/* Finds the rule for an action on a subject such as "destination PACS", and sets *name to "PACS". Returns NULL if there
 * is none. */
const struct decision_rule *decision_find(const char *action, const char *subject, const char **name);

#define DECISION_LIST        16
#define DECISION_FILTER_NAME 60

/* Sets the list of a filter "work Failed CT", and returns its name; NULL: there is no such list, or the name is too long. */
const char *decision_split_filter(const char *subject, char list[DECISION_LIST]);
/* Checks the query of a list's address: escaped, and without `text`, which can name a patient. */
bool decision_is_filter(const char *filter);

/* Returns 0, or -EACCES with the reason in words. */
int decision_check(const struct decision_rule *rule, const struct conf_page *page, const char *person,
                   enum person_role role, struct error *error);

#endif
