/* Attempts on a shared folder, from the daemon to a step and back, with every kind of damage
 * between. */
#include "service/common/slurm/slurm_manifest.h"

#include "tests/unit/edge.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>

static struct slurm_attempt_id id = {.job = 17, .number = 2};
static struct error error;
static char *inputs[2], *objects[1];
static struct job_spec spec = {.id = 17,
                               .stack = "",
                               .settings = "name = \"p\";\n",
                               .output = "/srv/outbox/17",
                               .device_serial_number = "NOCTULE-1",
                               .inputs = inputs,
                               .input_count = 2,
                               .objects = objects,
                               .object_count = 1};
static struct slurm_attempt_order order;
static struct slurm_folder *folder;
static struct manifest *manifest;

static void
setup(void)
{
    scratch_make();
    scratch_folder("share");
    scratch_folder("share/series");
    scratch_folder("local");
    scratch_folder("results");
    scratch_write("share/series/1.dcm", "one", 3);
    scratch_write("local/2.dcm", "two two", 7);
    scratch_write("local/rt.dcm", "", 0);
    scratch_write("results/seg.dcm", "a segmentation", 14);
    scratch_write("results/job.json", "{}\n", 3);
    inputs[0] = strdup(scratch_path("share/series/1.dcm"));
    inputs[1] = strdup(scratch_path("local/2.dcm"));
    objects[0] = strdup(scratch_path("local/rt.dcm"));
    ck_assert_int_eq(slurm_nonce_make(id.nonce), 0);
    order = (struct slurm_attempt_order){
        .id = id, .spec = &spec, .deadline_seconds = 90, .backend = "cpu", .threads = 3, .memory_bytes = 1 << 20};
    folder = NULL;
    manifest = NULL;
    error = (struct error){0};
}

static void
teardown(void)
{
    slurm_folder_close(folder);
    manifest_free(manifest);
    free(inputs[0]);
    free(inputs[1]);
    free(objects[0]);
    scratch_remove();
}

static const char *
share(void)
{
    return scratch_path("share");
}

/* Returns a path within the attempt's folder, below scratch. */
static const char *
inside(const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char own[ATTEMPT_NAME_SIZE], *path = paths[turn++ % 4];
    slurm_folder_name_write(&id, own);
    snprintf(path, sizeof paths[0], "share/%s%s%s", own, *name ? "/" : "", name);
    return path;
}

static int
open_folder(void)
{
    slurm_folder_close(folder);
    folder = NULL;
    const int rc = slurm_folder_open(scratch_path(inside("")), &folder, &error);
    return rc ? rc : slurm_folder_read(folder, &error);
}

static void
make_folder(void)
{
    static char series[1024];
    snprintf(series, sizeof series, "%s", scratch_path("share/series"));
    order.shared = series;
    ck_assert_msg(slurm_folder_make(share(), &order, NULL, &error) == 0, "%s", error.message);
    ck_assert_msg(open_folder() == 0, "%s", error.message);
}

static int
check_folder(void)
{
    return slurm_folder_check(folder, 2, NULL, &error);
}

/* Publishes a manifest with this verdict for the files in results/. */
static int
publish_as(enum proto_verdict verdict, const char *result, struct manifest_run *run)
{
    struct sealed_writer writer;
    struct proto_writer frame;
    ck_assert_msg(manifest_run_take(folder, scratch_path("results"), run, &error) == 0, "%s", error.message);
    manifest_begin(&writer, folder, run, "node-1", "CPU");
    message_write_features(&frame, &(struct message_features){.job = 17});
    message_add_feature(&frame, &(struct message_feature){.name = "mean", .value = 0.5});
    sealed_add(&writer, &frame);
    message_write_done(&frame, &(struct message_done){.job = 17, .verdict = verdict, .voxels = 8});
    if (result)
        message_add_result(&frame, &(struct message_result){.kind = "seg", .file = result});
    sealed_add(&writer, &frame);
    return manifest_publish(&writer, folder, &error);
}

static void
publish(void)
{
    struct manifest_run run;
    make_folder();
    ck_assert_msg(publish_as(PROTO_VERDICT_DONE, "seg.dcm", &run) == 0, "%s", error.message);
    manifest_run_free(&run);
}

static int
read_it(void)
{
    manifest_free(manifest);
    manifest = NULL;
    return manifest_read(share(), &id, &manifest, &error);
}

