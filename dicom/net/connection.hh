/*
 * connection.hh - a connected socket, with or without TLS, read and written within time limits; private to dicom/, C++.
 *
 * The socket is non-blocking. A peer cannot stretch a limit by sending single bytes: the waiting time of a message is
 * limited by the bytes it has transferred. The first error is kept and returned: -ECONNABORTED, -ETIMEDOUT, -ECANCELED
 * (stop_fd), -EPROTO (TLS). One thread per connection.
 */
#ifndef NOCTULE_DICOM_NET_CONNECTION_HH
#define NOCTULE_DICOM_NET_CONNECTION_HH

#include "dicom/net/data_pdus.hh"
#include "dicom/net/scp.h"

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

/* Time limits. */
struct Limits {
    using Clock = std::chrono::steady_clock;

    std::chrono::milliseconds silence{};      /* longest within a message */
    std::chrono::milliseconds idle_silence{}; /* longest before a message */
    double min_rate = 0;                      /* bytes per second of a message, after its first `silence` of waiting */
    int stop_fd = -1;                         /* if readable, waits end while idle or bounded */
    bool idle = false;                        /* set before a message; its first byte clears it */
    bool bounded = false;                     /* every wait ends at `deadline` at the latest */
    Clock::time_point deadline;
};

/* Header of the PDUs that carry part of a message. */
struct MessagePart {
    uint8_t context_id;
    bool is_command;
    uint32_t max_pdu; /* longest PDU that the peer accepts; 0: any */
    bool is_last = true;
};

class Connection : public ByteSource
{
  public:
    /* Takes ownership of the socket. `ssl` must have its client or server state set; NULL for plain TCP. */
    Connection(int fd, SSL *ssl, const Limits &limits);
    ~Connection() override;
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    Limits limits; /* may be changed between calls */

    /* Starts the time of a message. After `idle` it starts with the first byte instead. */
    void begin_message()
    {
        waited_ = {};
        moved_ = 0;
    }

    /* Does the TLS handshake; does not act on plain TCP. Returns 0 or the error. */
    int handshake();
    int await() override;
    int read(uint8_t *bytes, size_t size) override;
    /* Writes exactly `size` bytes. Returns 0 or the error. */
    int write(const uint8_t *bytes, size_t size);
    /* Writes one command or data set, in PDUs within the peer's limit. */
    int write_message(const MessagePart &part, const uint8_t *bytes, size_t size);
    /* Returns whether a read would not wait. */
    bool has_input() const;
    /* Returns whether the peer has closed the connection or sent an A-ABORT next. Must be called between two PDUs. */
    bool peer_is_gone();
    /* Sends an A-ABORT if the socket takes it at once (PS3.8 9.3.8). */
    void send_abort(uint8_t source, uint8_t reason);
    /* Shuts down sending, and gives the peer `time` to read the last bytes and close. */
    void linger(std::chrono::milliseconds time);

    int descriptor() const
    {
        return fd_;
    }

    void describe_peer(struct dicom_association_request &request) const;

    /* Returns why the TLS handshake failed, or "". */
    const std::string &handshake_failure() const
    {
        return handshake_failure_;
    }

  private:
    int wait(short events);
    int wait_after(int result); /* after an SSL_ call; returns 0 if it must be repeated */
    int read_some(uint8_t *bytes, size_t size, size_t &got);
    int write_some(const uint8_t *bytes, size_t size, size_t &sent);
    int fail(int error);
    std::chrono::milliseconds patience() const;
    void moved(size_t count);

    int fd_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    int error_ = 0;
    std::chrono::duration<double> waited_{}; /* in the current message */
    double moved_ = 0;                       /* bytes of the current message, both directions */
    std::string handshake_failure_;
};

#endif
