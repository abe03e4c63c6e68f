/*
 * seg_sample.h - a request to write a segmentation, built without reading files. Results inherit from its one source
 * file, which is written here.
 */
#ifndef NOCTULE_SEG_SAMPLE_H
#define NOCTULE_SEG_SAMPLE_H

#include "dicom/objects/seg/seg.h"
#include "dicom/write/element_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEG_SAMPLE_MAX_SEGMENTS 8

struct seg_sample_shape {
    int32_t columns, rows, planes, segments;
    bool fractional;     /* maps instead of masks */
    bool multi_frame;    /* one instance with all planes, in descending order */
    const char *charset; /* Specific Character Set of the source; NULL: none */
    const char *patient; /* Patient's Name, in that set; NULL: "Doe^Jane" */
};

struct seg_sample {
    char folder[64];
    char source[96]; /* the file that results inherit from */
    char target[96]; /* path of the object */
    int32_t instance_count;
    struct dicom_instance *storage;
    struct dicom_instance **instances;
    struct dicom_frame *frames;
    struct geometry_stack stack;
    uint64_t *words; /* of all segments; NULL in a fractional sample */
    uint16_t *maps;  /* of all segments; NULL in a binary sample */
    struct seg_segment segments[SEG_SAMPLE_MAX_SEGMENTS];
    char labels[SEG_SAMPLE_MAX_SEGMENTS][32];
    struct seg_request request;
};