static int
collect(void)
{
    return manifest_collect(manifest, scratch_path("outbox"), NULL, &error);
}

/* Returns the path of a result in the step's folder, below scratch. */
static const char *
in_run(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", manifest->head.run, name);
    return inside(path);
}

static void
flip(const char *relative, long at)
{
    FILE *file = fopen(scratch_path(relative), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    const int byte = fgetc(file);
    ck_assert_int_eq(fseek(file, -1, SEEK_CUR), 0);
    fputc(byte ^ 1, file);
    ck_assert_int_eq(fclose(file), 0);
}

static off_t
size_of(const char *relative)
{
    struct stat status;
    ck_assert_int_eq(stat(scratch_path(relative), &status), 0);
    return status.st_size;
}

/* -------------------------------------------------------------------------------- names ---- */

START_TEST(names_of_attempts_are_parsed_back)
{
    char name[ATTEMPT_NAME_SIZE];
    struct slurm_attempt_id back;
    slurm_folder_name_write(&id, name);
    ck_assert(slurm_folder_name_read(name, &back));
    ck_assert_int_eq(back.job, 17);
    ck_assert_int_eq(back.number, 2);
    ck_assert_str_eq(back.nonce, id.nonce);
    static const char *const others[] = {
        "job-17.2.0123",
        "job-17.2.0123456789abcdef0123456789abcdef0",
        "job-+17.2.0123456789abcdef0123456789abcdef",
        "job-17.2.0123456789ABCDEF0123456789abcdef",
        "job-0.2.0123456789abcdef0123456789abcdef",
        "job-17.-2.0123456789abcdef0123456789abcdef",
        "series",
        "",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!slurm_folder_name_read(others[i], &back), "%s", others[i]);
}

END_TEST

START_TEST(nonces_differ)
{
    char other[ATTEMPT_NONCE_SIZE];
    ck_assert_int_eq(slurm_nonce_make(other), 0);
    ck_assert_uint_eq(strlen(other), 32);
    ck_assert_str_ne(other, id.nonce);
}

END_TEST

/* --------------------------------------------------------------------------- the folder ---- */

START_TEST(a_step_reads_the_daemons_attempt)
{
    make_folder();
    ck_assert_str_eq(folder->head.backend, "cpu");
    ck_assert_int_eq(folder->head.threads, 3);
    ck_assert_int_eq(folder->head.memory_bytes, 1 << 20);
    ck_assert_double_eq(folder->head.deadline_seconds, 90);
    ck_assert_str_eq(folder->spec->settings, spec.settings);
    ck_assert_str_eq(folder->spec->output, spec.output);
    ck_assert_str_eq(folder->spec->inputs[0], inputs[0]); /* read from its own path */
    ck_assert_str_eq(folder->spec->inputs[1], scratch_path(inside("inputs/000001-2.dcm")));
    ck_assert_str_eq(folder->spec->objects[0], scratch_path(inside("inputs/000002-rt.dcm")));
    ck_assert_int_eq(check_folder(), 0);
    ck_assert(!manifest_exists(folder));
    ck_assert(!slurm_folder_is_void(folder));
}

END_TEST

START_TEST(a_changed_input_is_detected)
{
    make_folder();
    flip("share/series/1.dcm", 1);
    ck_assert_int_eq(check_folder(), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_FILE_DIFFERS);
    ck_assert_str_eq(error.file[0], inputs[0]);
    flip("share/series/1.dcm", 1);
    ck_assert_int_eq(check_folder(), 0);
    scratch_write(inside("inputs/000001-2.dcm"), "two", 3);
    ck_assert_int_eq(check_folder(), -EBADMSG);
    unlink(scratch_path(inside("inputs/000001-2.dcm")));
    ck_assert_int_eq(check_folder(), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_FILE_DIFFERS);
}

END_TEST

/* Also if nodes could read them, since a step is confined. A mask without a path is made on the node. */
START_TEST(masks_are_copied)
{
    static uint16_t accepted[] = {1, 7};
    char program[] = "name = \"one\";\n", none[] = "", identity[] = "ab", *path;
    scratch_write("share/series/mask", "a mask", 6);
    path = strdup(scratch_path("share/series/mask"));
    struct job_mask masks[] = {{program, none, none, identity, accepted, 2}, {program, path, none, identity, NULL, 0}};
    spec.masks = masks;
    spec.mask_count = 2;
    make_folder();
    spec.masks = NULL;
    spec.mask_count = 0;
    ck_assert_uint_eq(slurm_folder_files(folder->spec), 4);
    const struct job_mask *read = folder->spec->masks;
    ck_assert_str_eq(read[0].path, "");
    ck_assert_str_eq(read[0].identity, "ab");
    ck_assert_uint_eq(read[0].accepted_count, 2);
    ck_assert_mem_eq(read[0].accepted, accepted, sizeof accepted);
    ck_assert_str_eq(read[1].path, scratch_path(inside("inputs/000003-mask")));
    ck_assert_str_eq(slurm_folder_file(folder->spec, 3), read[1].path);
    ck_assert_int_eq(check_folder(), 0);
    flip(inside("inputs/000003-mask"), 1);
    ck_assert_int_eq(check_folder(), -EBADMSG);
    ck_assert_str_eq(error.file[0], read[1].path);
    free(path);
}

END_TEST

/* If a digest differs from the file's, the file was not read, here or while copying. */
START_TEST(inputs_with_known_digests_are_not_read)
{
    char own[] = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"; /* "one" */
    char other[] = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    char *known[2] = {own, NULL};
    spec.sha256 = known;
    make_folder();
    ck_assert_int_eq(check_folder(), 0);
    ck_assert_str_eq(folder->inputs[0].sha256, own);
    ck_assert_int_eq(folder->inputs[0].size, 3);
    for (size_t i = 0; i < 2; i++) {
        known[i] = other;
        known[1 - i] = NULL;
        slurm_folder_remove(share(), &id);
        make_folder();
        ck_assert_str_eq(folder->inputs[i].sha256, other);
        ck_assert_int_eq(check_folder(), -EBADMSG);
        ck_assert_int_eq(error.code, CODE_ATTEMPT_FILE_DIFFERS);
        ck_assert_str_eq(error.file[0], folder->spec->inputs[i]);
    }
    spec.sha256 = NULL;
}

END_TEST

START_TEST(a_check_of_inputs_can_be_stopped)
{
    atomic_bool stop = true;
    make_folder();
    ck_assert_int_eq(slurm_folder_check(folder, 2, &stop, &error), -ECANCELED);
    ck_assert_int_eq(error.code, CODE_STOPPED);
}

END_TEST

/* Changes to any byte of `attempt` and `job` must be detected. */
START_TEST(a_change_of_any_byte_is_detected)
{
    make_folder();

    static const struct {
        const char *file;
        enum code code;
    } files[] = {{ATTEMPT_FILE, CODE_ATTEMPT_DAMAGED}, {ATTEMPT_SPEC, CODE_ATTEMPT_FILE_DIFFERS}};

    for (size_t i = 0; i < 2; i++) {
        const off_t size = size_of(inside(files[i].file));
        for (off_t at = 0; at < size; at++) {
            flip(inside(files[i].file), at);
            ck_assert_int_eq(open_folder(), -EBADMSG);
            ck_assert_int_eq(error.code, files[i].code);
            flip(inside(files[i].file), at);
        }
    }
    ck_assert_int_eq(open_folder(), 0);
}

END_TEST

START_TEST(a_truncated_folder_is_refused)
{
    make_folder();
    for (off_t size = size_of(inside(ATTEMPT_FILE)) - 1; size >= 0; size--) {
        ck_assert_int_eq(truncate(scratch_path(inside(ATTEMPT_FILE)), size), 0);
        ck_assert_int_eq(open_folder(), -EBADMSG);
        ck_assert_int_eq(error.code, CODE_ATTEMPT_DAMAGED);
    }
    unlink(scratch_path(inside(ATTEMPT_FILE)));
    ck_assert_int_eq(open_folder(), -ENOENT);
}

END_TEST

START_TEST(a_folder_is_identified_by_its_name)
{
    char old[1024];
    make_folder();
    snprintf(old, sizeof old, "%s", scratch_path(inside("")));
    id.number = 3;
    ck_assert_int_eq(rename(old, scratch_path(inside(""))), 0);
    ck_assert(slurm_folder_is_void(folder)); /* its path no longer exists */
    ck_assert_int_eq(open_folder(), -ESTALE);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_OTHER);
    struct slurm_folder *other;
    ck_assert_int_eq(slurm_folder_open(share(), &other, &error), -EINVAL);
    id.number = 2;
}

