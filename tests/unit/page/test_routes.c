/* test_routes.c - routes without a database: access control, existing pages and errors. */
#include "service/web/web.h"

#include "base/text.h"
#include "service/common/slices/slices.h"
#include "service/web/pages/web_view.h"
#include "tests/unit/edge.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef"

static char local[] = "127.0.0.1";
static char *const root = scratch;
static char database[300];
static struct conf conf;
static struct web page;

static void
open_page(void)
{
    scratch_make();
    snprintf(database, sizeof database, "%s/noctule.db", root);
    conf = (struct conf){.root = root, .page = {.port = 1, .bind = local}};
    page = (struct web){.conf = &conf, .database = database, .access = {.page = &conf.page}};
}

static void
close_page(void)
{
    web_kept_close_old(&page.kept, 0);
    scratch_remove();
}

static char body[65536];

/* Requests a page. Returns the status; the text is in `body`. */
static int
answer_of(const char *path, const char *id, const char *authorization)
{
    struct web_request request = {.path = path, .host = "localhost", .authorization = authorization};
    struct web_reply answer = {.status = 200};
    struct text_stream stream;
    for (int i = 0; i < REQUEST_VALUE_COUNT; i++)
        request.values[i] = "";
    request.values[REQUEST_id] = id;
    ck_assert_int_eq(text_open(&stream), 0);
    answer.out = stream.out;
    web_answer(&page, &request, &answer);
    ck_assert_int_eq(text_close(&stream), 0);
    snprintf(body, sizeof body, "%s", answer.bytes ? "bytes" : stream.bytes);
    ck_assert_int_eq(answer.needs_token, answer.status == 401);
    free(answer.bytes);
    free(stream.bytes);
    return answer.status;
}

START_TEST(without_a_database)
{
    ck_assert_int_eq(answer_of("/healthz", "", ""), 200);
    ck_assert_str_eq(body, "ok\n");
    ck_assert_int_eq(answer_of("/style.css", "", ""), 200);
    ck_assert_ptr_nonnull(strstr(body, "frame.css"));
    ck_assert_int_eq(answer_of("/icon.svg", "", ""), 200);
    ck_assert(!page.lost);
    ck_assert_int_eq(answer_of("/", "", ""), 503);
    ck_assert_ptr_nonnull(strstr(body, "noctule.db")); /* with the reason */
    ck_assert(page.lost);
    ck_assert_int_eq(answer_of("/readyz", "", ""), 503);
    ck_assert_ptr_null(strstr(body, root)); /* without a token, the reason must not be sent */
    ck_assert_int_eq(answer_of("/metrics", "", ""), 503);
}

END_TEST

START_TEST(unknown_paths_are_not_found)
{
    static const char *const paths[] = {"",           "/review/",    "//review", "/../noctule.db", "/noctule.db",
                                        "/preview/1", "/index.html", "*"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        ck_assert_msg(answer_of(paths[i], "", "") == 404, "%s", paths[i]);
    ck_assert_ptr_null(page.report);
    /* The style of a page is a relative link, which only addresses without folders have. */
    answer_of("/index.html", "", "");
    ck_assert_ptr_nonnull(strstr(body, "href=\"style.css\""));
    answer_of("/job/1", "", "");
    ck_assert_str_eq(body, "Not found: this page does not exist\n");
}

END_TEST

START_TEST(a_token_is_required_except_for_health)
{
    strcpy(page.access.token, TOKEN);
    static const char *const closed[] = {"/", "/review", "/preview", "/metrics", "/nothing", "/search"};
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        ck_assert_msg(answer_of(closed[i], "1", "Bearer x") == 401, "%s", closed[i]);
    ck_assert_int_eq(answer_of("/healthz", "", ""), 200);
    ck_assert_int_eq(answer_of("/readyz", "", ""), 503);
    ck_assert_int_eq(answer_of("/style.css", "", ""), 200);
    ck_assert_int_eq(answer_of("/nothing", "", "Bearer " TOKEN), 404);
}

END_TEST

/* Writes outbox/7/preview.png with this size. */
static void
write_preview(off_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/outbox", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/outbox/7", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/outbox/7/preview.png", root);
    unlink(path);
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "\x89PNG\r\n\x1a\n", 8), 8);
    ck_assert_int_eq(ftruncate(fd, size), 0);
    close(fd);
}

