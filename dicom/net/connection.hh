/*
 * connection.hh - a connected socket, with or without TLS, read and written within limits of time;
 * private to dicom/, C++.
 *
 * The socket is non-blocking, so that no peer, sending a byte now and then, can stretch a limit: a
 * message has so much time of waiting as its bytes have earned, and no more.
 * The first error is latched and returned: -ECONNABORTED, -ETIMEDOUT, -ECANCELED (stop_fd), -EPROTO
 * (TLS). One thread a connection.
 */
#ifndef NOCTULE_DICOM_CONNECTION_HH
#define NOCTULE_DICOM_CONNECTION_HH

#include "dicom/net/data_pdus.hh"
#include "dicom/net/scp.h"

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

/* How long to wait. */
struct Limits {
    using Clock = std::chrono::steady_clock;

    std::chrono::milliseconds silence{};      /* longest within a message */
    std::chrono::milliseconds idle_silence{}; /* longest before a message */
    double min_rate = 0;  /* bytes per second of a message, beyond its first `silence` of waiting */
    int stop_fd = -1;     /* readable: no waiting while idle or bounded */
    bool idle = false;    /* before a message; the first byte of it ends this */
    bool bounded = false; /* every wait ends at `deadline` at the latest */
    Clock::time_point deadline;
};

/* Where the bytes of a message go that are sent together. */
struct MessagePart {
    uint8_t context_id;
    bool is_command;
    uint32_t max_pdu; /* that the peer takes; 0: any */
    bool is_last = true;
};

class Connection : public ByteSource
{
  public:
    /* Takes the socket; `ssl`, which knows its side, is NULL for plain TCP. */
    Connection(int fd, SSL *ssl, const Limits &limits);
    ~Connection() override;
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    Limits limits; /* may be changed between calls */

    /* Its time begins now, unless it begins with the first byte after `idle`. */
    void begin_message()
    {
        waited_ = {};
        moved_ = 0;
    }

    /* Of TLS; nothing for plain TCP. 0 or the error. */
    int handshake();
    int await() override;
    int read(uint8_t *bytes, size_t size) override;
    /* Exactly so many bytes: 0 or the error. */
    int write(const uint8_t *bytes, size_t size);
    /* Bytes of one command or data set, in PDUs as short as the peer wants them. */
    int write_message(const MessagePart &part, const uint8_t *bytes, size_t size);
    /* Can something be read without waiting? */
    bool has_input() const;
    /* Has the peer closed it, or is an A-ABORT the next that it sent? Between two PDUs. */
    bool peer_is_gone();
    /* Sends an A-ABORT as far as the socket takes it at once (PS3.8 9.3.8). */
    void send_abort(uint8_t source, uint8_t reason);
    /* Sends no more, and gives the peer a moment to read what was sent and close. */
    void linger(std::chrono::milliseconds time);

    int descriptor() const
    {
        return fd_;
    }

    void describe_peer(struct dicom_association_request &request) const;

    /* Why there is no TLS; "" otherwise. */
    const std::string &handshake_failure() const
    {
        return handshake_failure_;
    }

  private:
    int wait(short events);
    int wait_after(int result); /* of an SSL_ call: 0 when it is to be made again */
    int read_some(uint8_t *bytes, size_t size, size_t &got);
    int write_some(const uint8_t *bytes, size_t size, size_t &sent);
    int fail(int error);
    std::chrono::milliseconds patience() const;
    void moved(size_t count);

    int fd_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    int error_ = 0;
    std::chrono::duration<double> waited_{}; /* in the message under way */
    double moved_ = 0;                       /* its bytes so far, both ways */
    std::string handshake_failure_;
};

#endif
