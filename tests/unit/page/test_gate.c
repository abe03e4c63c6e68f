/* test_gate.c - access to the web UI: host names and tokens. */
#include "service/web/server/web_access.h"

#include "tests/unit/suite.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef-a-token"

static char local[] = "127.0.0.1", all[] = "", six[] = "::1", name[] = "Noctule.Example.org";
static char *names[] = {name};

static bool
knows(const char *bind, size_t count, const char *host)
{
    char *own = strdup(bind);
    const struct conf_page page = {.port = 1, .bind = own, .hosts = names, .host_count = count};
    const struct web_access access = {.page = &page};
    const bool answer = web_access_is_known_host(&access, host);
    free(own);
    return answer;
}

START_TEST(own_host_names_are_accepted)
{
    static const char *const good[] = {"127.0.0.1",   "127.0.0.1:8042", "localhost",
                                       "LOCALHOST:1", "[::1]:8042",     "192.0.2.7:80"};
    static const char *const bad[] = {
        "",     ":80",       "evil.example",  "evil.example:8042", "localhost.evil.example", "127.0.0.1.evil.example",
        "[::1", "[evil]:80", "localhost:80x", "localhost:80:90",   "127.0.0.1@evil.example"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(knows(local, 0, good[i]) && knows(six, 0, good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!knows(local, 0, bad[i]) && !knows(local, 1, bad[i]), "%s", bad[i]);
    ck_assert(knows(local, 1, "noctule.example.ORG:443") && !knows(local, 0, "noctule.example.org"));
    /* A web UI that other machines reach needs a token; configured names restrict it. */
    ck_assert(knows(all, 0, "host.example") && !knows(all, 1, "host.example") && knows(all, 1, name));
}

END_TEST

static const struct conf_page open_page = {.bind = local};

static bool
lets_in(const char *token, const char *authorization)
{
    struct web_access access = {.page = &open_page};
    snprintf(access.token, sizeof access.token, "%s", token);
    return web_access_is_authorized(&access, authorization);
}

static bool
lets_in_as(const char *user_and_password)
{
    char header[2048] = "Basic ";
    EVP_EncodeBlock((unsigned char *)header + strlen(header), (const unsigned char *)user_and_password,
                    (int)strlen(user_and_password));
    return lets_in(TOKEN, header);
}

START_TEST(a_token_is_shown)
{
    ck_assert(lets_in("", "") && lets_in("", "Bearer whatever"));
    ck_assert(lets_in(TOKEN, "Bearer " TOKEN) && lets_in(TOKEN, "bearer   " TOKEN));
    ck_assert(!lets_in(TOKEN, "") && !lets_in(TOKEN, TOKEN) && !lets_in(TOKEN, "Bearer ") && !lets_in(TOKEN, "Bearer"));
    ck_assert(!lets_in(TOKEN, "Bearer " TOKEN "x") && !lets_in(TOKEN, "Bearer 0123456789abcdef-a-toke"));
    ck_assert(!lets_in(TOKEN, "Digest " TOKEN) && !lets_in(TOKEN, "Basic " TOKEN) && !lets_in(TOKEN, "Basic ===="));
    ck_assert(lets_in_as("anna:" TOKEN) && lets_in_as(":" TOKEN));
    ck_assert(!lets_in_as(TOKEN) && !lets_in_as("anna:") && !lets_in_as("anna:x:" TOKEN) && !lets_in_as(TOKEN ":anna"));
    char huge[16384];
    memset(huge, 'A', sizeof huge - 1);
    memcpy(huge, "Basic ", 6);
    huge[sizeof huge - 1] = '\0';
    ck_assert(!lets_in(TOKEN, huge));
}

END_TEST

static int
read_token(const char *text, size_t size, struct web_access *access)
{
    char path[] = "/tmp/noctule-gate-XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
    close(fd);
    struct error error;
    const struct conf_page page = {.bind = local, .token_file = path};
    const int rc = web_access_read_token(&page, access, &error);
    unlink(path);
    return rc;
}

START_TEST(a_token_is_the_first_line_of_a_file)
{
    struct web_access access;
    struct error error;
    ck_assert_int_eq(read_token(TOKEN "\nmore\n", strlen(TOKEN) + 6, &access), 0);
    ck_assert_str_eq(access.token, TOKEN);
    ck_assert_int_eq(read_token(TOKEN, strlen(TOKEN), &access), 0);
    ck_assert_str_eq(access.token, TOKEN);
    char most[WEB_ACCESS_TOKEN];
    memset(most, 'x', sizeof most);
    ck_assert_int_eq(read_token(most, WEB_ACCESS_TOKEN - 2, &access), 0);
    ck_assert_int_eq(read_token(most, WEB_ACCESS_TOKEN, &access), -EINVAL);
    ck_assert_int_eq(read_token("short\n", 6, &access), -EINVAL);
    ck_assert_int_eq(read_token("\n", 1, &access), -EINVAL);
    char nowhere[] = "/nowhere/token";
    const struct conf_page page = {.bind = local, .token_file = nowhere};
    ck_assert_int_eq(web_access_read_token(&page, &access, &error), -ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/token"));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("page_gate");
    TCase *tests = tcase_create("gate");
    tcase_add_test(tests, own_host_names_are_accepted);
    tcase_add_test(tests, a_token_is_shown);
    tcase_add_test(tests, a_token_is_the_first_line_of_a_file);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
