/*
 * The receiver's frames and the daemon's handling of them: items written by the sender's own code
 * end as rows.
 */
#include "service/daemon/series/series.h"

#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/series/inspection.h"
#include "service/daemon/series/known.h"
#include "service/receiver/spool/import_tokens.h"
#include "tests/unit/db/sample.h"
#include "tests/unit/starved_malloc.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

static struct sample s;
static struct core core;
static struct conf conf;

static void
set_up(void)
{
    static const struct batch_events no_events = {0};
    static const struct pool_options no_children = {.program = "", .config_file = ""};
    sample_open(&s);
    core = (struct core){.root = s.folder, .conf = &conf, .queue = s.queue};
    ck_assert_int_eq(uv_loop_init(&core.loop), 0);
    due_init(&core.jobs_due, &core.loop);
    due_init(&core.deliveries_due, &core.loop);
    ck_assert_int_eq(pool_open(&core.loop, &no_children, &core.pool), 0);
    core.receiver = pool_reserve(core.pool, "intake", 0); /* not running: gets no frame */
    ck_assert_int_eq(core.receiver, 0);
    ck_assert_int_eq(batch_open(&core.loop, s.queue, &no_events, &core.batch), 0);
    ck_assert_int_eq(inspections_open(&core, &core.inspections), 0);
    ck_assert_int_eq(deliveries_open(&core, &core.deliveries), 0);
    ck_assert_int_eq(known_open(&core, &core.known), 0);
}

static void
tear_down(void)
{
    batch_close(core.batch);
    inspections_close(core.inspections);
    deliveries_close(core.deliveries);
    known_close(core.known);
    pool_close(core.pool);
    uv_close((uv_handle_t *)&core.jobs_due.timer, NULL);
    uv_close((uv_handle_t *)&core.deliveries_due.timer, NULL);
    uv_run(&core.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&core.loop), 0);
    sample_close(&s);
}

/* The pool's answers, by --wrap. */
static int send_error; /* of each frame to a child; 0: success */
static bool is_there;  /* whether the receiver runs */
static int kills;
static int inspected; /* series in the last INSPECT, if the receiver runs */
static int left;      /* remaining successful allocations at that time */

int __real_pool_send(struct pool *pool, int slot, struct proto_writer *writer);
int __wrap_pool_send(struct pool *pool, int slot, struct proto_writer *writer);
bool __real_pool_ready(const struct pool *pool, int slot);
bool __wrap_pool_ready(const struct pool *pool, int slot);
void __real_pool_kill(struct pool *pool, int slot, const char *why);
void __wrap_pool_kill(struct pool *pool, int slot, const char *why);

/* INSPECT must contain whole paths, or not be sent. */
static int
inspect_of_sound_paths(struct proto_writer *writer)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    struct message_inspect inspect;
    struct message_path file;
    int files = 0;
    const int error = proto_finish(writer);
    left = countdown;
    countdown = 0;
    if (!error) {
        ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
        ck_assert_int_eq(proto_next(&stream, &reader), 1);
        ck_assert_int_eq(message_read_inspect(&reader, &inspect), 0);
        for (; message_next_path(&reader, &file); files++)
            ck_assert_int_eq(file.path[0], '/');
        ck_assert_int_eq(files, 1);
        inspected++;
        proto_stream_release(&stream);
    }
    proto_release(writer);
    return error;
}

int
__wrap_pool_send(struct pool *pool, int slot, struct proto_writer *writer)
{
    if (!send_error && is_there && writer->type == PROTO_INSPECT)
        return inspect_of_sound_paths(writer);
    if (!send_error)
        return __real_pool_send(pool, slot, writer);
    proto_release(writer);
    return send_error;
}

bool
__wrap_pool_ready(const struct pool *pool, int slot)
{
    return is_there || __real_pool_ready(pool, slot);
}

void
__wrap_pool_kill(struct pool *pool, int slot, const char *why)
{
    kills++;
    __real_pool_kill(pool, slot, why);
}

/* Creates the file at its path. */
static void
put_file(const char *path)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", s.folder, path);
    for (char *slash = whole + strlen(s.folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0700);
    }
    FILE *file = fopen(whole, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

static void
hand_frame(struct proto_writer *writer)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    arrivals_frame(&core, &reader);
    ck_assert_int_eq(proto_end(&reader), 0);
    proto_stream_release(&stream);
    proto_release(writer);
}

static void
send_frame(struct proto_writer *writer)
{
    hand_frame(writer);
    ck_assert_int_eq(batch_commit(core.batch), 0);
}

/* Sends an item from import_token_write() to its row and checks that it is complete. */
static void
send_item(const struct import_token *item)
{
    struct proto_writer writer;
    import_token_write(item, &writer);
    send_frame(&writer);
}