END_TEST

START_TEST(links_in_the_folder_are_not_followed)
{
    make_folder();
    static const char *const files[] = {ATTEMPT_FILE, ATTEMPT_SPEC};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(rename(scratch_path(inside(files[i])), scratch_path("aside")), 0);
        ck_assert_int_eq(symlink(scratch_path("aside"), scratch_path(inside(files[i]))), 0);
        ck_assert_int_lt(open_folder(), 0);
        ck_assert_int_eq(rename(scratch_path("aside"), scratch_path(inside(files[i]))), 0);
        ck_assert_int_eq(open_folder(), 0);
    }
}

END_TEST

START_TEST(files_of_another_version_are_rejected)
{
    struct sealed_writer writer = {0};
    struct proto_writer frame;
    struct sealed sealed;
    message_write_hello(&frame, &(struct message_hello){.role = ATTEMPT_ROLE, .build_id = "0.0.1/0123456789abcdef"});
    sealed_add(&writer, &frame);
    ck_assert_int_eq(sealed_end(&writer), 0);
    ck_assert_int_eq(sealed_open(writer.bytes, writer.size, "it", ATTEMPT_ROLE, &sealed, &error), -EPROTO);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_OTHER_VERSION);
}

END_TEST

START_TEST(a_failure_leaves_no_folder)
{
    atomic_bool stop = true;
    inputs[1][strlen(inputs[1]) - 1] = 'x';
    ck_assert_int_eq(slurm_folder_make(share(), &order, NULL, &error), -ENOENT);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    ck_assert(!scratch_has(inside("")));
    ck_assert_int_eq(slurm_folder_make(share(), &order, &stop, &error), -ECANCELED);
    ck_assert(!scratch_has(inside("")));
}

