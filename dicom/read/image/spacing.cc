/*
 * spacing.cc - the pixel spacing of 2-D images.
 *
 * PS3.3 10.7.1.3: in projection radiography, Pixel Spacing is that of the patient only if it was calibrated. Equal to Imager
 * Pixel Spacing and without Pixel Spacing Calibration Type, it is that of the detector, and the magnification remains.
 *
 * Ultrasound has a spacing per region (PS3.3 C.8.5.5). Only 2-D regions of tissue or colour flow, in cm along both axes, have
 * one in mm. The largest such region counts, and the spacing is valid in it alone.
 */
#include "dicom/read/image/source.hh"

#include <cmath>
#include <cstdio>
#include <cstring>

const char *
dicom_spacing_word(enum dicom_spacing source)
{
    static const char *const words[] = {

#define SPACING(id, word, ...) word,
#include "dicom/read/image/spacing.def"
#undef SPACING
    };
    return words[source];
}

namespace
{

constexpr int32_t region_2d = 1;
constexpr int32_t region_tissue = 1, region_color_flow = 2;
constexpr int32_t unit_cm = 3;
constexpr double max_magnification = 100; /* at 1 m from source to detector, the patient is 1 cm from the source */

/* Sets a spacing that the header does not state in this form. Returns whether it is possible. */
bool
set_spacing(struct dicom_frame &frame, double between_rows, double between_columns, enum dicom_spacing source)
{
    const double values[] = {between_rows, between_columns};
    if (!frame_is_spacing(between_rows) || !frame_is_spacing(between_columns))
        return false;
    for (int i = 0; i < 2; i++) {
        frame.pixel_spacing[i] = values[i];
        snprintf(frame.spacing_text[i], sizeof(frame.spacing_text[i]), "%.10g", values[i]);
    }
    frame.spacing = source;
    return true;
}

/* Returns Estimated Radiographic Magnification Factor, or 0 if it is absent or impossible: the patient lies between the source and
 * the detector, so a projection is no smaller than the patient. */
double
magnification(const Header &dataset)
{
    double factor;
    return header_number(dataset, DCM_EstimatedRadiographicMagnificationFactor, &factor) && factor >= 1 &&
                   factor <= max_magnification
               ? factor
               : 0;
}

bool
read_pixel_spacing(const Source &source, struct dicom_frame &frame)
{
    const Header measures = source.group(DCM_PixelMeasuresSequence);
    struct dicom_frame imager = {};
    const Header &dataset = source.dataset;
    if (!frame_read_spacing(header_has(dataset, DCM_PixelSpacing) ? dataset : measures, DCM_PixelSpacing, frame))
        return false;
    const std::string type = header_text(dataset, DCM_PixelSpacingCalibrationType);
    frame.spacing = type == "GEOMETRY"   ? DICOM_SPACING_GEOMETRY
                    : type == "FIDUCIAL" ? DICOM_SPACING_FIDUCIAL
                                         : DICOM_SPACING_PIXEL;
    /* Of the detector, under the other name. */
    return !(type.empty() && magnification(dataset) > 0 &&
             frame_read_spacing(dataset, DCM_ImagerPixelSpacing, imager) &&
             memcmp(imager.pixel_spacing, frame.pixel_spacing, sizeof(imager.pixel_spacing)) == 0);
}

bool
read_imager_spacing(const Header &dataset, struct dicom_frame &frame)
{
    const double factor = magnification(dataset);
    if (!frame_read_spacing(dataset, DCM_ImagerPixelSpacing, frame))
        return false;
    frame.spacing = DICOM_SPACING_IMAGER;
    return factor <= 0 || set_spacing(frame, frame.pixel_spacing[0] / factor, frame.pixel_spacing[1] / factor,
                                      DICOM_SPACING_MAGNIFIED);
}

/* A region of the image with its calibration. */
struct Region {
    int32_t corners[4]; /* as dicom_frame.calibrated */
    double between_rows, between_columns;

    int64_t pixels() const
    {
        return int64_t{corners[2] - corners[0] + 1} * (corners[3] - corners[1] + 1);
    }
};

bool
read_region(const Header &item, const struct dicom_instance &instance, Region &region)
{
    const DcmTagKey tags[] = {DCM_RegionLocationMinX0, DCM_RegionLocationMinY0, DCM_RegionLocationMaxX1,
                              DCM_RegionLocationMaxY1};
    int32_t format, type, units[2];
    if (!header_integer(item, DCM_RegionSpatialFormat, &format) || format != region_2d ||
        !header_integer(item, DCM_RegionDataType, &type) || (type != region_tissue && type != region_color_flow) ||
        !header_integer(item, DCM_PhysicalUnitsXDirection, &units[0]) || units[0] != unit_cm ||
        !header_integer(item, DCM_PhysicalUnitsYDirection, &units[1]) || units[1] != unit_cm ||
        !header_number(item, DCM_PhysicalDeltaX, &region.between_columns) ||
        !header_number(item, DCM_PhysicalDeltaY, &region.between_rows))
        return false;
    for (int i = 0; i < 4; i++)
        if (!header_integer(item, tags[i], &region.corners[i]) || region.corners[i] < 0)
            return false;
    region.corners[2] = std::min(region.corners[2], instance.columns - 1);
    region.corners[3] = std::min(region.corners[3], instance.rows - 1);
    constexpr double mm_per_cm = 10;
    region.between_columns = std::fabs(region.between_columns) * mm_per_cm;
    region.between_rows = std::fabs(region.between_rows) * mm_per_cm;
    return region.corners[0] <= region.corners[2] && region.corners[1] <= region.corners[3] &&
           frame_is_spacing(region.between_columns) && frame_is_spacing(region.between_rows);
}

bool
read_regions(const Header &dataset, const struct dicom_instance &instance, struct dicom_frame &frame)
{
    Region best = {};
    bool any = false;
    for (DcmItem *item : header_children<DcmItem>(dataset.sequence(DCM_SequenceOfUltrasoundRegions))) {
        Region region = {};
        if (!read_region(Header(*item), instance, region) || (any && region.pixels() <= best.pixels()))
            continue;
        best = region;
        any = true;
    }
    if (!any || !set_spacing(frame, best.between_rows, best.between_columns, DICOM_SPACING_REGION))
        return false;
    memcpy(frame.calibrated, best.corners, sizeof(frame.calibrated));
    return true;
}

} // namespace

void
spacing_read_flat(const Source &source, const struct dicom_instance &instance, struct dicom_frame &frame)
{
    const int32_t all[4] = {0, 0, instance.columns - 1, instance.rows - 1};
    memcpy(frame.calibrated, all, sizeof(all));
    frame.has_spacing = true;
    if (read_regions(source.dataset, instance, frame) || read_pixel_spacing(source, frame) ||
        read_imager_spacing(source.dataset, frame))
        return;
    if (frame_read_spacing(source.dataset, DCM_NominalScannedPixelSpacing, frame)) {
        frame.spacing = DICOM_SPACING_NOMINAL;
        return;
    }
    frame.has_spacing = false;
    frame.spacing = DICOM_SPACING_NONE;
}