static const struct import_report image = {
    .sop_instance_uid = "1.2.3.4",
    .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
    .transfer_syntax_uid = "1.2.840.10008.1.2.1",
    .series_uid = "1.2.3",
    .study_uid = "1.2",
    .modality = "CT",
    .body_part = "HEAD",
    .series_description = "Thin slices",
    .about = {.station = "CT2"},
    .path = "series/1.2.3/1.2.3.4.dcm",
    .size = 4711,
    .frames = 1,
};

START_TEST(an_image_found_at_start)
{
    const struct import_token item = {.import = {.outcome = IMPORT_ARRIVED, .report = image}};
    put_file(image.path);
    send_item(&item);
    assert_answer(&s, "SELECT path FROM instance", image.path);
    assert_answer(&s, "SELECT source FROM instance", "recovered");
    assert_answer(&s, "SELECT body_part || ' ' || station FROM series", "HEAD CT2");
}

END_TEST

START_TEST(an_image_received)
{
    struct handover handover = {.sender = "CT1", .called_ae = "NOCTULE", .folder = "scu:CT1"};
    const struct import_token item = {.import = {.outcome = IMPORT_ARRIVED, .report = image}, .handover = &handover};
    put_file(image.path);
    send_item(&item);
    assert_answer(&s, "SELECT source FROM instance", "scu:CT1");
}

END_TEST

START_TEST(an_image_kept_in_its_inbox)
{
    const struct message_arrived message = {
        .sop_instance = "1.2.3.4",
        .series = "1.2.3",
        .path = image.path,
        .source = "inbox:/drop",
        .kept_key = INT64_MIN,
        .kept_look = 4711,
        .about = "\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f",
    };
    struct proto_writer writer;
    put_file(image.path);
    message_write_arrived(&writer, &message);
    send_frame(&writer);
    assert_answer(&s, "SELECT source || look FROM kept", "inbox:/drop4711");
    message_write_forget(&writer, &(struct message_forget){.inbox = "/drop"});
    message_add_forgotten_file(&writer, &(struct message_forgotten_file){.key = 1});
    message_add_forgotten_file(&writer, &(struct message_forgotten_file){.key = message.kept_key});
    send_frame(&writer);
    assert_answer(&s, "SELECT count(*) FROM kept", "0");
}

END_TEST

/* If the row were rolled back later, its file would stay unreported. */
START_TEST(known_files_are_on_disk)
{
    const struct import_token item = {.import = {.outcome = IMPORT_ARRIVED, .report = image}};
    struct proto_writer writer;
    put_file(image.path);
    import_token_write(&item, &writer);
    hand_frame(&writer);
    assert_answer(&s, "SELECT count(*) FROM instance", "0");
    proto_start(&writer, PROTO_ASK_KNOWN);
    hand_frame(&writer);
    assert_answer(&s, "SELECT count(*) FROM instance", "1");
}

END_TEST

/* Otherwise the receiver would wait forever. */
START_TEST(a_receiver_that_cannot_be_sent_a_frame)
{
    static const int errors[] = {-EPIPE, -ENOMEM, -EMSGSIZE};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct proto_writer writer;
        send_error = errors[i];
        kills = 0;
        proto_start(&writer, PROTO_ASK_KNOWN);
        hand_frame(&writer);
        send_error = 0;
        ck_assert_int_eq(kills, errors[i] != -EPIPE);
    }
}

END_TEST

/* If the receiver misses PAUSE or RESUME, it would stay in the wrong state. */
START_TEST(a_receiver_that_cannot_be_paused)
{
    is_there = true;
    for (int low = 1; low >= 0; low--) {
        kills = 0;
        send_error = -ENOMEM;
        core.disk_low = low;
        arrivals_pause_or_resume(&core, "the disk is almost full");
        send_error = 0;
        ck_assert_int_eq(kills, 1);
        ck_assert_int_eq(core.receiver_paused, low);
    }
    is_there = false;
}

END_TEST

static void
failure_ends(struct core *failed, const char *why)
{
    (void)why;
    failed->db_failed = false;
}

static void
check_with(int allocations)
{
    inspections_receiver_gone(core.inspections, false); /* the former receiver is gone */
    inspections_check(core.inspections);
    countdown = allocations;
    uv_run(&core.loop, UV_RUN_ONCE);
    countdown = 0;
}

/* A path that cannot be allocated must not count as a missing file, which would reject the series
 * permanently. */