END_TEST

START_TEST(an_attempt_is_cancelled)
{
    struct manifest_run run;
    make_folder();
    ck_assert(!slurm_folder_is_void(folder));
    ck_assert_int_eq(slurm_folder_remove(share(), &id), 0);
    ck_assert(!scratch_has(inside("")));
    ck_assert_int_eq(slurm_folder_remove(share(), &id), 0);
    ck_assert(slurm_folder_is_void(folder));
    ck_assert_int_eq(read_it(), -ENOENT);
    ck_assert_int_eq(manifest_run_take(folder, scratch_path("results"), &run, &error), -ESTALE);
    ck_assert(!scratch_has(inside("")));
}

END_TEST

/* ------------------------------------------------------------------------- the manifest ---- */

START_TEST(the_outcome_is_read_back)
{
    struct proto_reader reader;
    struct message_features features;
    struct message_feature feature;
    struct message_done done;
    publish();
    ck_assert_msg(read_it() == 0, "%s", error.message);
    ck_assert_str_eq(manifest->head.node, "node-1");
    ck_assert_str_eq(manifest->head.device, "CPU");
    ck_assert_uint_eq(manifest->count, 2);
    ck_assert(manifest_next(manifest, &reader));
    ck_assert_int_eq(message_read_features(&reader, &features), 0);
    ck_assert(message_next_feature(&reader, &feature));
    ck_assert_str_eq(feature.name, "mean");
    ck_assert(manifest_next(manifest, &reader));
    ck_assert_int_eq(message_read_done(&reader, &done), 0);
    ck_assert_int_eq(done.voxels, 8);
    ck_assert(!manifest_next(manifest, &reader));
    scratch_folder("outbox");
    scratch_write("outbox/pmap.dcm", "of an earlier attempt", 21);
    ck_assert_msg(collect() == 0, "%s", error.message);
    char *text = scratch_text("outbox/seg.dcm");
    ck_assert_str_eq(text, "a segmentation");
    free(text);
    ck_assert(scratch_has("outbox/job.json"));
    ck_assert(!scratch_has("outbox/pmap.dcm"));
    ck_assert_int_eq(collect(), 0); /* can be repeated */
}

END_TEST

START_TEST(no_manifest_is_no_end)
{
    make_folder();
    ck_assert_int_eq(read_it(), -ENOENT);
    ck_assert_int_eq(slurm_folder_remove(share(), &id), 0);
    ck_assert_int_eq(read_it(), -ENOENT);
}

END_TEST