START_TEST(previews_are_requested_by_number)
{
    const struct edge edge = EDGE(PREVIEW_MIB);
    write_preview(100);
    ck_assert_int_eq(answer_of("/preview", "7", ""), 200);
    ck_assert_str_eq(body, "bytes");
    static const char *const ids[] = {
        "", "8", "0", "-7", "7x", " 7", "+7", "../7", "7/../7", "7%2f", "99999999999999999999"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        ck_assert_msg(answer_of("/preview", ids[i], "") == 404, "%s", ids[i]);
    write_preview((off_t)edge.most << 20);
    ck_assert_int_eq(answer_of("/preview", "7", ""), 200);
    write_preview(((off_t)edge.most << 20) + 1);
    ck_assert_int_eq(answer_of("/preview", "7", ""), 404);
}

END_TEST

START_TEST(a_preview_is_a_picture_and_no_link)
{
    char path[512], target[512];
    unsigned char *bytes;
    size_t size;
    write_preview(100);
    ck_assert_int_eq(web_preview_find(&page, 7, &bytes, &size), 0);
    free(bytes);
    snprintf(path, sizeof path, "%s/outbox/7/preview.png", root);
    snprintf(target, sizeof target, "%s/outbox/7/other.png", root);
    ck_assert_int_eq(rename(path, target), 0);
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_int_eq(web_preview_find(&page, 7, &bytes, &size), -ELOOP);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(web_preview_find(&page, 7, &bytes, &size), -EBADMSG);
    unlink(path);
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "GIF89a, and so on", 17), 17);
    close(fd);
    ck_assert_int_eq(web_preview_find(&page, 7, &bytes, &size), -EBADMSG);
}

END_TEST

/* Writes outbox/7/slices.nslc: one slice of zeros. */
static void
write_slices(int32_t columns, int32_t rows)
{
    struct image_rescale rescale = {1, 0};
    struct slices_volume volume = {.size = {columns, rows, 1},
                                   .pixel = IMAGE_UINT16,
                                   .spacing = {1, 1, 1},
                                   .window = {0, 1},
                                   .rescale_count = 1,
                                   .rescales = &rescale};
    uint16_t *voxels = calloc((size_t)columns * (size_t)rows, sizeof *voxels);
    const struct slices_request request = {&volume, voxels, NULL, 1};
    write_preview(100);
    const int fd = open(scratch_path("outbox/7/" SLICES_FILE), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(slices_write(&request, fd), 0);
    close(fd);
    free(voxels);
}

START_TEST(a_plane_has_a_largest_size)
{
    const struct edge edge = EDGE(PLANE_MIB);
    const int32_t columns = 20, rows = (int32_t)(((edge.most << 20) - 88) / 2 / columns); /* 88 bytes are the head */
    ck_assert_int_eq(88 + 2 * columns * rows, edge.most << 20);
    write_slices(columns, rows);
    ck_assert_int_eq(answer_of("/api/v1/jobs/7/planes/ax/0", "", ""), 200);
    write_slices(columns, rows + 1);
    ck_assert_int_eq(answer_of("/api/v1/jobs/7/planes/ax/0", "", ""), 413);
    ck_assert_int_eq(answer_of("/api/v1/jobs/7/planes/ax/1", "", ""), 404);
    ck_assert_int_eq(answer_of("/api/v1/jobs/7/planes/ax/0.png", "", ""), 200);
    ck_assert_int_eq(answer_of("/api/v1/jobs/8/planes", "", ""), 404);
}

END_TEST

START_TEST(planes_have_threads_of_their_own)
{
    ck_assert_int_eq(web_turn("/api/v1/jobs/7/planes/cor/12"), WEB_SERVER_BESIDE);
    ck_assert_int_eq(web_turn("/api/v1/jobs/7/planes/cor/12.png"), WEB_SERVER_BESIDE);
    ck_assert_int_eq(web_turn("/api/v1/jobs/7/planes"), WEB_SERVER_BESIDE);
    ck_assert_int_eq(web_turn("/api/v1/jobs/7"), WEB_SERVER_IN_TURN);
    ck_assert_int_eq(web_turn("/job"), WEB_SERVER_IN_TURN);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("page_routes");
    TCase *tests = tcase_create("routes");
    tcase_add_checked_fixture(tests, open_page, close_page);
    tcase_add_test(tests, without_a_database);
    tcase_add_test(tests, unknown_paths_are_not_found);
    tcase_add_test(tests, a_token_is_required_except_for_health);
    tcase_add_test(tests, previews_are_requested_by_number);
    tcase_add_test(tests, a_preview_is_a_picture_and_no_link);
    tcase_add_test(tests, a_plane_has_a_largest_size);
    tcase_add_test(tests, planes_have_threads_of_their_own);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
