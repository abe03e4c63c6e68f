/*
 * scp.cc - services of an accepted association: Verification, Storage, and results of Storage
 * Commitment (PS3.4 A, B, J), message by message.
 *
 * Data sets are written to a file without parsing. Memory is one PDU and one sink buffer, whatever the object's size.
 */
#include "dicom/net/scp.h"

#include "base/error.h"
#include "base/limits.h"
#include "dicom/net/association.hh"
#include "dicom/net/command.h"
#include "dicom/net/commitment.hh"
#include "dicom/value/storage_class.h"
#include "dicom/write/byte_sink.h"
#include "dicom/write/file_meta.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <unistd.h>
#include <vector>

struct dicom_sender {
    Association &association;
};

namespace
{

/* A refused data set is read, so that it can be answered, but only up to this limit. */
constexpr uint64_t max_dropped = LIMIT_DROPPED_MIB << 20;
/* Bytes of a data set between two checks for free space. */
constexpr uint64_t room_step = 4 << 20;

/* DIMSE statuses of N-EVENT-REPORT (PS3.7 10.1.1.1.8). */
enum : uint16_t {
    NO_SUCH_INSTANCE = 0x0112,
    NO_SUCH_EVENT_TYPE = 0x0113,
    INVALID_ARGUMENT = 0x0115,
    RESOURCE_LIMITATION = 0x0213,
};

bool
is_failure(uint16_t status)
{
    return status != DICOM_SUCCESS && (status & 0xF000) != 0xB000 && status != 0x0001 && status != 0x0107 &&
           status != 0x0116;
}

/* One sink per association, reused for its files. Allocates the buffer for the first file. */
struct Sink {
    Sink() = default;
    Sink(const Sink &) = delete;
    Sink &operator=(const Sink &) = delete;

    ~Sink()
    {
        byte_sink_close(&sink);
    }

    struct byte_sink sink = {};
};

/* A data set being received: written to a file whose store_end is called exactly once, or dropped. */
class Store
{
  public:
    Store(const struct dicom_receiver &receiver, const struct dicom_store &store, Sink &sink, uint64_t max_instance)
        : receiver_(receiver), store_(store), sink_(sink.sink), max_instance_(max_instance),
          max_dropped_(store.unwanted ? max_instance : max_dropped)
    {
    }

    ~Store()
    {
        give_up(-ECONNABORTED);
    }

    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;

    /* Allocates memory before it calls store_begin. */
    void begin(uint16_t status)
    {
        status_ = status;
        if (status != DICOM_SUCCESS)
            return;
        status_ = DICOM_OUT_OF_RESOURCES;
        if (!sink_.buffer && byte_sink_open(&sink_, -1, true) != 0)
            return;
        struct element_buffer head = {};
        const struct file_meta meta = {store_.sop_class_uid, store_.sop_instance_uid, store_.transfer_syntax_uid,
                                       store_.association->calling_ae};
        file_meta_append(&head, &meta);
        int fd = -1;
        if (!head.error)
            status_ = receiver_.store_begin(receiver_.context, &store_, &fd);
        begun_ = status_ == DICOM_SUCCESS;
        if (begun_) {
            byte_sink_restart(&sink_, fd);
            byte_sink_append(&sink_, head.bytes, head.size);
        }
        element_buffer_free(&head);
    }

    /* Returns 0, or the reason to end the association. */
    int take(const void *bytes, size_t size)
    {
        const uint64_t before = bytes_;
        bytes_ += size;
        if (!begun_)
            return bytes_ - dropped_from_ <= max_dropped_ ? 0 : full_ ? -ENOSPC : -EFBIG;
        if (bytes_ > max_instance_) {
            give_up(-EFBIG);
            return -EFBIG;
        }
        byte_sink_append(&sink_, bytes, size);
        int rc = sink_.error;
        if (!rc && receiver_.store_room && bytes_ / room_step != before / room_step)
            rc = receiver_.store_room(receiver_.context);
        if (rc) {
            give_up(rc);
            full_ = true;
            dropped_from_ = bytes_;
        }
        return 0;
    }

    /* Ends a complete data set. Returns the status of the answer. */
    uint16_t finish()
    {
        if (begun_)
            end(byte_sink_finish(&sink_));
        return status_;
    }

