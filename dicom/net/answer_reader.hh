/*
 * answer_reader.hh - a data set that a peer sends, and no file: a storage commitment report, a match
 * of a query; private to dicom/, C++.
 *
 * A peer's bytes, so no parser of files sees them: DCMTK's recurses with their nesting. Here nothing
 * does, depth is bounded (LIMIT_REPORT_DEPTH), and what is read costs time and memory in proportion
 * to its size. The bytes outlive the reader.
 */
#ifndef NOCTULE_DICOM_ANSWER_READER_H
#define NOCTULE_DICOM_ANSWER_READER_H

#include "base/limits.h"
#include "dicom/value/transfer_syntax.h"

#include <cstddef>
#include <cstdint>

class AnswerReader
{
  public:
    virtual ~AnswerReader() = default;
    AnswerReader(const AnswerReader &) = delete;
    AnswerReader &operator=(const AnswerReader &) = delete;

    /* False when it is no whole data set, is nested deeply, or a call below said so. */
    bool read();

  protected:
    AnswerReader(const uint8_t *bytes, size_t size, const struct transfer_syntax &syntax);

    /* Is what the items of this sequence of the data set hold wanted? */
    virtual bool opens(uint32_t sequence) const
    {
        (void)sequence;
        return false;
    }

    virtual void begin_item(uint32_t sequence)
    {
        (void)sequence;
    }

    virtual bool end_item()
    {
        return true;
    }

    /* An element of the data set itself; of an item that is wanted. */
    virtual bool take(uint32_t tag, const uint8_t *value, size_t size) = 0;

    virtual bool take_of_item(uint32_t tag, const uint8_t *value, size_t size)
    {
        (void)tag;
        (void)value;
        (void)size;
        return true;
    }

    uint16_t u16(const uint8_t *bytes) const;

  private:
    struct Element {
        uint32_t tag;
        uint32_t length;
        bool implicit_content; /* what is inside a UN is implicit VR (CP-246) */
    };

    /* The data set, a sequence or an item that is open. */
    struct Level {
        bool is_sequence;
        bool implicit_vr;
        bool delimited;     /* it ends with a delimiter, at the latest at `end` */
        const uint8_t *end; /* no element of it goes beyond */
        uint32_t sequence;  /* of a sequence or of its item: its tag; 0: the data set */
    };

    bool step();
    size_t left() const;
    uint32_t u32(const uint8_t *bytes) const;
    bool read_head(const Level &level, Element &element);
    bool read_value(const Element &element);
    bool enter(const Element &element, bool is_sequence);
    bool leave();
    bool is_wanted_item() const;

    const uint8_t *at_;
    const bool big_endian_;
    Level levels_[1 + 2 * LIMIT_REPORT_DEPTH]; /* for each sequence that and an item */
    size_t depth_ = 0;
};

#endif
