/*
 * Hashes of identifiers: the same hash while the key exists, and an error if memory is short.
 * Without memory to initialise itself, OpenSSL would crash at a later digest.
 */
#include "service/common/layout.h"
#include "service/common/pseudonym.h"
#include "tests/unit/starved_malloc.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/noctule_pseudonym.XXXXXX";

static void
setup(void)
{
    strcpy(root + sizeof root - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void
teardown(void)
{
    char path[sizeof root + sizeof "/" LAYOUT_PSEUDONYM_KEY];
    snprintf(path, sizeof path, "%s/" LAYOUT_PSEUDONYM_KEY, root);
    unlink(path);
    rmdir(root);
}

START_TEST(a_pseudonym_is_stable_for_its_key)
{
    struct pseudonym_key key, again;
    char word[PSEUDONYM_SIZE], other[PSEUDONYM_SIZE];
    ck_assert_int_eq(pseudonym_key_read(root, &key), -ENOENT);
    ck_assert_int_eq(pseudonym_key_make(root, &key), 0);
    ck_assert_int_eq(pseudonym_key_make(root, &again), 0);
    ck_assert_mem_eq(&again, &key, sizeof key);
    ck_assert_int_eq(pseudonym_of(&key, "ACC-1", word), 0);
    ck_assert_int_eq(pseudonym_of(&again, "ACC-1", other), 0);
    ck_assert_str_eq(word, other);
    ck_assert_int_eq(pseudonym_of(&key, "ACC-2", other), 0);
    ck_assert_str_ne(word, other);
    ck_assert_int_eq(pseudonym_of(&key, "", other), 0);
    ck_assert_str_eq(other, "");
}

END_TEST

enum outcome { WHOLE, TOLD, NOT_HIT, WRONG };

static enum outcome
read_starved(int n, const char *word)
{
    struct pseudonym_key key;
    char made[PSEUDONYM_SIZE];
    countdown = n;
    int rc = pseudonym_key_read(root, &key);
    if (rc)
        return rc == -ENOMEM && hit ? TOLD : WRONG;
    rc = pseudonym_of(&key, "ACC-1", made);
    if (rc && (rc != -ENOMEM || !hit))
        return WRONG;
    countdown = 0;
    for (int i = 0; i < 3; i++)
        if (pseudonym_of(&key, "ACC-1", made) != 0 || strcmp(made, word) != 0)
            return WRONG;
    return hit ? WHOLE : NOT_HIT;
}

/* Runs in a new process, which has not computed a digest yet. */
static int
apart(int n, const char *word)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(read_starved(n, word));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void
word_of(const char *identifier, char word[PSEUDONYM_SIZE])
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct pseudonym_key key;
        const int rc = pseudonym_key_make(root, &key);
        _exit(rc || pseudonym_of(&key, identifier, word) || write(ends[1], word, PSEUDONYM_SIZE) != PSEUDONYM_SIZE);
    }
    ck_assert_int_eq(read(ends[0], word, PSEUDONYM_SIZE), PSEUDONYM_SIZE);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
}

START_TEST(without_memory_a_key_is_complete_or_absent)
{
    char word[PSEUDONYM_SIZE];
    int n = 1, status;
    word_of("ACC-1", word);
    while (status = apart(n, word), !WIFEXITED(status) || WEXITSTATUS(status) != NOT_HIT) {
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != WRONG, "allocation %d: %#x", n, (unsigned)status);
        n++;
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common_pseudonym");
    TCase *tests = tcase_create("pseudonym");
    tcase_add_checked_fixture(tests, setup, teardown);
    /* Must be first: no digest was computed before. */
    tcase_add_test(tests, without_memory_a_key_is_complete_or_absent);
    tcase_add_test(tests, a_pseudonym_is_stable_for_its_key);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
