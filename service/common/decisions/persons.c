/* persons.c - see decisions.h. */
#include "service/common/decisions/decisions.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PERSONS 1000
#define MAX_LINE    512

const char *const person_roles[] = {
    [PERSON_VIEWER] = "viewer", [PERSON_REVIEWER] = "reviewer", [PERSON_OPERATOR] = "operator"};

int
person_role_of(const char *word)
{
    for (int role = PERSON_VIEWER; role <= PERSON_OPERATOR; role++)
        if (strcmp(person_roles[role], word) == 0)
            return role;
    return -1;
}

/* Reads "NAME ROLE SHA256". Returns the fault, or NULL. */
static const char *
person_parse(const struct persons *persons, char *line, struct person *person)
{
    static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-";
    char *rest = line, *words[3];
    for (size_t i = 0; i < 3; i++)
        if (!(words[i] = strtok_r(rest, " \t\r\n", &rest)))
            return "must be NAME ROLE SHA256";
    if (strtok_r(rest, " \t\r\n", &rest))
        return "must be NAME ROLE SHA256";
    const int role = person_role_of(words[1]);
    if (strlen(words[0]) >= PERSON_NAME || words[0][strspn(words[0], characters)])
        return "the name may only contain A-Z a-z 0-9 . _ @ -, and up to 64 of them";
    if (role < 0)
        return "the role must be viewer, reviewer or operator";
    if (strlen(words[2]) != PERSON_DIGEST - 1 || words[2][strspn(words[2], "0123456789abcdefABCDEF")])
        return "the SHA-256 must be 64 hexadecimal digits: printf %s TOKEN | sha256sum";
    if (persons_find(persons, words[0]))
        return "the name is in an earlier line, too";
    person->role = (enum person_role)role;
    strcpy(person->name, words[0]);
    for (size_t i = 0; i < PERSON_DIGEST; i++)
        person->token[i] = (char)tolower((unsigned char)words[2][i]);
    return NULL;
}

int
persons_read(const char *path, struct persons *persons, struct error *error)
{
    char line[MAX_LINE];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    int rc = in ? 0 : -errno;
    *persons = (struct persons){.at = calloc(MAX_PERSONS, sizeof *persons->at)};
    if (!persons->at)
        rc = -ENOMEM;
    if (rc)
        error_set(error, rc, CODE_NONE, "cannot read %s (page.tokens_file): %s", path, strerror(-rc));
    for (int number = 1; rc == 0 && fgets(line, sizeof line, in); number++) {
        if (line[strspn(line, " \t\r\n")] == '\0' || *line == '#')
            continue;
        const char *fault = !strchr(line, '\n') && !feof(in) ? "is too long"
                            : persons->count == MAX_PERSONS  ? "is one too many"
                                                            : person_parse(persons, line, &persons->at[persons->count]);
        if (fault)
            rc = error_set(error, -EINVAL, CODE_NONE, "%s (page.tokens_file), line %d: %s", path, number, fault);
        else
            persons->count++;
    }
    if (rc == 0 && ferror(in))
        rc = error_set(error, -EIO, CODE_NONE, "cannot read %s (page.tokens_file)", path);
    if (in)
        fclose(in);
    else if (fd >= 0)
        close(fd);
    explicit_bzero(line, sizeof line);
    if (rc)
        persons_free(persons);
    return rc;
}

void
persons_free(struct persons *persons)
{
    free(persons->at);
    *persons = (struct persons){0};
}

const struct person *
persons_find(const struct persons *persons, const char *name)
{
    for (size_t i = 0; i < persons->count; i++)
        if (strcmp(persons->at[i].name, name) == 0)
            return &persons->at[i];
    return NULL;
}

bool
person_is_name(const char *name)
{
    size_t at = 0, length;
    while ((length = text_line_length(name + at)) > 0)
        at += length;
    return at > 0 && at < PERSON_NAME && !name[at];
}

enum person_role
person_proxy_role(const struct conf_page *page, const char *name)
{
    for (size_t i = 0; i < page->operator_count; i++)
        if (strcmp(page->operators[i], name) == 0)
            return PERSON_OPERATOR;
    for (size_t i = 0; i < page->reviewer_count; i++)
        if (strcmp(page->reviewers[i], name) == 0)
            return PERSON_REVIEWER;
    return PERSON_VIEWER;
}
