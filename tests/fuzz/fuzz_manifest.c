/*
 * fuzz_manifest.c - any bytes as the manifest of an attempt. The reader must not read beyond them, and must only
 * accept a manifest of the requested attempt, with file names inside its folder.
 *
 * The first byte selects whether the rest is the whole file, or the frames between a matching HELLO and SEAL, which
 * no fuzzer would find.
 */
#include "service/common/slurm/slurm_manifest.h"

#include "tests/fuzz/must.h"

static const struct slurm_attempt_id id = {17, 2, "0123456789abcdef0123456789abcdef"};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Returns the file. The caller must free it. */
static uint8_t *
make_file(const uint8_t *bytes, size_t *size)
{
    struct sealed_writer writer = {0};
    if (bytes[0] % 2 == 0)
        sealed_begin(&writer, MANIFEST_ROLE);
    uint8_t *file = malloc(writer.size + *size);
    must(file != NULL);
    if (writer.size)
        memcpy(file, writer.bytes, writer.size);
    memcpy(file + writer.size, bytes + 1, *size - 1);
    *size += writer.size - 1;
    sealed_release(&writer);
    if (bytes[0] % 2 != 0)
        return file;
    writer = (struct sealed_writer){.bytes = file, .size = *size, .capacity = *size};
    must(sealed_end(&writer) == 0);
    *size = writer.size;
    return writer.bytes;
}

static void
must_be_sound(struct manifest *manifest)
{
    struct proto_reader reader, last = {0};
    must(manifest->head.job == id.job && manifest->head.attempt == id.number);
    must(strcmp(manifest->head.nonce, id.nonce) == 0);
    must(manifest->count == 0 || strncmp(manifest->head.run, MANIFEST_RUN, 4) == 0);
    must(!strchr(manifest->head.run, '/') || manifest->count == 0);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct manifest_file *file = &manifest->files[i];
        must(file->name[0] && file->name[0] != '.' && !strchr(file->name, '/'));
        must(file->digest.size >= 0 && digest_is_sha256(file->digest.sha256));
    }
    while (manifest_next(manifest, &reader))
        last = reader;
    must(last.type == PROTO_DONE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct manifest *manifest;
    struct error error = {0};
    if (size == 0)
        return 0;
    uint8_t *file = make_file(bytes, &size);
    const int rc = manifest_parse(file, size, &id, &manifest, &error);
    if (rc) {
        must_be_error(rc, &error);
    } else {
        must_be_sound(manifest);
        manifest_free(manifest);
    }
    return 0;
}
