/*
 * option_expect.c - the options of plausibility limits of a segment
 * (service/pipeline/expectations.h).
 */
#include "config/options/option_sections.h"

static const char *const touches_choices[] = {"any", "top-bottom", "none", NULL};
static const char *const trust_choices[] = {"checks", "local", NULL};
static const char *const frame_choices[] = {"any", "CT body", NULL};

static const struct option_row share_rows[] = {
    {ROW(conf_share, text, label), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "label of another segment of the pipeline"},
    {ROW(conf_share, numbers, range), NULL, LIMITS(0, 1e9), ENDS,
     .help = "lowest and highest share, both inclusive: 0.1 is a tenth of the voxels of that segment"},
};

static const struct option_section share_section = {SECTION(share_rows, conf_share)};

#define BOUNDS(name_, low, high, help_)                                                                                \
    {                                                                                                                  \
#name_, &option_numbers, .offset = offsetof(struct conf_expect, name_.at), .fallback = "",                     \
                                 GIVEN(struct conf_expect, name_.given), LIMITS(low, high), ENDS, .help = (help_)      \
    }

/* The label of another segment, required or not. */
#define LABEL(type, member, fallback_, help_)                                                                          \
    {                                                                                                                  \
        ROW(type, text, member), (fallback_), LIMITS(1, 64), .form = &form_dicom, .help = (help_)                      \
    }
#define NUMBER(type, member, fallback_, low, high, help_)                                                              \
    {                                                                                                                  \
        ROW(type, number, member), (fallback_), LIMITS(low, high), .help = (help_)                                     \
    }
#define LIMIT(type, name_, low, high, help_)                                                                           \
    {                                                                                                                  \
#name_, &option_number, .offset = offsetof(struct type, name_.at), .fallback = "",                             \
                                GIVEN(struct type, name_.given), LIMITS(low, high), .help = (help_)                    \
    }

static const struct option_row near_rows[] = {
    LABEL(conf_near, label, NULL, "label of another segment, such as the bone"),
    NUMBER(conf_near, mm, NULL, 0.01, 100, "largest distance from it"),
    NUMBER(conf_near, share, NULL, 0, 1, "lowest share of the outline within this distance"),
    NUMBER(conf_near, outline_mm, "3.1", 0, 100,
           "the outline is the voxels outside the segment up to this distance; 0: its own outermost voxels"),
    {ROW(conf_near, choice, space), "\"volume\"", .choices = option_space_choices,
     .help = "distances in the volume, or in each slice; with \"slice\", share is the mean of the slices"},
    {ROW(conf_near, number, slice_share), "0.0", LIMITS(0, 1), ONLY_WITH("space", 1u << CONF_SPACE_SLICE),
     .help = "lowest share in all but a twentieth of the slices; 0: no limit"},
};

static const struct option_section near_section = {SECTION(near_rows, conf_near)};

static const struct option_row face_rows[] = {
    LIMIT(conf_face_cm2, lowest, 0, 1e6, "largest contact with the face at the feet; by default any"),
    LIMIT(conf_face_cm2, highest, 0, 1e6, "largest contact with the face at the head; by default any"),
    LIMIT(conf_face_cm2, sides, 0, 1e6,
          "largest contact with any of the other four faces, or with padding in a slice; by default any"),
};

static const struct option_section face_section = {SECTION(face_rows, conf_face_cm2)};

#define SIDE(name_, help_)                                                                                             \
    {                                                                                                                  \
#name_, &option_numbers, .offset = offsetof(struct conf_extent_mm, name_.at), .fallback = "",                  \
                                 GIVEN(struct conf_extent_mm, name_.given), LIMITS(0, 1e5), ENDS, .help = (help_)      \
    }

static const struct option_row extent_rows[] = {
    SIDE(height, "lowest and highest extent from feet to head, both inclusive"),
    SIDE(depth, "lowest and highest extent from front to back"),
    SIDE(width, "lowest and highest extent from right to left"),
};

static const struct option_section extent_section = {SECTION(extent_rows, conf_extent_mm)};

static const struct option_row solidity_rows[] = {
    NUMBER(conf_solidity, mm, NULL, 0.01, 100, "radius of the closing"),
    NUMBER(conf_solidity, at_least, NULL, 0, 1, "lowest share of the closing that it fills"),
    LABEL(conf_solidity, within, "", "label of another segment that the closing is cut to, such as the body"),
    NUMBER(conf_solidity, thick_mm, "0.0", 0, 200,
           "measure tissue above -200 HU of at least this thickness in the rest of the closing; 0: do not"),
    NUMBER(conf_solidity, dense_ml, "0.0", 0, 1e6, "largest volume of this tissue"),
};

static const struct option_section solidity_section = {SECTION(solidity_rows, conf_solidity)};

static void
check_dropped(const void *object, const struct option_spot *spot)
{
    const struct conf_dropped *dropped = object;
    if ((dropped->label != NULL) != (dropped->share > 0) && !LOST(spot, dropped->label) && !LOST(spot, dropped->share))
        option_refuse(spot, "share", "label and share require each other");
}

static const struct option_row dropped_rows[] = {
    NUMBER(conf_dropped, ml, "0.0", 0, 1e6, "largest volume"),
    LABEL(conf_dropped, label, "", "label of another segment: also accept volumes up to a share of it"),
    NUMBER(conf_dropped, share, "0.0", 0, 1, "share of its volume"),
};

static const struct option_section dropped_section = {SECTION(dropped_rows, conf_dropped), .check = check_dropped};

