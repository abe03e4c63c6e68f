/* pixel_texts.cc - see pixel_texts.hh. Markers: ITU-T T.81 B.1, T.87 C.1, T.800 A.2. */
#include "dicom/deidentify/pixel_texts.hh"

#include "dicom/value/transfer_syntax.h"

#include <dcmtk/dcmdata/dcfcache.h>
#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>

#include <cstring>

namespace
{

enum : int {
    START_OF_TILE_PART = 0x90, /* JPEG 2000 */
    START_OF_DATA = 0x93,
    COMMENT_2000 = 0x64,
    START_OF_STREAM_2000 = 0x4F,
    START_OF_STREAM = 0xD8, /* JPEG and JPEG-LS */
    END_OF_STREAM = 0xD9,   /* also of JPEG 2000 */
    START_OF_SCAN = 0xDA,
    APPLICATION = 0xE0, /* to 0xEF */
    COMMENT = 0xFE,
    END = -1,
};

/* The bytes of all fragments, one behind the other. A code stream may consist of several. */
class Fragments
{
  public:
    explicit Fragments(DcmPixelSequence &sequence) : items_(header_children<DcmPixelItem>(&sequence))
    {
        if (!items_.empty())
            items_.erase(items_.begin()); /* the offset table */
        for (DcmPixelItem *item : items_)
            starts_.push_back(starts_.back() + item->getLength());
    }

    uint64_t at() const
    {
        return buffer_begin_ + next_;
    }

    /* Keeps the buffer if it has the position, so that many short segments cost no more than one long one. */
    void skip_to(uint64_t position)
    {
        if (position >= buffer_begin_ && position - buffer_begin_ <= filled_) {
            next_ = static_cast<size_t>(position - buffer_begin_);
            return;
        }
        buffer_begin_ = position;
        next_ = filled_ = 0;
    }

    /* Returns the next byte, or END. */
    int next()
    {
        if (next_ == filled_ && !fill())
            return END;
        return buffer_[next_++];
    }

    /* Returns a number of this many bytes, or END. */
    int64_t number(int bytes)
    {
        int64_t value = 0;
        for (int i = 0; i < bytes; i++) {
            const int byte = next();
            if (byte == END)
                return END;
            value = value << 8 | byte;
        }
        return value;
    }

    bool is_empty() const
    {
        return starts_.back() == 0;
    }

    /* Overwrites the bytes from `from` to before `to`, if there are any. */
    void blank(uint64_t from, uint64_t to)
    {
        for (size_t i = from < to ? index_of(from) : items_.size(); i < items_.size() && starts_[i] < to; i++) {
            const uint64_t begin = std::max(from, starts_[i]), end = std::min(to, starts_[i + 1]);
            Uint8 *bytes = nullptr;
            if (begin >= end)
                continue;
            if (!header_is_good(items_[i]->getUint8Array(bytes)) || !bytes)
                throw std::bad_alloc();
            memset(bytes + (begin - starts_[i]), ' ', end - begin);
        }
    }

  private:
    /* Returns the fragment of a position; their number: it is behind the last one. */
    size_t index_of(uint64_t position) const
    {
        return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin()) - 1;
    }

    bool fill()
    {
        const uint64_t position = at();
        const size_t index = index_of(position);
        buffer_begin_ = position;
        next_ = filled_ = 0;
        if (index >= items_.size())
            return false;
        const uint64_t count = std::min<uint64_t>(sizeof buffer_, starts_[index + 1] - position);
        if (!header_is_good(items_[index]->getPartialValue(buffer_, static_cast<Uint32>(position - starts_[index]),
                                                           static_cast<Uint32>(count), &cache_, EBO_LittleEndian)))
            return false;
        filled_ = static_cast<size_t>(count);
        return true;
    }

    std::vector<DcmPixelItem *> items_;
    std::vector<uint64_t> starts_ = {0}; /* and the end */
    DcmFileCache cache_;
    uint8_t buffer_[65536];
    uint64_t buffer_begin_ = 0;
    size_t next_ = 0, filled_ = 0;
};

/* Overwrites bytes that belong to no code stream, up to the next one. Returns whether there is one. Bytes of 0 and 0xFF are
 * padding. */
