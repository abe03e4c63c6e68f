/*
 * source.hh - where one frame's attributes are; private to dicom/read/.
 *
 * Classic instances carry them in the data set, enhanced ones in functional groups, each of which
 * may be shared or per frame.
 */
#ifndef NOCTULE_DICOM_SOURCE_H
#define NOCTULE_DICOM_SOURCE_H

#include "dicom/read/header.hh"

#include <string_view>

class Source
{
  public:
    Source(const Header &dataset, const struct scan &scan);
    Source(const Source &) = delete;
    Source &operator=(const Source &) = delete;

    bool has_groups() const
    {
        return has_groups_;
    }

    /* To the next frame, whose functional groups are parsed. Throws where they cannot be. */
    void advance();

    /* Whether the frame has an item of its own; those without are alike. */
    bool has_own() const
    {
        return has_own_;
    }

    /* The attributes of a functional group: this frame's, or the shared one, or, in a classic
     * instance, the data set; of no item when an enhanced instance lacks the group. */
    Header group(const DcmTagKey &sequence) const;

    const Header &dataset() const
    {
        return dataset_;
    }

    /* The item of the shared functional groups, of no item in a classic instance. */
    const Header &shared() const
    {
        return shared_;
    }

    /* The frame's own item, of no item in a classic instance. */
    const Header &frame() const
    {
        return frame_;
    }

  private:
    const Header &dataset_;
    const struct scan &scan_;
    Header shared_;
    DcmDataset item_;
    Header frame_; /* of item_ */
    int32_t next_ = 0;
    bool has_groups_;
    bool has_own_ = false;
};

/* An attribute of Siemens' that stands in group 0019, and under a name in the CSA header, which older
 * software wrote alone and which stays where private groups are half stripped. (siemens.cc) */
struct siemens_attribute {
    struct private_attribute element;
    const char *csa;
};

extern const struct siemens_attribute siemens_tiles, siemens_b_value, siemens_direction,
    siemens_b_matrix;

bool siemens_number(const Source &source, const struct siemens_attribute &attribute, double *value,
                    unsigned long index = 0);
/* Returns the first `room` numbers of an attribute of the CSA image header. */
std::vector<double> siemens_csa(const Source &source, const char *name, size_t room);
/* Returns the ASCII part of the protocol; empty if it is absent. */
std::string_view siemens_protocol(const Source &source);
/* Returns the number behind "\n<key>" and "=" in the protocol; 0 if it is absent. */
double siemens_protocol_number(std::string_view protocol, std::string_view key);

/* What the type of the frame says: Image Type, or Frame Type of an enhanced frame. */
std::vector<std::string> source_types(const Source &source);

/* Returns whether a position can be one of a patient. (frames.cc) */
bool frame_is_position(const double (&position)[3]);
/* Fills where the frame lies and how large its pixels are. (frames.cc) */
void frame_read_geometry(const Source &source, bool only_frame, struct dicom_frame &frame);
/* Fills the keys that set the frame apart (keys.def). (keys.cc) */
void keys_read(const Source &source, const std::vector<std::string> &types,
               struct dicom_frame &frame);
/* Fills `excluded` and `derived`. (exclude.cc) */
void exclude_read(const Source &source, const std::vector<std::string> &types,
                  const struct dicom_instance &instance, struct dicom_frame &frame);
/* Returns the number of slices that a mosaic's header announces; 0 if it announces none. (mosaic.cc) */
int32_t mosaic_tiles(const Source &source);
/* Replaces the only frame by one per tile; the pixels must have been measured. Returns false, and changes nothing, if the
 * header lacks or contradicts the places of the tiles. (mosaic.cc) */
bool mosaic_split(const Source &source, struct dicom_instance &instance);
/* Fills the counts that the data set has, and adds those of the current frame. (counts.cc) */
void counts_read(const Source &source, struct dicom_instance &instance);
void counts_read_frame(const Source &source, struct dicom_instance &instance);
/* Fills frame_count frames. Codes of scan_check_time. (frames.cc) */
int frames_read(Source &source, struct scan &scan, struct dicom_instance &instance,
                struct error *error);

#endif
