#include "dicom/read/scan/scan_header.h"
#include "dicom/value/value.h"

#include "base/error.h"
#include "base/text.h"
#include "dicom/value/dictionary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TAG_ITEM            0xFFFEE000u
#define TAG_ITEM_END        0xFFFEE00Du
#define TAG_SEQUENCE_END    0xFFFEE0DDu
#define TAG_MEDIA_CLASS     0x00020002u
#define TAG_TRANSFER_SYNTAX 0x00020010u
#define TAG_SIEMENS_CSA     0x00290010u
#define TAG_SIEMENS_SERIES  0x00290020u
#define TAG_SIEMENS_XA      0x00210019u
#define TAG_PADDING         0xFFFCFFFCu

#define UNDEFINED_LENGTH    0xFFFFFFFFu

#define POLL_SECONDS        0.1 /* CPU time between two polls; valid headers take less */

static const struct scan_separate scan_frames = {
    .tag = 0x52009230u, /* Per-Frame Functional Groups Sequence */
    .max_items = LIMIT_FRAMES,
    .max_mib = LIMIT_FRAMES_KEPT_MIB,
    .max_elements = LIMIT_FRAME_ELEMENTS,
    .items = "items of frames",
    .per_item = "elements in one frame's item",
};

/* Header of one element: tag, VR and length, and its own size in bytes. */
struct element {
    uint32_t tag;
    char vr[3]; /* "" in implicit VR and for items and delimiters */
    uint32_t length;
    uint32_t header_size;
};

/* Encoding of the elements at one level of nesting. */
struct encoding {
    bool implicit_vr;
    bool big_endian;
};

struct walk {
    struct stream *stream;
    const char *path;
    struct scan *scan;
    const struct scan_wanted *wanted;
    const struct scan_separate *separate;
    struct error *error;
    struct scan_bytes *into; /* target of bytes consumed; NULL: not kept */
    int32_t elements;        /* elements and items consumed */
    int32_t kept, frame_kept, disorder;
};

/* The data set, or an open sequence or item. `end` is -1 if a delimiter ends it. `limit` is the
 * nearest end of it or its ancestors, which no element may exceed. */
struct level {
    bool is_item;
    bool is_frames; /* the separate sequence; of an item: one of its items */
    bool all;       /* of an item: all elements are kept, except private ones */
    struct scan_bytes *into;
    uint32_t last_tag; /* highest tag kept */
    int32_t elements;  /* elements kept */
    int64_t end;
    int64_t limit;
    struct encoding encoding;
};

int
scan_error(const struct stream *stream, const char *path, int rc, const char *what, struct error *error)
{
    const char *name = text_base_name(path);
    switch (rc) {
    case -ENODATA:
        return error_set_files(error, -EBADMSG, CODE_FILE_TRUNCATED, path, NULL,
                               "%s ends after %lld bytes, inside %s. Send it again.", name,
                               (long long)stream->file_size, what);
    case -EBADMSG:
        return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, NULL,
                               "%s is damaged: %s cannot be decoded at byte %lld. Send it again.", name, what,
                               (long long)stream->position);
    case -EFBIG:
        return error_set_files(error, -EBADMSG, CODE_EXPANSION_IMPLAUSIBLE, path, NULL,
                               "%s has %lld bytes and would be more than %d times as large once inflated.", name,
                               (long long)stream->file_size, LIMIT_EXPANSION);
    case -ENOMEM:
        return error_set_files(error, -ENOMEM, CODE_OUT_OF_MEMORY, path, NULL,
                               "There is not enough memory to read %s of %s.", what, name);
    default:
        return error_set_files(error, rc, CODE_FILE_UNREADABLE, path, NULL, "%s cannot be read: %s.", name,
                               strerror(-rc));
    }
}

static int
scan_invalid(const struct walk *walk, const char *what)
{
    return error_set_files(walk->error, -EBADMSG, CODE_TAG_INVALID, walk->path, NULL,
                           "%s is damaged: %s at byte %lld. Send it again.", text_base_name(walk->path), what,
                           (long long)walk->stream->position);
}

static int
stream_failed(const struct walk *walk, int rc)
{
    return scan_error(walk->stream, walk->path, rc, "its header", walk->error);
}