bool
find_stream(Fragments &in, int start)
{
    uint64_t from = UINT64_MAX, to = 0;
    int before = 0, byte;
    for (; (byte = in.next()) != END && !(before == 0xFF && byte == start); before = byte)
        if (byte != 0 && byte != 0xFF) {
            to = in.at();
            from = std::min(from, to - 1);
        }
    in.blank(from, to);
    return byte != END;
}

/* Returns the next marker, or END. In entropy-coded data it is the next byte behind 0xFF that is no data and no restart. */
int
next_marker(Fragments &in, bool in_scan)
{
    int byte = in.next();
    if (!in_scan && byte != 0xFF)
        return END;
    for (;;) {
        while (byte != 0xFF && byte != END)
            byte = in.next();
        while (byte == 0xFF)
            byte = in.next();
        if (!in_scan || byte == END || (byte >= 0xC0 && (byte < 0xD0 || byte > 0xD7)))
            return byte;
    }
}

/* Segments that decoders need: JFIF (without its thumbnail), the colour transformations of Adobe and of JPEG-LS, SPIFF. */
uint64_t
needed_bytes(int marker, uint64_t size, const std::string &head)
{
    static const struct {
        int marker;
        const char *name;
        uint64_t size;
    } needed[] = {{APPLICATION, "JFIF", 14},
                  {APPLICATION + 14, "Adobe", 12},
                  {APPLICATION + 8, "mrfx", 5},
                  {APPLICATION + 8, "SPIFF", 30}};

    for (const auto &each : needed)
        if (marker == each.marker && head.compare(0, strlen(each.name), each.name) == 0)
            return std::min(size, each.size);
    return 0;
}

bool
is_of_encoder(const std::string &text)
{
    for (const char *name : {"Created by OpenJPEG version ", "Created by dcm4che/OpenJPEG version ", "Kakadu-"})
        if (text.compare(0, strlen(name), name) == 0)
            return text.size() <= strlen(name) + 8 &&
                   text.find_first_not_of("v0123456789.", strlen(name)) == std::string::npos;
    return false;
}

std::string
read_text(Fragments &in, uint64_t size)
{
    std::string text;
    for (int byte; text.size() < std::min<uint64_t>(size, 64) && (byte = in.next()) != END;)
        text += static_cast<char>(byte);
    return text;
}

/* Reads the length of a segment, cleans the segment, and moves behind it. */
bool
clean_segment(Fragments &in, int marker, bool is_2000)
{
    const int64_t length = in.number(2);
    const uint64_t begin = in.at();
    if (length < 2)
        return false;
    const uint64_t size = static_cast<uint64_t>(length) - 2;
    const bool is_text =
        is_2000 ? marker == COMMENT_2000 : marker == COMMENT || (marker >= APPLICATION && marker <= APPLICATION + 15);
    if (is_text && is_2000 && size > 2) { /* two bytes are the kind of the comment */
        in.skip_to(begin + 2);
        if (!is_of_encoder(read_text(in, size - 2)))
            in.blank(begin + 2, begin + size);
    } else if (is_text && !is_2000) {
        in.blank(begin + needed_bytes(marker, size, read_text(in, size)), begin + size);
    }
    in.skip_to(begin + size);
    return true;
}

/* JPEG and JPEG-LS. */
bool
clean_jpeg(Fragments &in)
{
    bool in_scan = false;
    for (;;) {
        const int marker = next_marker(in, in_scan);
        if (marker == END || marker == END_OF_STREAM)
            return marker == END_OF_STREAM || in_scan;
        if (!clean_segment(in, marker, false))
            return false;
        in_scan = marker == START_OF_SCAN;
    }
}

bool
clean_jpeg_2000(Fragments &in)
{
    uint64_t end_of_part = 0; /* 0: the end of the stream */
    for (;;) {
        const uint64_t begin = in.at();
        const int marker = next_marker(in, false);
        if (marker == END || marker == END_OF_STREAM)
            return marker == END_OF_STREAM;
        if (marker == START_OF_DATA && end_of_part == 0) {
            for (int before = 0, byte; (byte = in.next()) != END; before = byte)
                if (before == 0xFF && byte == END_OF_STREAM)
                    return true;
            return false;
        }
        if (marker == START_OF_DATA) {
            if (end_of_part < in.at())
                return false;
            in.skip_to(end_of_part);
            continue;
        }
        if (marker == START_OF_TILE_PART) {
            const uint64_t segment = in.at();
            in.skip_to(segment + 4);
            const int64_t size = in.number(4);
            if (size < 0)
                return false;
            end_of_part = size ? begin + static_cast<uint64_t>(size) : 0;
            in.skip_to(segment);
        }
        if (!clean_segment(in, marker, true))
            return false;
    }
}