  private:
    void give_up(int rc)
    {
        if (!begun_)
            return;
        (void)byte_sink_finish(&sink_);
        end(rc);
    }

    void end(int rc)
    {
        begun_ = false;
        status_ = receiver_.store_end(receiver_.context, &store_, static_cast<int64_t>(bytes_), rc);
    }

    const struct dicom_receiver &receiver_;
    const struct dicom_store &store_;
    struct byte_sink &sink_;
    const uint64_t max_instance_;
    const uint64_t max_dropped_;
    uint64_t bytes_ = 0;
    uint64_t dropped_from_ = 0;
    uint16_t status_ = DICOM_SUCCESS;
    bool begun_ = false;
    bool full_ = false; /* the rest was dropped */
};

/* Returns why an instance is refused before a file is created, or DICOM_SUCCESS. */
uint16_t
scp_check_store(const PresentationContext &context, const struct command &command, bool unwanted)
{
    if (!unwanted && !storage_class_is_taken(context.abstract_syntax.c_str()))
        return DICOM_SOP_CLASS_NOT_SUPPORTED;
    if (command.uid_invalid || !command.sop_class_uid[0] || !command.sop_instance_uid[0])
        return DICOM_CANNOT_UNDERSTAND;
    return context.abstract_syntax == command.sop_class_uid ? DICOM_SUCCESS : DICOM_DATA_SET_MISMATCH;
}

class Server
{
  public:
    Server(const struct dicom_serve_options &options, const struct dicom_receiver &receiver)
        : association_(options), receiver_(receiver), max_instance_(options.max_instance)
    {
    }

    int run(int &fd, struct error *error)
    {
        int outcome = association_.receive(fd);
        if (outcome == 0)
            outcome = serve();
        association_.end(outcome);
        const int rc = outcome == Association::RELEASED ? 0 : outcome;
        association_.explain(rc, error);
        return rc;
    }

  private:
    int serve()
    {
        const enum dicom_admission admission = receiver_.admit(receiver_.context, &association_.request());
        if (admission != DICOM_ADMIT && admission != DICOM_ADMIT_ECHO && admission != DICOM_ADMIT_ARCHIVE)
            return association_.reject(admission);
        if (const int rc = association_.accept(admission, receiver_.committed != nullptr))
            return rc;
        const auto opened = Limits::Clock::now();
        if (receiver_.opened)
            receiver_.opened(receiver_.context, &association_.request());
        int outcome = 0;
        try {
            while (outcome == 0) {
                uint8_t context_id = 0;
                struct command command;
                outcome = association_.next_command(context_id, command);
                if (outcome == 0)
                    outcome = answer_message(context_id, command);
            }
        } catch (const std::bad_alloc &) {
            outcome = -ENOMEM;
        }
        totals_.seconds = std::chrono::duration<double>(Limits::Clock::now() - opened).count();
        if (receiver_.closed) {
            struct error error = {};
            const int rc = outcome == Association::RELEASED ? 0 : outcome;
            association_.explain(rc, &error);
            receiver_.closed(receiver_.context, &association_.request(), &totals_, rc, &error);
        }
        return outcome;
    }

    int answer_message(uint8_t context_id, const struct command &command)
    {
        const PresentationContext *found = association_.find_context(context_id);
        if (!found)
            return association_.violation("a message is on a context that was not accepted");
        const PresentationContext &context = *found;
        if (command.field & COMMAND_RESPONSE)
            return association_.violation("a response arrived without a request");
        if (command.field == COMMAND_C_STORE && command.has_data_set)
            return store(context, command);
        if (command.field == COMMAND_N_EVENT_REPORT) {
            std::vector<uint8_t> bytes;
            if (command.has_data_set) {
                uint64_t total = 0;
                const int error = receive_data_set(context.id, [&bytes, &total](const uint8_t *data, size_t size) {
                    /* Stop appending once over the limit. */
                    if (bytes.size() <= LIMIT_REPORT_BYTES)
                        bytes.insert(bytes.end(), data, data + size);
                    total += size;
                    return total <= max_dropped ? 0 : -EFBIG;
                });
                if (error)
                    return error;
            }
            return respond(context.id, command, check_report(context, command, bytes));
        }
        if (command.has_data_set)
            if (const int error = drop_data_set(context_id))
                return error;
        switch (command.field) {
        case COMMAND_C_ECHO:
            return respond(context_id, command,
                           context.abstract_syntax == DICOM_VERIFICATION_CLASS ? DICOM_SUCCESS
                                                                               : DICOM_SOP_CLASS_NOT_SUPPORTED);
        case COMMAND_C_STORE:
            return respond(context_id, command, DICOM_CANNOT_UNDERSTAND);
        case COMMAND_C_CANCEL: /* has no answer (PS3.7 9.3.2.3) */
            return 0;
        default:
            return respond(context_id, command, DICOM_UNRECOGNIZED_OPERATION);
        }
    }

