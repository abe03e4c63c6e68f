/*
 * expression.h - compiles regular expressions and matches them in time linear in the subject.
 *
 * Accepts POSIX extended syntax, with \w, \W, \s, \S, \b and \B. Letters match in both cases. A dot
 * and a bracket expression match one character of UTF-8. Rejects back-references, (?...) groups,
 * other escapes of letters, collating elements, braces that are no repetition, and repetitions of
 * more than 1000. RE2 may use EXPRESSION_BYTES of memory per expression. Matching is safe from any
 * thread.
 */
#ifndef NOCTULE_CONFIG_EXPRESSION_H
#define NOCTULE_CONFIG_EXPRESSION_H

#ifdef __cplusplus
extern "C" {
#endif

#define EXPRESSION_BYTES  (1 << 20)
#define EXPRESSION_REASON 256

struct expression;

/*
 * Compiles the text. Returns 0, -ENOMEM, or -EINVAL with a reason such as
 * `character 4, "\1": back-references are not supported`. The caller must free the expression with
 * expression_free().
 */
int expression_compile(const char *text, struct expression **expression, char reason[EXPRESSION_REASON]);
/* Returns 1 if a part of the subject matches, 0 if none does, or -ENOMEM. */
int expression_match(const struct expression *expression, const char *subject);
void expression_free(struct expression *expression);

#ifdef __cplusplus
}
#endif
#endif