static int
scan_too_much(const struct walk *walk, int most, const char *what)
{
    return error_set_files(walk->error, -EBADMSG, CODE_SIZE_IMPLAUSIBLE, walk->path, NULL,
                           "The header of %s has more than %d %s.", text_base_name(walk->path), most, what);
}

/* Returns the CPU time of the thread. */
static double
scan_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int
scan_check_time(struct scan *scan, const char *path, struct error *error)
{
    const double now = scan_clock();
    if (scan->requestor && now - scan->polled > POLL_SECONDS) {
        scan->polled = now;
        if (scan->requestor->gone(scan->requestor->context))
            return error_set_files(error, -ECANCELED, CODE_ASSOCIATION_ABORTED, path, NULL,
                                   "The requestor of the header of %s has gone.", text_base_name(path));
    }
    if (now - scan->begun < LIMIT_HEADER_SECONDS)
        return 0;
    return error_set_files(error, -EBADMSG, CODE_READING_TOO_LONG, path, NULL,
                           "The header of %s takes more than %d seconds to read.", text_base_name(path),
                           LIMIT_HEADER_SECONDS);
}

static int
grow_kept(struct walk *walk, size_t count)
{
    struct scan_bytes *into = walk->into;
    const int most = into == &walk->scan->frames ? walk->separate->max_mib : LIMIT_KEPT_MIB;
    if (into->size + count > (size_t)most << 20)
        return scan_too_much(walk, most, "MiB of attributes to read");
    if (into->size + count <= into->room)
        return 0;
    size_t room = into->room ? 2 * into->room : 4096;
    if (room < into->size + count)
        room = into->size + count;
    uint8_t *bytes = realloc(into->bytes, room);
    if (!bytes)
        return stream_failed(walk, -ENOMEM);
    into->bytes = bytes;
    into->room = room;
    return 0;
}

/* Consumes the next `count` bytes, and keeps them if their element is wanted. Memory grows with
 * the bytes read, not with a claimed length. */
static int
consume(struct walk *walk, int64_t count)
{
    struct scan_bytes *into = walk->into;
    if (!into) {
        int error = stream_skip(walk->stream, count);
        return error ? stream_failed(walk, error) : 0;
    }
    if (count > stream_remaining(walk->stream))
        return stream_failed(walk, -ENODATA);
    while (count > 0) {
        const size_t step = count < (1 << 20) ? (size_t)count : (size_t)1 << 20;
        int error = grow_kept(walk, step);
        if (error)
            return error;
        error = stream_read(walk->stream, into->bytes + into->size, (int64_t)step);
        if (error)
            return stream_failed(walk, error);
        into->size += step;
        count -= (int64_t)step;
    }
    return 0;
}

static void
scan_emit(const struct walk *walk, uint32_t tag, uint32_t length)
{
    uint8_t bytes[8];
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(tag >> 8 * i);
        bytes[4 + i] = (uint8_t)(length >> 8 * i);
    }
    if (walk->wanted->content)
        walk->wanted->content(walk->wanted->context, bytes, sizeof(bytes));
}

/* Returns whether a value is encapsulated: fragments in items, up to a delimiter (PS3.5 A.4).
 * Icons may have such pixels. */
static bool
is_encapsulated(const struct element *element)
{
    return element->length == UNDEFINED_LENGTH && (strcmp(element->vr, "OB") == 0 || strcmp(element->vr, "OW") == 0);
}

/* Consumes a value that is not a sequence. In the content, an element is its tag, length and value.
 * A sequence is an empty element, followed by its items, each between TAG_ITEM and TAG_ITEM_END. */
static int
scan_consume_value(struct walk *walk, const struct element *element)
{
    const bool counts = (element->tag & 0xFFFF) != 0 && element->tag != TAG_PADDING;
    if (!walk->wanted->content || !counts)
        return consume(walk, element->length);
    scan_emit(walk, element->tag, element->length);
    int error = stream_show(walk->stream, element->length, walk->wanted->content, walk->wanted->context);
    return error ? stream_failed(walk, error) : 0;
}

