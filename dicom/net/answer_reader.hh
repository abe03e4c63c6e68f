/*
 * answer_reader.hh - reads a data set in a peer's message: a storage commitment report, or a match
 * of a query; private to dicom/, C++.
 *
 * The bytes come from a peer and must not reach DCMTK's parser, which recurses with their nesting.
 * This reader does not recurse. Depth is limited (LIMIT_REPORT_DEPTH). Time and memory are
 * proportional to the size. The bytes must outlive the reader.
 */
#ifndef NOCTULE_DICOM_NET_ANSWER_READER_HH
#define NOCTULE_DICOM_NET_ANSWER_READER_HH

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

    /* Returns false if the data set is incomplete or nested too deeply, or if a callback below returned false. */
    bool read();

  protected:
    AnswerReader(const uint8_t *bytes, size_t size, const struct transfer_syntax &syntax);

    /* Returns whether to read the items of this sequence, a member of the data set. */
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

    /* Receives an element of the data set (take), or of an item that `opens` selected (take_of_item). */
    virtual bool take(uint32_t tag, const uint8_t *value, size_t size) = 0;

    virtual bool take_of_item(uint32_t tag, const uint8_t *value, size_t size)
    {
        (void)tag;
        (void)value;
        (void)size;
        return true;
    }

    const bool big_endian_;

  private:
    struct Element {
        uint32_t tag;
        uint32_t length;
        bool implicit_content; /* the content of a UN is implicit VR (CP-246) */
    };

    /* An open level: the data set, a sequence or an item. */
    struct Level {
        bool is_sequence;
        bool implicit_vr;
        bool delimited;     /* ends with a delimiter, at `end` at the latest */
        const uint8_t *end; /* no element may exceed it */
        uint32_t sequence;  /* tag of the sequence, also for its items; 0 for the data set */
    };

    bool step();
    size_t left() const;

    bool read_head(const Level &level, Element &element);
    bool read_value(const Element &element);
    bool enter(const Element &element, bool is_sequence);
    bool leave();
    bool is_wanted_item() const;

    const uint8_t *at_;
    Level levels_[1 + 2 * LIMIT_REPORT_DEPTH]; /* a sequence and an item per level of depth */
    size_t depth_ = 0;
};

#endif