static inline void
seg_sample_source(const struct seg_sample_shape *shape, const char *path)
{
    static const uint8_t preamble[128];
    static const uint8_t version[2] = {0, 1};
    struct element_buffer meta = {0};
    struct element_buffer file = {0};
    element_header(&meta, 0x00020001, "OB", 2);
    element_append(&meta, version, sizeof(version));
    element_text(&meta, 0x00020002, "UI", "1.2.840.10008.5.1.4.1.1.2");
    element_text(&meta, 0x00020003, "UI", "1.2.3.4.5000");
    element_text(&meta, 0x00020010, "UI", "1.2.840.10008.1.2.1");
    element_text(&meta, 0x00020012, "UI", "1.2.3.4");
    const uint32_t length = (uint32_t)meta.size;
    element_append(&file, preamble, sizeof(preamble));
    element_append(&file, "DICM", 4);
    element_ul(&file, 0x00020000, &length, 1);
    element_append(&file, meta.bytes, meta.size);
    if (shape->charset)
        element_text(&file, 0x00080005, "CS", shape->charset);
    element_text(&file, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.2");
    element_text(&file, 0x00080018, "UI", "1.2.3.4.5000");
    element_text(&file, 0x00080020, "DA", "20240229");
    element_text(&file, 0x00080030, "TM", "101112");
    element_text(&file, 0x00080050, "SH", "A1");
    element_text(&file, 0x00080060, "CS", "CT");
    element_text(&file, 0x00080090, "PN", "");
    element_text(&file, 0x00081030, "LO", "Head");
    element_text(&file, 0x00100010, "PN", shape->patient ? shape->patient : "Doe^Jane");
    element_text(&file, 0x00100020, "LO", "P1");
    element_text(&file, 0x00100030, "DA", "");
    element_text(&file, 0x00100032, "TM", "9:30"); /* not a valid TM: optional, must be dropped */
    element_text(&file, 0x00100040, "CS", "F");
    element_text(&file, 0x0020000D, "UI", "1.2.3.4.1");
    element_text(&file, 0x0020000E, "UI", "1.2.3.4.2");
    element_text(&file, 0x00200010, "SH", "S1");
    element_text(&file, 0x00200052, "UI", "1.2.3.4.3");
    element_text(&file, 0x00201040, "LO", "");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool good = fd >= 0 && !file.error && !meta.error && write(fd, file.bytes, file.size) == (ssize_t)file.size &&
                close(fd) == 0;
    element_buffer_free(&meta);
    element_buffer_free(&file);
    if (!good) {
        perror(path);
        abort();
    }
}

static inline void
seg_sample_frame(struct dicom_frame *frame, int32_t plane)
{
    static const char *const cosines[6] = {"1", "0", "0", "0", "1", "0"};
    *frame = (struct dicom_frame){
        .has_position = true,
        .has_orientation = true,
        .has_spacing = true,
        .has_rescale = true,
        .position = {-100.5, -80.25, -10.0 + 2.5 * plane},
        .orientation = {1, 0, 0, 0, 1, 0},
        .pixel_spacing = {0.5, 0.75},
        .slice_thickness = 2.5,
        .slope = 1,
        .position_text = {"-100.5", "-80.25", ""},
        .spacing_text = {"0.5", "0.75"},
        .acquired = "20241121120000.123000",
    };
    snprintf(frame->position_text[2], DICOM_DS_SIZE, "%.1f", frame->position[2]);
    for (int i = 0; i < 6; i++)
        strcpy(frame->orientation_text[i], cosines[i]);
}

static inline void
seg_sample_instance(struct seg_sample *sample, int32_t index, const struct seg_sample_shape *shape)
{
    struct dicom_instance *instance = &sample->storage[index];
    *instance = (struct dicom_instance){
        .path = sample->source,
        .file_size = 1,
        .study_uid = "1.2.3.4.1",
        .series_uid = "1.2.3.4.2",
        .frame_of_reference_uid = "1.2.3.4.3",
        .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
        .transfer_syntax_uid = "1.2.840.10008.1.2.1",
        .modality = "CT",
        .rows = shape->rows,
        .columns = shape->columns,
        .bits_allocated = 16,
        .multi_frame = shape->multi_frame,
        .frame_count = shape->multi_frame ? shape->planes : 1,
        .frames = &sample->frames[index],
    };
    if (shape->multi_frame)
        strcpy(instance->sop_class_uid, "1.2.840.10008.5.1.4.1.1.2.1");
    snprintf(instance->sop_instance_uid, DICOM_UID_SIZE, "1.2.3.4.%d", 5000 + index);
    sample->instances[index] = instance;
}

static inline void
seg_sample_stack(struct seg_sample *sample, const struct seg_sample_shape *shape)
{
    sample->stack = (struct geometry_stack){
        .accepted = true,
        .columns = shape->columns,
        .rows = shape->rows,
        .plane_count = shape->planes,
        .planes = calloc((size_t)shape->planes, sizeof(*sample->stack.planes)),
        .has_geometry = true,
        .normal = {0, 0, 1},
        .spacing = {0.75, 0.5, 2.5},
        .origin = {-100.5, -80.25, -10.0},
        .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
    };
    for (int32_t p = 0; p < shape->planes; p++) {
        int32_t frame = shape->multi_frame ? shape->planes - 1 - p : 0;
        sample->stack.planes[p] = (struct geometry_plane){
            .instance = shape->multi_frame ? 0 : p,
            .frame = frame,
            .position = -10.0 + 2.5 * p,
        };
        seg_sample_frame(&sample->frames[shape->multi_frame ? frame : p], p);
    }
}

static inline int64_t
seg_sample_voxels(const struct seg_sample_shape *shape) /* per segment */
{
    return (int64_t)shape->columns * shape->rows * shape->planes;
}

static inline void
seg_sample_segment(struct seg_sample *sample, int32_t index, const struct seg_sample_shape *shape)
{
    int64_t words_per_row = (shape->columns + 63) / 64;
    int64_t words = words_per_row * shape->rows * shape->planes;
    snprintf(sample->labels[index], sizeof(sample->labels[index]), "Part %d", index + 1);
    sample->segments[index] = (struct seg_segment){
        .label = sample->labels[index],
        .description = "",
        .category = {"123037004", "SCT", "Anatomical Structure"},
        .type = {"12738006", "SCT", "Brain"},
        .color_rgb = {1.0, 0.5, 0.0},
        .algorithm_name = "level-set",
        .algorithm_version = "1",
        .algorithm_parameters = "range 0..80",
    };
    if (shape->fractional) {
        sample->segments[index].map = sample->maps + index * seg_sample_voxels(shape);
        return;
    }
    sample->segments[index].bits = sample->words + index * words;
    sample->segments[index].words_per_row = words_per_row;
}

static inline void
seg_sample_set(struct seg_sample *sample, int32_t segment, int32_t x, int32_t y, int32_t z)
{
    const struct seg_segment *of = &sample->segments[segment];
    int64_t first = of->bits - sample->words;
    int64_t row = first + ((int64_t)z * sample->stack.rows + y) * of->words_per_row;
    sample->words[row + x / 64] |= UINT64_C(1) << x % 64;
}

static inline void
seg_sample_set_map(struct seg_sample *sample, int32_t segment, int32_t x, int32_t y, int32_t z, uint16_t connectedness)
{
    int64_t plane = (int64_t)segment * sample->stack.plane_count + z;
    sample->maps[(plane * sample->stack.rows + y) * sample->stack.columns + x] = connectedness;
}

/* Makes a sample with empty masks and maps. */
static inline void
seg_sample_make(struct seg_sample *sample, const struct seg_sample_shape *shape)
{
    *sample = (struct seg_sample){0};
    strcpy(sample->folder, "/tmp/seg-sample-XXXXXX");
    if (!mkdtemp(sample->folder)) {
        perror("mkdtemp");
        abort();
    }
    snprintf(sample->source, sizeof(sample->source), "%s/source.dcm", sample->folder);
    snprintf(sample->target, sizeof(sample->target), "%s/seg.dcm", sample->folder);
    seg_sample_source(shape, sample->source);

    int64_t words = (shape->columns + 63) / 64 * (int64_t)shape->rows * shape->planes;
    sample->instance_count = shape->multi_frame ? 1 : shape->planes;
    sample->storage = calloc((size_t)sample->instance_count, sizeof(*sample->storage));
    sample->instances = calloc((size_t)sample->instance_count, sizeof(*sample->instances));
    sample->frames = calloc((size_t)shape->planes, sizeof(*sample->frames));
    if (shape->fractional)
        sample->maps = calloc((size_t)(seg_sample_voxels(shape) * shape->segments), sizeof(*sample->maps));
    else
        sample->words = calloc((size_t)(words * shape->segments), sizeof(*sample->words));
    if (!sample->storage || !sample->instances || !sample->frames || (!sample->words && !sample->maps))
        abort();
    seg_sample_stack(sample, shape);
    for (int32_t i = 0; i < sample->instance_count; i++)
        seg_sample_instance(sample, i, shape);
    for (int32_t i = 0; i < shape->segments; i++)
        seg_sample_segment(sample, i, shape);
    sample->request = (struct seg_request){
        .source =
            {
                .instances = sample->instances,
                .instance_count = sample->instance_count,
                .stack = &sample->stack,
                .pipeline = "head-ct",
                .pipeline_settings = "range = [ 0, 80 ]",
                .software_version = "0.1.0",
                .device_serial_number = "N-1",
            },
        .segments = sample->segments,
        .segment_count = shape->segments,
        .omit_empty_frames = true,
        .type = shape->fractional ? SEG_FRACTIONAL : SEG_BINARY,
        .series_description = "",
        .series_number = 1001,
    };
}

/* Makes the stack one frame of a 2-D image: of the only instance, or of the first. */
static inline void
seg_sample_flatten(struct seg_sample *sample, int32_t frame)
{
    sample->stack.planes[0] = (struct geometry_plane){.instance = 0, .frame = frame};
    sample->stack.plane_count = 1;
    sample->stack.has_geometry = false;
    sample->stack.flat = true;
}

static inline void
seg_sample_free(struct seg_sample *sample)
{
    unlink(sample->source);
    unlink(sample->target);
    rmdir(sample->folder);
    free(sample->storage);
    free(sample->instances);
    free(sample->frames);
    free(sample->stack.planes);
    free(sample->words);
    free(sample->maps);
}

#endif