/* Counts all elements and items, and those that a parser must create objects for. */
static int
consume_header(struct walk *walk, const struct element *element)
{
    const struct scan_separate *separate = walk->separate;
    int error = 0;
    if (++walk->elements > LIMIT_HEADER_ELEMENTS)
        return scan_too_much(walk, LIMIT_HEADER_ELEMENTS, "elements");
    if (walk->elements % 4096 == 0)
        error = scan_check_time(walk->scan, walk->path, walk->error);
    if (error)
        return error;
    if (walk->into == &walk->scan->frames) {
        if (++walk->frame_kept > separate->max_elements)
            return scan_too_much(walk, separate->max_elements, separate->per_item);
    } else if (walk->into && ++walk->kept > LIMIT_KEPT_ELEMENTS) {
        return scan_too_much(walk, LIMIT_KEPT_ELEMENTS, "elements to read");
    }
    return consume(walk, element->header_size);
}

/* Reads an element's header without consuming it. */
static int
peek_element(struct walk *walk, struct encoding encoding, struct element *element)
{
    int error;
    const uint8_t *bytes = stream_peek(walk->stream, 8, &error);
    if (!bytes)
        return stream_failed(walk, error);
    memset(element, 0, sizeof(*element));
    element->tag = value_tag(bytes, encoding.big_endian);
    element->header_size = 8;
    if (encoding.implicit_vr || element->tag >> 16 == 0xFFFE) {
        element->length = value_u32(bytes + 4, encoding.big_endian);
        return 0;
    }
    memcpy(element->vr, bytes + 4, 2);
    switch (value_vr_form(bytes + 4)) {
    case VALUE_VR_UNKNOWN:
        return scan_invalid(walk, "an element has no valid VR");
    case VALUE_VR_SHORT:
        element->length = value_u16(bytes + 6, encoding.big_endian);
        return 0;
    case VALUE_VR_LONG:
        break;
    }
    bytes = stream_peek(walk->stream, 12, &error);
    if (!bytes)
        return stream_failed(walk, error);
    element->length = value_u32(bytes + 8, encoding.big_endian);
    element->header_size = 12;
    return 0;
}

/* Returns the encoding inside an element. The content of a UN sequence is Implicit VR Little
 * Endian (CP-246). */
static struct encoding
encoding_within(struct encoding outer, const struct element *element)
{
    const struct encoding implicit = {.implicit_vr = true};
    return strcmp(element->vr, "UN") == 0 ? implicit : outer;
}

/* Checks whether a value begins as a sequence does: with an item, or, if it is parsed, with its
 * end. */
static int
begins_nested(struct walk *walk, const struct element *element, struct encoding encoding, bool parsed, bool *nested)
{
    int error;
    const uint8_t *bytes = stream_peek(walk->stream, element->header_size + 4u, &error);
    if (!bytes)
        return stream_failed(walk, error);
    const uint32_t tag = value_tag(bytes + element->header_size, encoding_within(encoding, element).big_endian);
    *nested = tag == TAG_ITEM || (parsed && tag == TAG_SEQUENCE_END);
    return 0;
}

/*
 * Checks whether the value of an element must be walked. A value of defined length must be walked
 * if DCMTK parses it, or for its content. DCMTK recurses into SQ by VR, and without VR (implicit
 * VR, UN) by its dictionary. If the walk took such a sequence for a value, DCMTK would read past
 * its end, in bytes that were not checked. Unknown and private elements count as a sequence if they
 * begin as one.
 */
static int
is_nested(struct walk *walk, const struct element *element, struct encoding encoding, bool parsed, bool *nested)
{
    const bool is_sequence = strcmp(element->vr, "SQ") == 0;
    const bool is_unknown = !element->vr[0] || strcmp(element->vr, "UN") == 0;
    const enum dictionary_form form = parsed && is_unknown ? dictionary_form(element->tag) : DICTIONARY_UNKNOWN;
    *nested = false;
    if (is_encapsulated(element))
        return 0;
    if (element->length == UNDEFINED_LENGTH) {
        if ((!is_sequence && !is_unknown) || (!element->vr[0] && form == DICTIONARY_VALUE))
            return scan_invalid(walk, "an element of undefined length is not a sequence");
        *nested = true;
    } else if (parsed ? element->length > 0 : walk->wanted->content && element->length >= 8) {
        if (is_sequence || form == DICTIONARY_SEQUENCE)
            *nested = true;
        else if (is_unknown && form == DICTIONARY_UNKNOWN && element->length >= 4)
            return begins_nested(walk, element, encoding, parsed, nested);
    }
    return 0;
}

