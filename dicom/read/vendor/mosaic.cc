/*
 * mosaic.cc - splits a mosaic: one plane whose tiles, row by row, are the slices of a volume.
 *
 * Siemens (before XA). There are ceil(sqrt(n)) tiles per row and per column. Image Position
 * (Patient) belongs to a plane of the mosaic's size, centred on the first slice. So the first pixel
 * of the first slice is offset by half of the difference of both sizes. Slices follow each other by
 * Spacing Between Slices along SliceNormalVector of the CSA header (NiBabel, "DICOM Mosaic",
 * https://nipy.org/nibabel/dicom/dicom_mosaic.html; equal to dcm2niix). If the series header has
 * the protocol, that has the centres of the first and of the last slice, which must agree.
 *
 * United Imaging. There are ceil(sqrt(n)) tiles per row. MR VFrame Sequence (0065,xx51) has one
 * item per slice, with Image Position (Patient) and the acquisition time (dcm2niix, UIH/README.md).
 */
#include "dicom/read/image/source.hh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace
{

constexpr struct private_attribute uih_tiles {
    0x0065, 0x50, "Image Private Header", EVR_IS
};

constexpr struct private_attribute uih_slices {
    0x0065, 0x51, "Image Private Header", EVR_SQ
};

/* Smaller tiles are damage, and would create more frames than the file's size justifies. */
constexpr int32_t min_tile_pixels = 16;

struct Vector {
    double x, y, z;
};

Vector
operator+(const Vector &a, const Vector &b)
{
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}

Vector
operator-(const Vector &a, const Vector &b)
{
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

Vector
operator*(double factor, const Vector &a)
{
    return {factor * a.x, factor * a.y, factor * a.z};
}

double
dot(const Vector &a, const Vector &b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

double
length(const Vector &a)
{
    return std::sqrt(dot(a, a));
}

Vector
cross(const Vector &a, const Vector &b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* A mosaic, and the positions and times of its tiles. */
struct Mosaic {
    const Source &source;
    const struct dicom_frame &plane;  /* as in the header */
    int32_t count, rows, columns;     /* number of tiles, and their pixels */
    std::vector<Vector> positions;    /* of the first pixels */
    std::vector<double> milliseconds; /* after Acquisition Time */

    Vector row() const
    {
        return {plane.orientation[0], plane.orientation[1], plane.orientation[2]};
    }

    Vector column() const
    {
        return {plane.orientation[3], plane.orientation[4], plane.orientation[5]};
    }

    /* Returns the vector within the plane, for a number of rows down and columns to the right. */
    Vector within(double rows_down, double columns_right) const
    {
        return columns_right * plane.pixel_spacing[1] * row() + rows_down * plane.pixel_spacing[0] * column();
    }
};

/* ---- Siemens ---- */

Vector
protocol_vector(std::string_view protocol, int32_t slice, const char *name)
{
    const std::string key = "\nsSliceArray.asSlice[" + std::to_string(slice) + "]." + name + ".d";
    return {siemens_protocol_number(protocol, key + "Sag"), siemens_protocol_number(protocol, key + "Cor"),
            siemens_protocol_number(protocol, key + "Tra")};
}

/* Returns whether the protocol's first and last slice are those of the mosaic, in either order,
 * and parallel. Ignores a protocol with another number of slices, or at another place (the table
 * moved). */
bool
protocol_agrees(const Mosaic &mosaic)
{
    const std::string_view protocol = siemens_protocol(mosaic.source);
    if (siemens_protocol_number(protocol, "\nsSliceArray.lSize") != mosaic.count)
        return true;
    const Vector normal =
        protocol_vector(protocol, 0, "sNormal") - protocol_vector(protocol, mosaic.count - 1, "sNormal");
    if (length(normal) > 1e-3)
        return false;
    const Vector half = mosaic.within(mosaic.rows / 2.0, mosaic.columns / 2.0);
    const Vector first = mosaic.positions.front() + half, last = mosaic.positions.back() + half;
    Vector from = protocol_vector(protocol, 0, "sPosition");
    Vector to = protocol_vector(protocol, mosaic.count - 1, "sPosition");
    if (length(first - to) < length(first - from))
        std::swap(from, to);
    const double extent = length(to - from);
    return length(first - from) > extent / 2 ||
           (dot(to - from, last - first) > 0 && std::fabs(length(last - first) - extent) <= 0.02 * extent);
}

bool
read_siemens(Mosaic &mosaic, const struct dicom_instance &instance)
{
    const std::vector<double> normal = siemens_csa(mosaic.source, "SliceNormalVector", 3);
    const std::string_view protocol = siemens_protocol(mosaic.source);
    double spacing = mosaic.plane.spacing_between_slices;
    if (!(spacing > 0) && siemens_protocol_number(protocol, "\nsSliceArray.lSize") == mosaic.count)
        spacing = length(protocol_vector(protocol, mosaic.count - 1, "sPosition") -
                         protocol_vector(protocol, 0, "sPosition")) /
                  (mosaic.count - 1);
    if (normal.size() != 3 || !(spacing > 0))
        return false;
    const Vector across = cross(mosaic.row(), mosaic.column());
    const double along = dot(across, {normal[0], normal[1], normal[2]});
    if (std::fabs(std::fabs(along) - 1) > 0.01) /* contradictory vectors */
        return false;
    const double *p = mosaic.plane.position;
    const Vector first = Vector{p[0], p[1], p[2]} +
                         mosaic.within((instance.rows - mosaic.rows) / 2.0, (instance.columns - mosaic.columns) / 2.0);
    for (int32_t i = 0; i < mosaic.count; i++)
        mosaic.positions.push_back(first + std::copysign(i * spacing, along) * across);
    mosaic.milliseconds = siemens_csa(mosaic.source, "MosaicRefAcqTimes", static_cast<size_t>(mosaic.count));
    return protocol_agrees(mosaic);
}

/* ---- United Imaging ---- */

bool
read_uih(Mosaic &mosaic)
{
    const Header &dataset = mosaic.source.dataset;
    const std::vector<DcmItem *> items =
        header_children<DcmItem>(dataset.sequence(header_private(dataset, uih_slices)));
    if (items.size() != static_cast<size_t>(mosaic.count))
        return false;
    for (DcmItem *each : items) {
        const Header item(*each);
        Vector at;
        if (!header_number(item, DCM_ImagePositionPatient, &at.x, 0) ||
            !header_number(item, DCM_ImagePositionPatient, &at.y, 1) ||
            !header_number(item, DCM_ImagePositionPatient, &at.z, 2))
            return false;
        mosaic.positions.push_back(at);
    }
    return true;
}

/* ---- frames ---- */

/* Adds to the time of "YYYYMMDDHHMMSS.FFFFFF", unless the sum is on another day. */
void
add_time(char (&acquired)[DICOM_DS_SIZE], double milliseconds)
{
    constexpr long second = 1000000, day = 86400 * second;
    int date, hours, minutes, seconds;
    long micros;
    if (!(std::fabs(milliseconds) < 86400e3) ||
        sscanf(acquired, "%8d%2d%2d%2d.%6ld", &date, &hours, &minutes, &seconds, &micros) != 5)
        return;
    const long time = (hours * 3600L + minutes * 60L + seconds) * second + micros + std::lround(milliseconds * 1000);
    if (time < 0 || time >= day)
        return;
    snprintf(acquired, sizeof(acquired), "%08d%02ld%02ld%02ld.%06ld", date, time / second / 3600,
             time / second / 60 % 60, time / second % 60, time % second);
}

} // namespace

int32_t
mosaic_tiles(const Source &source)
{
    double count;
    if (!siemens_number(source, siemens_tiles, &count) && !header_private_number(source.dataset, uih_tiles, &count))
        return 0;
    return count > 1 && count < INT16_MAX ? static_cast<int32_t>(count) : 0;
}

bool
mosaic_split(const Source &source, struct dicom_instance &instance)
{
    const struct dicom_frame &plane = instance.frames[0];
    if (instance.multi_frame || plane.tiles < 2 || !plane.has_position || !plane.has_orientation || !plane.has_spacing)
        return false;
    double announced;
    const bool is_siemens = siemens_number(source, siemens_tiles, &announced);
    const auto across = static_cast<int32_t>(std::ceil(std::sqrt(plane.tiles)));
    const int32_t down = is_siemens ? across : (plane.tiles + across - 1) / across;
    Mosaic mosaic{source, plane, plane.tiles, instance.rows / down, instance.columns / across, {}, {}};
    if (instance.rows % down != 0 || instance.columns % across != 0 ||
        std::min(mosaic.rows, mosaic.columns) < min_tile_pixels ||
        !(is_siemens ? read_siemens(mosaic, instance) : read_uih(mosaic)))
        return false;
    const auto count = static_cast<size_t>(mosaic.count);
    auto *frames = header_allocate<struct dicom_frame>(count);
    std::fill_n(frames, count, plane);
    for (size_t tile = 0; tile < count; tile++) {
        struct dicom_frame &frame = frames[tile];
        const Vector &at = mosaic.positions[tile];
        const double position[3] = {at.x, at.y, at.z};
        std::copy_n(position, 3, frame.position);
        for (int i = 0; i < 3; i++)
            snprintf(frame.position_text[i], sizeof(frame.position_text[i]), "%.10g", position[i]);
        frame.has_position = frame_is_position(frame.position);
        if (mosaic.milliseconds.size() == count)
            add_time(frame.acquired, mosaic.milliseconds[tile]);
    }
    free(instance.frames);
    instance.frames = frames;
    instance.tile_columns = across;
    instance.tile_rows = down;
    instance.frame_count = mosaic.count;
    instance.rows = mosaic.rows;
    instance.columns = mosaic.columns;
    return true;
}