    int store(const PresentationContext &context, const struct command &command)
    {
        struct dicom_store about = {};
        about.association = &association_.request();
        std::strcpy(about.sop_class_uid, command.sop_class_uid);
        std::strcpy(about.sop_instance_uid, command.sop_instance_uid);
        std::strcpy(about.transfer_syntax_uid, context.transfer_syntax.c_str());
        std::strcpy(about.move_originator, command.move_originator);
        about.unwanted = storage_class_is_other(context.abstract_syntax.c_str());
        about.sender = &sender_;
        Store store(receiver_, about, sink_, max_instance_);
        store.begin(scp_check_store(context, command, about.unwanted));
        totals_.refused++; /* corrected below if the answer is a success */
        const int error = receive_data_set(
            context.id, [&store](const uint8_t *bytes, size_t size) { return store.take(bytes, size); });
        if (error)
            return error;
        const uint16_t status = store.finish();
        if (!is_failure(status)) {
            totals_.refused--;
            totals_.instances++;
        }
        return respond(context.id, command, status);
    }

    uint16_t check_report(const PresentationContext &context, const struct command &command,
                          const std::vector<uint8_t> &bytes)
    {
        if (!receiver_.committed || context.abstract_syntax != DICOM_COMMITMENT_CLASS ||
            std::strcmp(command.sop_class_uid, DICOM_COMMITMENT_CLASS) != 0)
            return DICOM_SOP_CLASS_NOT_SUPPORTED;
        if (std::strcmp(command.sop_instance_uid, DICOM_COMMITMENT_INSTANCE) != 0)
            return NO_SUCH_INSTANCE;
        if (command.event_type != 1 && command.event_type != 2)
            return NO_SUCH_EVENT_TYPE;
        if (bytes.size() > LIMIT_REPORT_BYTES)
            return RESOURCE_LIMITATION;
        struct commitment commitment;
        if (!commitment_read(bytes.data(), bytes.size(), context.transfer_syntax.c_str(), commitment))
            return INVALID_ARGUMENT;
        return receiver_.committed(receiver_.context, &association_.request(), &commitment.view);
    }

    int drop_data_set(uint8_t context_id)
    {
        uint64_t total = 0;
        return receive_data_set(context_id, [&total](const uint8_t *, size_t size) {
            total += size;
            return total <= max_dropped ? 0 : -EFBIG;
        });
    }

    template <typename Take> int receive_data_set(uint8_t context_id, Take take)
    {
        for (;;) {
            Fragment fragment;
            if (const int error = association_.next_fragment(fragment))
                return error;
            if (fragment.is_command || fragment.context_id != context_id)
                return association_.violation("a data set is interrupted by another message");
            totals_.bytes += fragment.size;
            if (const int error = take(fragment.bytes, fragment.size))
                return error;
            if (fragment.is_last)
                return 0;
        }
    }

    int respond(uint8_t context_id, const struct command &command, uint16_t status)
    {
        uint8_t bytes[COMMAND_MAX];
        const size_t size = command_encode_response(&command, status, bytes);
        return association_.send_command(context_id, bytes, size);
    }

    Association association_;
    const struct dicom_sender sender_ = {association_};
    const struct dicom_receiver &receiver_;
    const uint64_t max_instance_;
    Sink sink_;
    struct dicom_association_totals totals_ = {};
};

} // namespace

bool
dicom_sender_is_gone(const struct dicom_store *store)
{
    return store->sender->association.peer_is_gone();
}

int
dicom_serve(int fd, const struct dicom_serve_options *options, const struct dicom_receiver *receiver,
            struct error *error)
{
    try {
        return Server(*options, *receiver).run(fd, error);
    } catch (...) {
        if (fd >= 0) /* otherwise its peer would wait forever */
            (void)close(fd);
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to serve an association.");
    }
}