/* Returns the index of the first tag in an ascending list that is not below `tag`. */
static size_t
scan_lower_bound(const uint32_t *tags, size_t count, uint32_t tag)
{
    size_t low = 0;
    while (count > 0) {
        const size_t half = count / 2;
        if (tags[low + half] < tag) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static bool
scan_is_wanted(const struct scan_wanted *wanted, const struct element *element)
{
    const uint32_t tag = element->tag, number = tag & 0xFFFF;
    if ((tag >> 16) % 2 == 0) {
        const size_t place = scan_lower_bound(wanted->tags, wanted->tag_count, tag);
        return place < wanted->tag_count && wanted->tags[place] == tag;
    }
    if (number < 0x10)
        return false;
    const bool is_creator = number <= 0xFF;
    const uint32_t sought = is_creator ? tag & 0xFFFF0000 : tag & 0xFFFF00FF;
    const size_t place = scan_lower_bound(wanted->private_tags, wanted->private_count, sought);
    if (place == wanted->private_count)
        return false;
    const uint32_t found = wanted->private_tags[place];
    return is_creator ? found >> 16 == tag >> 16 : found == sought;
}

static bool
is_private(const struct element *element)
{
    return (element->tag >> 16) % 2 != 0;
}

/* Returns whether the value of an element with a wanted tag is wanted too. */
static bool
has_wanted_size(const struct scan_wanted *wanted, const struct element *element, bool nested)
{
    if (!is_private(element))
        return nested || element->length <= wanted->max_bytes;
    const uint32_t tag = element->tag & 0xFFFF00FF;
    if (wanted->max_private_bytes > 0)
        return nested || element->length <= wanted->max_private_bytes;
    if (nested) {
        const size_t place = scan_lower_bound(wanted->private_sequences, wanted->sequence_count, tag);
        return place < wanted->sequence_count && wanted->private_sequences[place] == tag;
    }
    if (tag == TAG_SIEMENS_SERIES || tag == TAG_SIEMENS_XA)
        return element->length <= LIMIT_CSA_SERIES_BYTES;
    return element->length <= (tag == TAG_SIEMENS_CSA ? LIMIT_CSA_BYTES : LIMIT_PRIVATE_BYTES);
}

/* Consumes the header of an element of this level. walk->into is the target of its value. */
static int
consume_element_header(struct walk *walk, struct level *level, const struct element *element, bool *nested)
{
    const bool wanted = level->into && (level->all ? !is_private(element) : scan_is_wanted(walk->wanted, element));
    int error = is_nested(walk, element, level->encoding, wanted, nested);
    if (error)
        return error;
    const bool kept =
        wanted && !is_encapsulated(element) && (level->all || has_wanted_size(walk->wanted, element, *nested));
    walk->into = kept ? level->into : NULL;
    if (kept && level->is_item && ++level->elements > LIMIT_ITEM_ELEMENTS)
        return scan_too_much(walk, LIMIT_ITEM_ELEMENTS, "elements in one item");
    /* A parser inserts each element in tag order, which is slow for many unordered ones. */
    if (kept && element->tag <= level->last_tag) {
        if (++walk->disorder > LIMIT_DISORDER)
            return scan_invalid(walk, "too many elements are not in the order of their tags");
    } else if (kept) {
        level->last_tag = element->tag;
    }
    return consume_header(walk, element);
}

/* Skips the fragments of an encapsulated value. No fragment may exceed `limit`. */
static int
skip_fragments(struct walk *walk, const struct element *element, struct encoding encoding, int64_t limit)
{
    scan_emit(walk, element->tag, element->length);
    for (;;) {
        struct element item;
        int error = peek_element(walk, encoding, &item);
        if (!error && item.tag != TAG_ITEM && item.tag != TAG_SEQUENCE_END)
            error = scan_invalid(walk, "an encapsulated value contains an element that is not a fragment");
        if (!error)
            error = consume_header(walk, &item);
        if (!error && (item.length == UNDEFINED_LENGTH || walk->stream->position + item.length > limit))
            error = scan_invalid(walk, "a fragment exceeds its value");
        if (error || item.tag == TAG_SEQUENCE_END)
            return error;
        error = scan_consume_value(walk, &item);
        if (error)
            return error;
    }
}

static int
push(struct walk *walk, struct level *levels, int *depth, const struct element *element, const struct level *like)
{
    if (*depth == 2 * LIMIT_DEPTH)
        return scan_invalid(walk, "sequences are nested too deeply");
    const struct level *parent = &levels[*depth];
    struct level *level = &levels[++*depth];
    *level = *like;
    level->end = -1;
    level->limit = parent->limit;
    if (element->length != UNDEFINED_LENGTH) {
        level->end = walk->stream->position + element->length;
        if (level->end > parent->limit)
            return scan_invalid(walk, "a sequence exceeds its parent");
        level->limit = level->end;
    }
    return 0;
}

/* Makes the length of the last sequence or item undefined, because parts of it may not be kept. */
static void
forget_length(struct walk *walk)
{
    if (walk->into)
        memset(walk->into->bytes + walk->into->size - 4, 0xFF, 4);
}

/* Leaves the innermost level. Ends an item of the separate sequence. The wanted elements of the item have been kept. */
static int
pop(struct walk *walk, struct level *levels, int *depth)
{
    const struct level *level = &levels[(*depth)--];
    struct scan *scan = walk->scan;
    if (level->is_item)
        scan_emit(walk, TAG_ITEM_END, 0);
    if (!level->is_frames || !level->is_item)
        return 0;
    if (scan->frame_count == walk->separate->max_items)
        return scan_too_much(walk, walk->separate->max_items, walk->separate->items);
    if (scan->frame_count == scan->frame_room) {
        const int32_t room = scan->frame_room ? 2 * scan->frame_room : 64;
        size_t *ends = reallocarray(scan->frame_ends, (size_t)room, sizeof(*ends));
        if (!ends)
            return stream_failed(walk, -ENOMEM);
        scan->frame_ends = ends;
        scan->frame_room = room;
    }
    scan->frame_ends[scan->frame_count++] = scan->frames.size;
    walk->frame_kept = 0;
    return 0;
}

/* Ends a sequence or item of defined length. Adds a delimiter after the kept elements. */
static int
pop_at_end(struct walk *walk, struct level *levels, int *depth)
{
    static const uint8_t delimiters[2][2][8] = {{{0xFE, 0xFF, 0xDD, 0xE0}, {0xFF, 0xFE, 0xE0, 0xDD}},
                                                {{0xFE, 0xFF, 0x0D, 0xE0}, {0xFF, 0xFE, 0xE0, 0x0D}}};
    const struct level *level = &levels[*depth];
    struct scan_bytes *into = level->into;
    if (!level->is_frames && into) {
        walk->into = into;
        int error = grow_kept(walk, sizeof(delimiters[0][0]));
        if (error)
            return error;
        memcpy(into->bytes + into->size, delimiters[level->is_item][level->encoding.big_endian],
               sizeof(delimiters[0][0]));
        into->size += sizeof(delimiters[0][0]);
    }
    return pop(walk, levels, depth);
}

static int
pop_at_delimiter(struct walk *walk, struct level *levels, int *depth)
{
    const struct level *level = &levels[*depth];
    walk->into = level->is_frames ? NULL : level->into;
    int error = consume(walk, 8);
    if (!error && walk->stream->position > level->limit)
        error = scan_invalid(walk, "a sequence exceeds its parent");
    return error ? error : pop(walk, levels, depth);
}

/* Skips a redundant delimiter in a sequence or item of defined length. Philips writes these, and
 * DCMTK ignores them. */
static int
skip_delimiter(struct walk *walk, const struct level *level, const struct element *element)
{
    walk->into = NULL;
    if (walk->stream->position + 8 > level->end)
        return scan_invalid(walk, "a delimiter exceeds its parent");
    return consume_header(walk, element);
}

/* Does one step inside a sequence: begins the next item, or ends the sequence. */
static int
step_in_sequence(struct walk *walk, struct level *levels, int *depth)
{
    const struct level *level = &levels[*depth];
    struct element element;
    int error = peek_element(walk, level->encoding, &element);
    if (error)
        return error;
    if (element.tag == TAG_SEQUENCE_END && level->end < 0)
        return pop_at_delimiter(walk, levels, depth);
    if (element.tag == TAG_SEQUENCE_END)
        return skip_delimiter(walk, level, &element);
    if (element.tag != TAG_ITEM)
        return scan_invalid(walk, "a sequence contains an element that is not an item");
    walk->into = level->into;
    error = consume_header(walk, &element);
    if (error)
        return error;
    forget_length(walk);
    scan_emit(walk, TAG_ITEM, 0);
    const struct level item = {.is_item = true,
                               .is_frames = level->is_frames,
                               .all = !walk->wanted->nested,
                               .into = level->is_frames ? &walk->scan->frames : level->into,
                               .encoding = level->encoding};
    return push(walk, levels, depth, &element, &item);
}

/* Does one step inside an item: consumes or opens the next element, or ends the item. */
static int
step_in_item(struct walk *walk, struct level *levels, int *depth)
{
    struct level *level = &levels[*depth];
    struct element element;
    int error = peek_element(walk, level->encoding, &element);
    if (error)
        return error;
    if (element.tag >> 16 == 0xFFFE) {
        if (element.tag != TAG_ITEM_END)
            return scan_invalid(walk, "an item contains a misplaced delimiter");
        return level->end >= 0 ? skip_delimiter(walk, level, &element) : pop_at_delimiter(walk, levels, depth);
    }
    bool nested;
    error = consume_element_header(walk, level, &element, &nested);
    if (error)
        return error;
    if (nested) {
        forget_length(walk);
        const struct level sequence = {.into = walk->into, .encoding = encoding_within(level->encoding, &element)};
        scan_emit(walk, element.tag, 0);
        return push(walk, levels, depth, &element, &sequence);
    }
    if (is_encapsulated(&element))
        return skip_fragments(walk, &element, level->encoding, level->limit);
    if (walk->stream->position + element.length > level->limit)
        return scan_invalid(walk, "an element exceeds its parent");
    return scan_consume_value(walk, &element);
}

/* Copies a UID value, without padding, of the element whose header has been consumed. */
static int
scan_read_uid(struct walk *walk, uint32_t length, char uid[DICOM_UID_SIZE])
{
    if (length >= DICOM_UID_SIZE)
        return scan_invalid(walk, "a UID of the file meta information is too long");
    memset(uid, 0, DICOM_UID_SIZE);
    int error = stream_read(walk->stream, uid, length);
    if (error) {
        uid[0] = 0; /* no partial UID */
        return stream_failed(walk, error);
    }
    for (size_t end = strlen(uid); end > 0 && uid[end - 1] == ' '; end--)
        uid[end - 1] = 0;
    return 0;
}

/* Walks group 0002, always explicit little endian (PS3.10 7.1). */
static int
walk_meta(struct walk *walk)
{
    const struct encoding encoding = {0};
    for (;;) {
        int error;
        const uint8_t *bytes = stream_peek(walk->stream, 2, &error);
        if (!bytes && error != -ENODATA)
            return stream_failed(walk, error);
        if (!bytes || value_u16(bytes, false) != 0x0002)
            return 0;
        struct element element;
        error = peek_element(walk, encoding, &element);
        if (error)
            return error;
        error = consume_header(walk, &element);
        if (error)
            return error;
        if (element.tag == TAG_TRANSFER_SYNTAX)
            error = scan_read_uid(walk, element.length, walk->scan->transfer_syntax_uid);
        else if (element.tag == TAG_MEDIA_CLASS)
            error = scan_read_uid(walk, element.length, walk->scan->media_class_uid);
        else
            error = consume(walk, element.length);
        if (error)
            return error;
    }
}

/* Returns whether the data set at the stream's position is in explicit VR, from its first
 * element. */
static bool
looks_explicit(struct stream *stream)
{
    int error;
    const uint8_t *bytes = stream_peek(stream, 6, &error);
    return bytes && value_vr_form(bytes + 4) != VALUE_VR_UNKNOWN;
}

/* Returns whether the file ends in the preamble: most preambles are all zeros. */
static bool
ends_in_preamble(struct stream *stream)
{
    int rc;
    const size_t size = (size_t)stream->file_size;
    const uint8_t *bytes = size < 132 ? stream_peek(stream, size, &rc) : NULL;
    for (size_t i = 0; bytes && i < size; i++)
        if (bytes[i] != (i < 128 ? '\0' : "DICM"[i - 128]))
            return false;
    return bytes != NULL;
}

/* Finds the start of the data set. A file without preamble counts as DICOM if it starts with an
 * element of group 0002 or 0008, as in old archives. The walk then checks that it is. */
static int
find_start(struct walk *walk)
{
    struct scan *scan = walk->scan;
    struct stream *stream = walk->stream;
    if (stream->file_size == 0)
        return error_set_files(walk->error, -EBADMSG, CODE_FILE_EMPTY, walk->path, NULL, "%s is empty. Send it again.",
                               text_base_name(walk->path));
    int rc;
    const uint8_t *bytes = stream_peek(stream, 132, &rc);
    if (!bytes && rc != -ENODATA)
        return stream_failed(walk, rc);
    scan->has_preamble = bytes && memcmp(bytes + 128, "DICM", 4) == 0;
    if (scan->has_preamble) {
        stream->position = 132;
        return 0;
    }
    bytes = stream_peek(stream, 8, &rc);
    if (!bytes && rc != -ENODATA)
        return stream_failed(walk, rc);
    if (bytes) {
        const uint16_t group = value_u16(bytes, false);
        if (group == 0x0002 || group == 0x0008)
            return 0;
    }
    if (ends_in_preamble(stream))
        return error_set_files(walk->error, -EBADMSG, CODE_FILE_TRUNCATED, walk->path, NULL,
                               "%s ends after %lld bytes, within the head of a DICOM file. Send it again.",
                               text_base_name(walk->path), (long long)stream->file_size);
    return error_set_files(walk->error, -EBADMSG, CODE_NOT_DICOM, walk->path, NULL, "%s is not a DICOM file.",
                           text_base_name(walk->path));
}

static int
find_encoding(struct walk *walk)
{
    struct scan *scan = walk->scan;
    if (!scan->transfer_syntax_uid[0]) {
        if (scan->has_preamble)
            return error_set_files(walk->error, -EBADMSG, CODE_TAG_MISSING, walk->path, NULL,
                                   "%s has no Transfer Syntax UID (0002,0010).", text_base_name(walk->path));
        strcpy(scan->transfer_syntax_uid, looks_explicit(walk->stream) ? DICOM_EXPLICIT_LITTLE : DICOM_IMPLICIT_LITTLE);
    }
    scan->syntax = transfer_find(scan->transfer_syntax_uid);
    if (!scan->syntax)
        return 0;
    scan->big_endian = scan->syntax->big_endian;
    if (scan->syntax->deflated) {
        int rc = stream_inflate(walk->stream);
        if (rc)
            return stream_failed(walk, rc);
    }
    scan->implicit_vr = !looks_explicit(walk->stream);
    return 0;
}

/* Walks the value of a top-level element whose header has been consumed. */
static int
walk_value(struct walk *walk, const struct level *data_set, const struct element *element, bool nested)
{
    if (is_encapsulated(element))
        return skip_fragments(walk, element, data_set->encoding, INT64_MAX);
    if (!nested)
        return scan_consume_value(walk, element);
    struct level sequence = {.into = walk->into,
                             .is_frames = walk->into && element->tag == walk->separate->tag,
                             .encoding = encoding_within(data_set->encoding, element)};
    if (sequence.is_frames) {
        walk->into->size -= element->header_size; /* only its items are kept */
        sequence.into = NULL;
        walk->scan->has_frames = true;
        walk->scan->frames_implicit_vr = sequence.encoding.implicit_vr;
    } else {
        forget_length(walk);
    }
    struct level levels[1 + 2 * LIMIT_DEPTH] = {{.end = -1, .limit = INT64_MAX}};
    int depth = 0;
    if (!walk->stream->inflater)
        levels[0].limit = walk->stream->file_size;
    if (element->length != UNDEFINED_LENGTH && element->length > stream_remaining(walk->stream))
        return stream_failed(walk, -ENODATA);
    scan_emit(walk, element->tag, 0);
    int error = push(walk, levels, &depth, element, &sequence);
    while (!error && depth > 0) {
        const struct level *level = &levels[depth];
        if (level->end >= 0 && walk->stream->position >= level->end)
            error = pop_at_end(walk, levels, &depth);
        else if (level->is_item)
            error = step_in_item(walk, levels, &depth);
        else
            error = step_in_sequence(walk, levels, &depth);
    }
    return error;
}

static int
walk_data_set(struct walk *walk)
{
    struct scan *scan = walk->scan;
    struct level data_set = {.into = &scan->kept, .encoding = {scan->implicit_vr, scan->big_endian}};
    for (;;) {
        int error;
        if (!stream_peek(walk->stream, 1, &error))
            return error == -ENODATA ? 0 : stream_failed(walk, error);
        struct element element;
        error = peek_element(walk, data_set.encoding, &element);
        if (error)
            return error;
        if (element.tag >> 16 == 0xFFFE || element.tag >> 16 == 0)
            return scan_invalid(walk, "an element has an impossible tag");
        walk->into = NULL;
        if (element.tag == SCAN_TAG_PIXELS || element.tag == SCAN_TAG_FLOAT_PIXELS ||
            element.tag == SCAN_TAG_DOUBLE_PIXELS) {
            error = consume(walk, element.header_size);
            if (error)
                return error;
            scan->pixel_tag = element.tag;
            memcpy(scan->pixel_vr, element.vr, sizeof(scan->pixel_vr));
            scan->encapsulated = element.length == UNDEFINED_LENGTH;
            scan->pixel_offset = walk->stream->position;
            scan->pixel_length = scan->encapsulated ? -1 : (int64_t)element.length;
            return 0;
        }
        bool nested;
        error = consume_element_header(walk, &data_set, &element, &nested);
        if (!error)
            error = walk_value(walk, &data_set, &element, nested);
        if (error)
            return error;
    }
}

struct scan_wanted
scan_wanted_of(const uint32_t *tags, size_t tag_count, uint32_t max_bytes)
{
    return (struct scan_wanted){.tags = tags, .tag_count = tag_count, .max_bytes = max_bytes};
}

int
scan_file(struct stream *stream, const char *path, const struct scan_wanted *wanted, struct scan *scan,
          struct error *error)
{
    memset(scan, 0, sizeof(*scan));
    scan->begun = scan->polled = scan_clock();
    scan->requestor = wanted->requestor;
    struct walk walk = {.stream = stream,
                        .path = path,
                        .scan = scan,
                        .wanted = wanted,
                        .separate = wanted->separate ? wanted->separate : &scan_frames,
                        .error = error};
    int rc = find_start(&walk);
    if (rc)
        return rc;
    rc = walk_meta(&walk);
    if (!rc)
        rc = find_encoding(&walk);
    if (!rc)
        rc = walk_data_set(&walk);
    if (rc == -EBADMSG && !scan->has_preamble)
        return error_set_files(error, -EBADMSG, CODE_NOT_DICOM, path, NULL, "%s is not a DICOM file.",
                               text_base_name(path));
    return rc;
}

void
scan_release(struct scan *scan)
{
    free(scan->kept.bytes);
    free(scan->frames.bytes);
    free(scan->frame_ends);
    scan->kept.bytes = scan->frames.bytes = NULL;
    scan->frame_ends = NULL;
}

int
scan_pixel_item(struct stream *stream, struct scan_item *item)
{
    int error;
    const uint8_t *bytes = stream_peek(stream, 8, &error);
    if (!bytes)
        return error;
    const uint32_t tag = value_tag(bytes, false);
    item->length = value_u32(bytes + 4, false);
    item->is_delimiter = tag == TAG_SEQUENCE_END;
    if ((tag != TAG_ITEM && tag != TAG_SEQUENCE_END) || item->length == UNDEFINED_LENGTH)
        return -EBADMSG;
    return stream_skip(stream, 8);
}
