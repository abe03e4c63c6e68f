/*
 * row.h - the table of files that a job may write; private to results/.
 *
 * To add a file, add a row in results_objects.c or tables.c with its functions, and for a DICOM
 * object its folder in dicom/objects/. No other code names the files.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_ROW_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_ROW_H

#include "dicom/objects/seg/seg.h"
#include "service/common/volume/volume_file.h"
#include "service/pipeline/results/picture_frames.h"
#include "service/pipeline/results/preview.h"
#include "service/pipeline/results/results.h"

/* One of each per segment of the pipeline, in its order; hidden ones may be absent. */
struct on_planes {
    size_t count;
    struct image_mask *masks;
    const uint16_t **maps; /* of connectedness; NULL: no map */
    char **descriptions;   /* Segment Description */
    uint64_t **own_bits;   /* storage for a straightened stack */
    uint16_t **own_maps;
};

/*
 * on_planes.c: puts the segments on the planes to which DICOM objects refer, and describes them.
 * Without straightening, segments are used as they are. Segments of a straightened stack are
 * converted by the nearest voxel (grid.h), and the descriptions state it. Regions that were drawn
 * on the planes and not changed stay as drawn. Returns 0 or -ENOMEM; call on_planes_release() in
 * both cases.
 */
int on_planes_make(const struct results_request *request, struct on_planes *placed, struct error *error);
void on_planes_release(struct on_planes *placed);

/* The input of the files. */
struct results {
    const struct results_request *request;
    struct pipeline_report *report;
    char *identity;                      /* of the pipeline, annotation objects and masks of programs, for UIDs */
    struct derived_equipment *equipment; /* the programs whose masks segments use */
    size_t equipment_count;
    char made_of[DICOM_UID_SIZE];     /* from derived_made_of() */
    char creator[DICOM_LO_SIZE];      /* person who corrected the masks; "" */
    char objects_made[DICOM_DS_SIZE]; /* latest date and time of the annotation objects; "" */
    /* objects that the results replace, spec->earlier_count of them */
    struct earlier *earlier;
    char remark[288]; /* note that it is delivered despite a broken expectation; else "" */
    /* One per segment that is not hidden, in the pipeline's order. */
    size_t segment_count;
    struct drawing_segment *preview_segments;
    const char **warnings; /* broken expectations, below a heading */
    size_t warning_count;
    struct seg_segment *segments;
    struct drawing_request drawing;  /* of the preview and the pictures */
    char lengths[160];               /* the origin of lengths in a 2-D image; "": a volume */
    struct picture_frames *pictures; /* NULL: none */
    bool burned_in, recognizable;    /* the source's pixels identify the patient */
    struct on_planes placed;
    char (*parameters)[SEGMENT_DESCRIPTION];
    struct seg_segment *fractional_segments; /* those with a connectedness map */
    /* The same two lists with the voxels of the grid, for segmentations on it (seg_grid = "upright"). */
    struct seg_segment *grid_segments, *fractional_grid_segments;
    int32_t fractional_count;
};

/* The object that an earlier job of the series and pipeline made, by file name. */
struct earlier {
    char file[96];
    char uids[8][DICOM_UID_SIZE];
    struct derived_earlier objects; /* for the UIDs above */
};

struct result_file {
    size_t number; /* within its kind, from 0 */
    char name[96];
    int fd;                         /* while it is written */
    const char *path;               /* for reading back; else NULL */
    struct derived_summary summary; /* filled by the writer of an object */
};

/* Functions return 0, or -errno with the report's error filled. */
struct result_row {
    const char *kind;      /* in v_results; NULL: for people, not listed */
    const char *file;      /* "*" stands for the part that distinguishes several files of a kind */
    const char *sop_class; /* NULL: not a DICOM object */
    /* number of files; NULL: written together with others */
    size_t (*wanted)(const struct results *results);
    void (*part)(const struct results *results, size_t number, char *text, size_t size); /* for "*" */
    /*
     * Writes the file. For a DICOM object it is called again with a path, to read the object back.
     * A difference is an error of this machine.
     */
    int (*make)(const struct results *results, struct result_file *file);
    /* Instead of a writer: writes the features as a table. */
    void (*put)(const struct feature_set *features, FILE *out);
    bool reads_back; /* `make` reads it back, as a DICOM object */
};