START_TEST(the_first_of_two_steps_counts)
{
    struct manifest_run first, second;
    make_folder();
    ck_assert_int_eq(publish_as(PROTO_VERDICT_DONE, "seg.dcm", &first), 0);
    scratch_write("results/seg.dcm", "another segmentation", 20);
    ck_assert_int_eq(publish_as(PROTO_VERDICT_DONE, "seg.dcm", &second), -EEXIST);
    ck_assert_int_eq(read_it(), 0);
    ck_assert_str_eq(manifest->head.run, first.name);
    ck_assert_int_eq(collect(), 0);
    char *text = scratch_text("outbox/seg.dcm");
    ck_assert_str_eq(text, "a segmentation");
    free(text);
    manifest_run_free(&first);
    manifest_run_free(&second);
}

END_TEST

START_TEST(a_change_of_any_manifest_byte_is_detected)
{
    publish();
    for (off_t at = size_of(inside(MANIFEST_FILE)) - 1; at >= 0; at--) {
        flip(inside(MANIFEST_FILE), at);
        ck_assert_int_eq(read_it(), -EBADMSG);
        ck_assert_int_eq(error.code, CODE_ATTEMPT_DAMAGED);
        flip(inside(MANIFEST_FILE), at);
    }
    for (off_t size = size_of(inside(MANIFEST_FILE)) - 1; size >= 0; size--) {
        ck_assert_int_eq(truncate(scratch_path(inside(MANIFEST_FILE)), size), 0);
        ck_assert_int_eq(read_it(), -EBADMSG);
    }
}

END_TEST

START_TEST(a_manifest_of_another_attempt_is_not_used)
{
    char old[1024];
    publish();
    snprintf(old, sizeof old, "%s", scratch_path(inside("")));
    id.nonce[0] = id.nonce[0] == 'a' ? 'b' : 'a';
    ck_assert_int_eq(rename(old, scratch_path(inside(""))), 0);
    ck_assert_int_eq(read_it(), -ESTALE);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_OTHER);
}

END_TEST

static void
assert_differs(const char *before)
{
    ck_assert_int_eq(collect(), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_FILE_DIFFERS);
    char *text = scratch_text("outbox/seg.dcm");
    ck_assert_str_eq(text, before);
    free(text);
    ck_assert(!scratch_has("outbox/job.json"));
}

START_TEST(a_changed_result_is_not_collected)
{
    publish();
    ck_assert_int_eq(read_it(), 0);
    scratch_folder("outbox");
    scratch_write("outbox/seg.dcm", "before", 6);
    flip(in_run("seg.dcm"), 3);
    assert_differs("before");
    scratch_write(in_run("seg.dcm"), "a segmentation, longer", 22);
    assert_differs("before");
    unlink(scratch_path(in_run("seg.dcm")));
    assert_differs("before");
    ck_assert_int_eq(symlink(scratch_path("results/seg.dcm"), scratch_path(in_run("seg.dcm"))), 0);
    assert_differs("before");
    unlink(scratch_path(in_run("seg.dcm")));
    scratch_write(in_run("seg.dcm"), "a segmentation", 14);
    ck_assert_int_eq(collect(), 0);
}

END_TEST

START_TEST(a_result_has_to_be_among_the_files)
{
    struct manifest_run run;
    make_folder();
    ck_assert_int_eq(publish_as(PROTO_VERDICT_DONE, "sr.dcm", &run), 0);
    manifest_run_free(&run);
    ck_assert_int_eq(read_it(), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_ATTEMPT_DAMAGED);
}

END_TEST

/* Parses a manifest of these frames. Returns the result. */
static int
parse(const struct message_manifest *told, const char *const *names, size_t count, enum proto_type last)
{
    struct sealed_writer writer;
    struct proto_writer frame;
    static const char sha256[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    sealed_begin(&writer, MANIFEST_ROLE);
    message_write_manifest(&frame, told);
    for (size_t i = 0; i < count; i++)
        message_add_file(&frame, &(struct message_file){.name = names[i % 8], .sha256 = sha256});
    sealed_add(&writer, &frame);
    static const struct message_done nothing = {.job = 17, .verdict = PROTO_VERDICT_REJECT};
    message_write(&frame, last, last == PROTO_DONE ? (const void *)&nothing : "");
    sealed_add(&writer, &frame);
    ck_assert_int_eq(sealed_end(&writer), 0);
    manifest_free(manifest);
    manifest = NULL;
    return manifest_parse(writer.bytes, writer.size, &id, &manifest, &error);
}

START_TEST(names_cannot_lead_elsewhere)
{
    static const char *const bad[] = {"", ".", "..", ".hidden", "/etc/passwd", "a/b", "../job"};
    struct message_manifest told = {.job = 17, .attempt = 2, .nonce = id.nonce, .run = "run-0123456789abcdef"};
    const char *names[8] = {"seg.dcm", "sr.dcm"};
    ck_assert_int_eq(parse(&told, names, 2, PROTO_DONE), 0);
    ck_assert_int_eq(parse(&told, names, 2, PROTO_ALIVE), -EBADMSG);
    names[1] = names[0];
    /* A name must not occur twice. */
    ck_assert_int_eq(parse(&told, names, 2, PROTO_DONE), -EBADMSG);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        names[1] = bad[i];
        ck_assert_int_eq(parse(&told, names, 2, PROTO_DONE), -EBADMSG);
        told.run = bad[i];
        ck_assert_int_eq(parse(&told, names, 1, PROTO_DONE), -EBADMSG);
        told.run = "run-0123456789abcdef";
    }
    told.run = "run-/../../x";
    ck_assert_int_eq(parse(&told, names, 1, PROTO_DONE), -EBADMSG);
}