START_TEST(an_inspection_requested_without_memory)
{
    const struct import_token item = {.import = {.outcome = IMPORT_ARRIVED, .report = image}};
    is_there = true;
    core.on_db_failure = failure_ends;
    conf.series = (struct conf_series){.max_instances = 10, .max_mib = 1};
    ck_assert_int_eq(uv_timer_init(&core.loop, &core.probe), 0);
    put_file(image.path);
    send_item(&item);
    inspected = 0;
    check_with(INT_MAX); /* statements are prepared */
    check_with(INT_MAX);
    ck_assert_int_eq(inspected, 2);
    const int all = INT_MAX - left;
    /* The last allocations are those of the frame; each try waits for a timer. */
    for (int n = all > 40 ? all - 40 : 1; n <= all; n++)
        check_with(n);
    check_with(INT_MAX);
    ck_assert_int_gt(inspected, 2);
    is_there = false;
    uv_close((uv_handle_t *)&core.probe, NULL);
}

END_TEST

/* The file was removed after the receiver had seen it: no row may claim that it exists. */
START_TEST(an_image_removed_before_its_row)
{
    const struct import_token item = {.import = {.outcome = IMPORT_ARRIVED, .report = image}};
    send_item(&item);
    assert_answer(&s, "SELECT count(*) FROM instance", "0");
    assert_answer(&s, "SELECT count(*) FROM series", "0");
}

END_TEST

START_TEST(a_file_in_quarantine)
{
    char relative[] = "junk.dcm";
    const struct import_token item = {
        .import = {
            .outcome = IMPORT_QUARANTINED,
            .folder = "/inbox",
            .relative = relative,
            .report = {.code = CODE_NOT_DICOM, .path = "quarantine/1/junk.dcm", .message = "It is no DICOM file."}}};
    put_file("quarantine/1/junk.dcm");
    send_item(&item);
    assert_answer(&s, "SELECT original_path FROM quarantine", "/inbox/junk.dcm");
    assert_answer(&s, "SELECT code FROM quarantine", "NOT_DICOM");
}

END_TEST

/* The file is not kept, and must not kill the receiver. */
START_TEST(an_unreadable_file)
{
    char relative[] = "secret.dcm";
    struct import_token item = {.import = {.folder = "/inbox", .relative = relative}};
    import_unreadable(&item.import, -EACCES);
    send_item(&item);
    assert_answer(&s, "SELECT original_path FROM quarantine", "/inbox/secret.dcm");
    assert_answer(&s, "SELECT code FROM quarantine", "FILE_UNREADABLE");
}

END_TEST

/* The missing instance appears in the evidence and in the rejection. */
START_TEST(an_instance_only_received_damaged)
{
    char relative[] = "1.2.3.5";
    struct handover handover = {.sender = "CT1", .folder = "scu:CT1", .lost = true};
    const struct import_token item = {.import = {.outcome = IMPORT_QUARANTINED,
                                                 .folder = "scu:CT1",
                                                 .relative = relative,
                                                 .report = {.code = CODE_NOT_RECEIVED,
                                                            .series_uid = "1.2.3",
                                                            .sop_instance_uid = "1.2.3.5",
                                                            .message = "It broke off."}},
                                      .handover = &handover};
    send_item(&item);
    assert_answer(&s, "SELECT original_path || sop_instance_uid || lacking FROM v_quarantine",
                  "scu:CT1/1.2.3.51.2.3.51");
}

END_TEST

START_TEST(a_commitment_report)
{
    static const struct dicom_commitment_reference references[] = {
        {.sop_instance_uid = "2.25.1"}, {.sop_instance_uid = "2.25.2", .failure_reason = 0x0112}};
    struct dicom_commitment report = {.transaction_uid = "2.25.3", .count = 2, .references = references};
    struct handover handover = {.commitment = &report};
    const struct import_token item = {.import = {.outcome = IMPORT_ARRIVED}, .handover = &handover};
    send_item(&item);
}

END_TEST

START_TEST(reports_on_reception)
{
    static const struct message_receiving message = {.open = 1, .problem = "inbox /i: it is gone"};
    struct proto_writer writer;
    message_write_receiving(&writer, &message);
    ck_assert(!core.reception.open);
    send_frame(&writer);
    ck_assert(core.reception.open);
    ck_assert_str_eq(core.reception.problem, message.problem);
    arrivals_receiver_gone(&core, &(struct pool_gone){.why = ""});
    ck_assert(!core.reception.open);
    ck_assert_str_eq(core.reception.problem, "");
}

END_TEST

SAMPLE_MAIN("arrivals", set_up, tear_down, an_image_found_at_start, an_image_received, an_image_kept_in_its_inbox,
            known_files_are_on_disk, a_receiver_that_cannot_be_sent_a_frame, a_receiver_that_cannot_be_paused,
            an_inspection_requested_without_memory, an_image_removed_before_its_row, a_file_in_quarantine,
            an_unreadable_file, an_instance_only_received_damaged, a_commitment_report, reports_on_reception)