bool
clean_fragments(DcmPixelSequence &sequence, enum transfer_codec codec)
{
    if (codec == TRANSFER_RLE)
        return true;
    const bool is_2000 = codec == TRANSFER_JPEG_2000;
    const int start = is_2000 ? START_OF_STREAM_2000 : START_OF_STREAM;
    Fragments in(sequence);
    if (in.is_empty())
        return true;
    if (in.next() != 0xFF || in.next() != start) /* a container, or none of this codec */
        return false;
    do {
        if (!(is_2000 ? clean_jpeg_2000(in) : clean_jpeg(in)))
            return false;
    } while (find_stream(in, start));
    return true;
}

/* Returns the bytes that native pixels need, or 0 if the header does not define them. */
uint64_t
native_size(DcmDataset &dataset)
{
    const auto number = [&](const DcmTagKey &tag) {
        Uint16 value = 0;
        return header_is_good(dataset.findAndGetUint16(tag, value)) ? static_cast<uint64_t>(value) : 0;
    };
    Sint32 frames = 1;
    OFString photometric;
    if (dataset.tagExistsWithValue(DCM_NumberOfFrames) &&
        !header_is_good(dataset.findAndGetSint32(DCM_NumberOfFrames, frames)))
        return 0;
    dataset.findAndGetOFString(DCM_PhotometricInterpretation, photometric);
    const uint64_t samples = photometric == "YBR_FULL_422" ? 2 : number(DCM_SamplesPerPixel);
    const uint64_t bits = number(DCM_Rows) * number(DCM_Columns) * samples * number(DCM_BitsAllocated);
    return frames < 1 || bits > UINT64_MAX / 2 / static_cast<uint64_t>(frames)
               ? 0
               : (bits * static_cast<uint64_t>(frames) + 7) / 8;
}

template <typename Word, typename Get, typename Put>
bool
cut_words(uint64_t bytes, Get get, Put put)
{
    Word *words = nullptr;
    if (!header_is_good(get(words)) || !words)
        return false;
    const std::vector<Word> kept(words, words + (bytes + sizeof(Word) - 1) / sizeof(Word));
    return header_is_good(put(kept.data(), kept.size()));
}

bool
cut_native(DcmElement &pixels, uint64_t bytes)
{
    const uint64_t even = bytes + bytes % 2;
    if (bytes == 0 || pixels.getLength() <= even)
        return true;
    if (pixels.getVR() == EVR_OB)
        return cut_words<Uint8>(
            even, [&](Uint8 *&words) { return pixels.getUint8Array(words); },
            [&](const Uint8 *words, size_t count) {
                return pixels.putUint8Array(words, static_cast<unsigned long>(count));
            });
    return cut_words<Uint16>(
        even, [&](Uint16 *&words) { return pixels.getUint16Array(words); },
        [&](const Uint16 *words, size_t count) {
            return pixels.putUint16Array(words, static_cast<unsigned long>(count));
        });
}

} // namespace

bool
pixel_texts_remove(DcmDataset &dataset)
{
    DcmElement *element = nullptr;
    if (!header_is_good(dataset.findAndGetElement(DCM_PixelData, element)))
        return true;
    const DcmXfer syntax(dataset.getOriginalXfer());
    if (!syntax.isEncapsulated())
        return cut_native(*element, native_size(dataset));
    const struct transfer_syntax *const row = transfer_find(syntax.getXferID());
    DcmPixelSequence *sequence = nullptr;
    DcmPixelData *const pixels = dynamic_cast<DcmPixelData *>(element);
    return row && pixels &&
           header_is_good(pixels->getEncapsulatedRepresentation(dataset.getOriginalXfer(), nullptr, sequence)) &&
           sequence && clean_fragments(*sequence, row->codec);
}