static const struct option_row jump_rows[] = {
    NUMBER(conf_jump, mm, NULL, 0.01, 1000, "distance along the body between two areas that are compared"),
    NUMBER(conf_jump, most, NULL, 0, 10, "largest change, as a share of its largest area"),
    LABEL(conf_jump, label, "", "label of another segment: compare the shares of its area instead"),
};

static const struct option_section jump_section = {SECTION(jump_rows, conf_jump)};

static const struct option_row beside_rows[] = {
    LABEL(conf_beside, label, NULL, "label of the other half, such as \"Left lung\""),
    NUMBER(conf_beside, tops_mm, NULL, 0, 1e4, "largest distance of their tops along the body"),
    NUMBER(conf_beside, bases_mm, NULL, 0, 1e4, "largest distance of their bases along the body"),
    NUMBER(conf_beside, over_mm, "15.0", 0.01, 1000, "compare their areas over this length"),
    NUMBER(conf_beside, share, "0.0", 0, 1, "lowest ratio of the smaller to the larger area; see NOTES"),
    NUMBER(conf_beside, upper_share, "0.0", 0, 1, "lowest ratio in the upper 55 %"),
};

static const struct option_section beside_section = {SECTION(beside_rows, conf_beside)};

#define PART(name_, section_, help_)                                                                                   \
    {                                                                                                                  \
        ROW(conf_expect, part, name_), "", .section = &(section_), .help = (help_)                                     \
    }

static const struct option_row expect_rows[] = {
    BOUNDS(volume_ml, 0, 1e9, "lowest and highest volume, both inclusive"),
    BOUNDS(mean, -1e9, 1e9, "lowest and highest mean of its values, both inclusive, in real-world units (HU in CT)"),
    BOUNDS(components, 1, 1e9, "lowest and highest number of 6-connected components, both inclusive"),
    BOUNDS(slices, 1, 65535,
           "lowest and highest number of slices with a voxel, both inclusive; in a straightened "
           "stack, slices of its grid"),
    {ROW(conf_expect, choice, touches), "\"any\"", .choices = touches_choices, .later = true,
     .help = "faces of the volume that it may touch: any, only those of the lowest and highest "
             "slice, or none; see NOTES for straightened stacks and padding"},
    {ROW(conf_expect, part, share_of), "", .section = &share_section,
     .help = "limits of its voxels divided by the voxels of another segment"},
    BOUNDS(share_of_box, 0, 1,
           "lowest and highest share of its bounding box, both inclusive; a vessel tree fills a "
           "small share, a leak into an organ a larger one"),
    {ROW(conf_expect, boolean, may_be_empty), "false", .later = true,
     .help = "accept an empty segment, whose limits are then not checked"},
    LIMIT(conf_expect, slice_parts, 1, 1e6, "largest number of 4-connected components in a slice"),
    LIMIT(conf_expect, mirror, 0, 1,
          "lowest share of its voxels that its mirror image, left to right, also has; see NOTES"),
    LIMIT(conf_expect, ends, 0, 1,
          "largest area of its first and its last section along the body, as a share of its largest area"),
    PART(extent_mm, extent_section, "limits of its box along the patient's axes, in mm"),
    PART(face_cm2, face_section, "limits of its contact with faces of the volume in the patient's axes, in cm2"),
    PART(near, near_section, "limit of the share of its outline near another segment"),
    PART(solidity, solidity_section, "limits of the gaps that a closing fills"),
    PART(dropped, dropped_section,
         "limit of the volume of a segment of voxels that others left out, the larger of ml and a share; it may be "
         "empty"),
    PART(jump, jump_section, "limit of the change of its area along the body"),
    PART(beside, beside_section, "limits of the difference from the other half of a pair"),
    {ROW(conf_expect, choice, frame), "\"any\"", .choices = frame_choices, .later = true,
     .help = "scale of the images: \"CT body\" requires air around the segment, soft tissue and fat at their HU, for a "
             "segment with grid_mm that is the body; see NOTES"},
    LIMIT(conf_expect, noise, 0, 1e4,
          "largest noise of soft tissue in HU, for a segment with grid_mm that is the body; see NOTES"),
    BOUNDS(slice_mm, 0, 1000,
           "lowest and highest slice distance of the images, both inclusive, to 0.001 mm: Slice "
           "Thickness (0018,0050), or the distance between slices if that is larger"),
    {ROW(conf_expect, text, unit), "", LIMITS(1, 31), .form = &form_dicom,
     .help = "required unit of the values, in UCUM: \"g/ml\" for SUV of the images, \"g/ml{SUVbw}\" for that of "
             "unit = \"suvbw\", \"Bq/ml\" for activity, \"[hnsf'U]\" for HU; from unit of the pipeline, Units "
             "(0054,1001) or Rescale Type (0028,1054)"},
    {ROW(conf_expect, boolean, contrast), "", GIVEN(struct conf_expect, has_contrast),
     .help = "required presence of Contrast/Bolus Agent (0018,0010) or its sequence (0018,0012) in one of the images"},
    {ROW(conf_expect, choice, trust), "\"checks\"", .choices = trust_choices, .later = true,
     .help =
         "results to deliver without REVIEW: checks (all that meet the limits), or local (of these, those within the "
         "ranges that this site has validated); unreviewed overrides it"},
    {ROW(conf_expect, number, trust_dice), "0.95", LIMITS(0, 1), .later = true,
     .help = "lowest Dice with its reference that noctule validate accepts of a result that would be delivered"},
};

const struct option_section option_expect = {SECTION(expect_rows, conf_expect)};