/* result_nifti.c: volume, label map and list of labels, on the grid of the masks. */
size_t nifti_wanted(const struct results *results);
int nifti_make_volume(const struct results *results, struct result_file *file);
int nifti_make_labels(const struct results *results, struct result_file *file);
int nifti_make_list(const struct results *results, struct result_file *file);

/* result_responses.c: responses of filters, as Parametric Maps and NIfTI. */
size_t response_pmap_wanted(const struct results *results);
size_t response_nifti_wanted(const struct results *results);
void response_pmap_part(const struct results *results, size_t number, char *text, size_t size);
void response_nifti_part(const struct results *results, size_t number, char *text, size_t size);
int response_pmap_make(const struct results *results, struct result_file *file);
int response_nifti_make(const struct results *results, struct result_file *file);

/* result_maps.c: maps of features, likewise. */
size_t map_of_features_pmap_wanted(const struct results *results);
size_t map_of_features_nifti_wanted(const struct results *results);
void map_of_features_pmap_part(const struct results *results, size_t number, char *text, size_t size);
void map_of_features_nifti_part(const struct results *results, size_t number, char *text, size_t size);
int map_of_features_pmap_make(const struct results *results, struct result_file *file);
int map_of_features_nifti_make(const struct results *results, struct result_file *file);

/* Content of a NIfTI file, and its writer, which also reads it back. */
struct nifti_file {
    const struct volume_grid *box;
    enum volume_type type;
    volume_fill *fill;
    void *context;
};

int result_nifti_make(const struct results *results, const struct nifti_file *content, const struct result_file *file);

/* result_slices.c: the file of the slice viewer, if the job writes it. Uses the preview's choices. Returns 0 or -errno. */
bool result_slices_wanted(const struct results *results);
int result_slices_write(const struct results *results, const struct preview_style *style, int fd);

/* Reports that a file cannot be made or finished. The name is enough, the folder is known. */
int results_file_error(struct pipeline_report *report, int rc, const char *verb, const char *name);

/* result_picture.c: plans the pictures, if the pipeline has them. Returns 0 or -errno, with the report's error filled. */
int results_plan_pictures(struct results *results);
size_t picture_wanted(const struct results *results);        /* picture.dcm */
size_t picture_single_wanted(const struct results *results); /* objects of one frame: the overview, or all */
void picture_part(const struct results *results, size_t number, char *text, size_t size);
int picture_make(const struct results *results, struct result_file *file);

/* Returns whether segmentations are written on the upright grid of a straightened stack. */
static inline bool
results_are_upright(const struct results *results)
{
    return results->request->grid->straight && results->request->pipeline->seg_grid == CONF_SEG_UPRIGHT;
}

/* Describes the segmentation of this file name: the source and the segments of the results. */
struct seg_request results_seg_request(const struct results *results, const char *file);

/* Series of the results, as offsets to the Series Number of the SEG. */
enum results_series {
    RESULTS_SERIES_SR = 1,
    RESULTS_SERIES_MAPS = 2, /* and the next two */
    RESULTS_SERIES_RTSTRUCT = 5,
    RESULTS_SERIES_LABELMAP = 6,
    RESULTS_SERIES_FRACTIONAL = 7,
    RESULTS_SERIES_PICTURE = 50,
    RESULTS_SERIES_RESPONSES = 100, /* and the number of the group of texture */
    RESULTS_SERIES_FEATURES = 200,  /* and the number of the map */
};

int32_t results_series_number(const struct seg_request *seg, int32_t offset);

/* result_rtstruct.c */
size_t result_rtstruct_wanted(const struct results *results);
int result_rtstruct_make(const struct results *results, struct result_file *file);

/* Computes the identity from which all UIDs follow. Returns 0 or -ENOMEM. */
int results_identify(struct results *results);

/*
 * Objects and volumes, written if a segment has voxels; tables for people, always written. Both end
 * with a row without a file.
 */
extern const struct result_row result_objects[], result_tables[];

#endif
