/* result_picture.c - pictures as Secondary Capture objects; see row.h. */
#include "service/pipeline/results/row.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
pictures_are_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_PICTURE) != 0;
}

size_t
picture_wanted(const struct results *results)
{
    return pictures_are_wanted(results) && !results->request->pipeline->picture_single;
}

size_t
picture_single_wanted(const struct results *results)
{
    const size_t slices = (size_t)results->request->grid->stack->plane_count;
    return !pictures_are_wanted(results) ? 0 : results->request->pipeline->picture_single ? slices + 1 : 1;
}

/* Returns the frame of an object of one frame. The last one is the overview, whose number is that after the slices. */
static int32_t
frame_of(const struct results *results, size_t number)
{
    const int32_t slices = results->request->grid->stack->plane_count;
    return results->request->pipeline->picture_single ? (int32_t)number : slices;
}

void
picture_part(const struct results *results, size_t number, char *text, size_t size)
{
    const int32_t frame = frame_of(results, number);
    if (frame == results->request->grid->stack->plane_count)
        snprintf(text, size, "overview");
    else
        snprintf(text, size, "%04d", frame + 1);
}

/*
 * Finds out whether the pixels of the source identify the patient: as its files state, and whether they show a head,
 * from whose slices a face can be reconstructed (PS3.3 C.7.6.1.1.9).
 */
static int
look_at_source(struct results *results)
{
    static const char *const heads[] = {"HEAD", "BRAIN", "SKULL", "FACE", "JAW", "ORBIT", "WHOLEBODY"};
    const struct geometry_plane *plane = &results->request->stack->planes[0];
    const struct dicom_instance *instance = results->request->headers->instances[plane->instance];
    const struct dicom_value_request request = {
        .path = instance->path,
        .attributes = "BurnedInAnnotation\nRecognizableVisualFeatures\n",
        .frames = &plane->frame,
        .frame_count = 1,
    };
    char *values = NULL;
    const int rc = dicom_read_values(&request, &values, &results->report->error);
    if (rc)
        return rc;
    const char *second = strchr(values, '\n');
    /* Volumes have no text in their pixels unless they state it. Ultrasound and captures often have. */
    const char *stated = values[0] == ATTRIBUTE_TOLD_VALUE ? values + 1 : "";
    results->burned_in =
        results->request->stack->flat ? strncmp(stated, "NO\n", 3) != 0 : strncmp(stated, "YES\n", 4) == 0;
    results->recognizable = second && strstr(second, "YES");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        results->recognizable |= strstr(instance->body_part, heads[i]) != NULL;
    free(values);
    return 0;
}

int
results_plan_pictures(struct results *results)
{
    const struct results_request *request = results->request;
    if (!pictures_are_wanted(results))
        return request->stack->flat && request->map_count > 0 ? look_at_source(results) : 0;
    const int32_t sources = request->grid->straight ? request->stack->plane_count : 0;
    const int rc = picture_frames_make(&results->drawing, sources, &results->pictures);
    return rc ? error_set_system(&results->report->error, rc, "plan the pictures") : look_at_source(results);
}

int
picture_make(const struct results *results, struct result_file *file)
{
    const struct seg_request seg = results_seg_request(results, file->name);
    struct error *error = &results->report->error;
    char comment[sizeof results->remark + 32];
    snprintf(comment, sizeof comment, "Not for diagnosis.%s%s", results->remark[0] ? " " : "", results->remark);
    struct picture_request request = {
        .source = &seg.source,
        .only = strcmp(file->name, "picture.dcm") == 0 ? -1 : frame_of(results, file->number),
        .comment = comment,
        .burned_in = results->burned_in,
        .recognizable = results->recognizable,
        .series_description = "",
        .series_number = results_series_number(&seg, RESULTS_SERIES_PICTURE),
    };
    picture_frames_fill(results->pictures, &request);
    return file->path ? picture_verify(&request, file->path, error)
                      : picture_write(&request, file->fd, &file->summary, error);
}
