/*
 * source.hh - finds the attributes of one frame; private to dicom/read/.
 *
 * Classic instances have them in the data set, enhanced ones in functional groups, each of which
 * may be shared or per frame.
 */
#ifndef NOCTULE_DICOM_READ_IMAGE_SOURCE_HH
#define NOCTULE_DICOM_READ_IMAGE_SOURCE_HH

#include "dicom/read/header.hh"

#include <string_view>

/* Users must only read the members. */
class Source
{
  public:
    Source(const Header &whole, const struct scan &scan);
    Source(const Source &) = delete;
    Source &operator=(const Source &) = delete;

    /* Moves to the next frame and parses its functional groups. Throws if they cannot be parsed. */
    void advance();

    /* Returns the attributes of a functional group: this frame's, or else the shared one. In a
     * classic instance returns the data set. Empty if an enhanced instance lacks the group. */
    Header group(const DcmTagKey &sequence) const;

    const Header &dataset;
    Header shared;        /* item of the shared functional groups; empty in a classic instance */
    Header frame;         /* item of the frame; empty in a classic instance */
    bool has_groups;      /* of an enhanced instance */
    bool has_own = false; /* the frame has its own item; frames without one are alike */

  private:
    const struct scan &scan_;
    DcmDataset item_; /* of the frame */
    int32_t next_ = 0;
};

/* An attribute of Siemens in group 0019, with its name in the CSA header. Older software wrote
 * only the header. It also remains if some private groups are stripped. (siemens.cc) */
struct siemens_attribute {
    struct private_attribute element;
    const char *csa;
};

extern const struct siemens_attribute siemens_tiles, siemens_b_value, siemens_direction, siemens_b_matrix;

bool siemens_number(const Source &source, const struct siemens_attribute &attribute, double *value,
                    unsigned long index = 0);
/* Returns at most `room` numbers of an attribute of the CSA image header. */
std::vector<double> siemens_csa(const Source &source, const char *name, size_t room);
/* Returns the ASCII part of the protocol; empty if it is absent. */
std::string_view siemens_protocol(const Source &source);
/* Returns the number after "\n<key>" and "=" in the protocol; 0 if absent. */
double siemens_protocol_number(std::string_view protocol, std::string_view key);

/* Returns whether a position can be one of a patient. (frames.cc) */
bool frame_is_position(const double (&position)[3]);
/* Returns whether a length can be that of a pixel. (frames.cc) */
bool frame_is_spacing(double millimetres);
/* Reads a pair of spacings and their texts. Returns whether they are possible. (frames.cc) */
bool frame_read_spacing(const Header &header, const DcmTagKey &tag, struct dicom_frame &frame);
/* Fills the spacing of a frame of a 2-D image, its source and region. (spacing.cc) */
void spacing_read_flat(const Source &source, const struct dicom_instance &instance, struct dicom_frame &frame);
/* Fills the frame's position and pixel size. (frames.cc) */
void frame_read_geometry(const Source &source, bool only_frame, struct dicom_frame &frame);
/* Fills the keys that distinguish the frame (keys.def). (keys.cc) */
void keys_read(const Source &source, const std::vector<std::string> &types, struct dicom_frame &frame);
/* Fills `excluded` and `derived`. (exclude.cc) */
void exclude_read(const Source &source, const std::vector<std::string> &types, const struct dicom_instance &instance,
                  struct dicom_frame &frame);
/* Returns the number of slices that a mosaic's header announces, or 0. (mosaic.cc) */
int32_t mosaic_tiles(const Source &source);
/* Replaces the only frame by one per tile. The pixels must have been measured. Returns false
 * without a change if positions of the tiles are missing or contradictory. (mosaic.cc) */
bool mosaic_split(const Source &source, struct dicom_instance &instance);
/* Fill the counts of the data set, and add those of the current frame. (counts.cc) */
void counts_read(const Source &source, struct dicom_instance &instance);
void counts_read_frame(const Source &source, struct dicom_instance &instance);
/* Fills frame_count frames. Codes of scan_check_time. (frames.cc) */
int frames_read(Source &source, struct scan &scan, struct dicom_instance &instance, struct error *error);

#endif