END_TEST

/* ------------------------------------------------------------------------------- limits ---- */

START_TEST(files_have_an_end)
{
    const struct edge edge = EDGE(ATTEMPT_MIB);
    make_folder();
    const off_t most = (off_t)edge.most << 20;
    ck_assert_int_eq(truncate(scratch_path(inside(ATTEMPT_FILE)), most), 0);
    ck_assert_int_eq(open_folder(), -EBADMSG);
    ck_assert_msg(strstr(error.message, "cut off"), "%s", error.message); /* the file was read */
    ck_assert_int_eq(truncate(scratch_path(inside(ATTEMPT_FILE)), most + 1), 0);
    ck_assert_int_eq(open_folder(), -EBADMSG);
    ck_assert_int_eq(error.code, edge.code);
    ck_assert_msg(strstr(error.message, "too large"), "%s", error.message);
}

END_TEST

START_TEST(results_have_an_end)
{
    const struct edge edge = EDGE(ATTEMPT_RESULTS);
    const struct message_manifest told = {.job = 17, .attempt = 2, .nonce = id.nonce, .run = "run-0123456789abcdef"};
    const char *names[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    ck_assert_int_eq(parse(&told, names, (size_t)edge.most, PROTO_DONE), -EBADMSG);
    ck_assert_msg(strstr(error.message, "duplicate"), "%s", error.message); /* names occur twice */
    ck_assert_int_eq(parse(&told, names, (size_t)edge.most + 1, PROTO_DONE), -EBADMSG);
    ck_assert_int_eq(error.code, edge.code);
    ck_assert_msg(strstr(error.message, "more files"), "%s", error.message);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("attempt");
    TCase *tests = tcase_create("attempt");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, names_of_attempts_are_parsed_back);
    tcase_add_test(tests, nonces_differ);
    tcase_add_test(tests, a_step_reads_the_daemons_attempt);
    tcase_add_test(tests, a_changed_input_is_detected);
    tcase_add_test(tests, masks_are_copied);
    tcase_add_test(tests, inputs_with_known_digests_are_not_read);
    tcase_add_test(tests, a_check_of_inputs_can_be_stopped);
    tcase_add_test(tests, a_change_of_any_byte_is_detected);
    tcase_add_test(tests, a_truncated_folder_is_refused);
    tcase_add_test(tests, a_folder_is_identified_by_its_name);
    tcase_add_test(tests, links_in_the_folder_are_not_followed);
    tcase_add_test(tests, files_of_another_version_are_rejected);
    tcase_add_test(tests, a_failure_leaves_no_folder);
    tcase_add_test(tests, an_attempt_is_cancelled);
    tcase_add_test(tests, the_outcome_is_read_back);
    tcase_add_test(tests, no_manifest_is_no_end);
    tcase_add_test(tests, the_first_of_two_steps_counts);
    tcase_add_test(tests, a_change_of_any_manifest_byte_is_detected);
    tcase_add_test(tests, a_manifest_of_another_attempt_is_not_used);
    tcase_add_test(tests, a_changed_result_is_not_collected);
    tcase_add_test(tests, a_result_has_to_be_among_the_files);
    tcase_add_test(tests, names_cannot_lead_elsewhere);
    tcase_add_test(tests, files_have_an_end);
    tcase_add_test(tests, results_have_an_end);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
