/*
 * connection.hh - an accepted socket, with or without TLS, as DCMTK's upper layer reads and writes
 * it; private to dicom/, C++.
 *
 * DCMTK's own connections wait by process-wide settings, one system call at a time: a peer that
 * sends a byte now and then holds them for ever. These wait by limits of their own, and say
 * afterwards why waiting ended. The socket is non-blocking. One thread a connection.
 */
#ifndef NOCTULE_DICOM_CONNECTION_HH
#define NOCTULE_DICOM_CONNECTION_HH

#include "network.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmnet/dcmlayer.h>
#include <dcmtk/dcmnet/dcmtrans.h>

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

class Connection;

/*
 * What outlives a connection, which DCMTK deletes when it likes: how long to wait, and what became
 * of it.
 */
struct Line {
    using Clock = std::chrono::steady_clock;

    std::chrono::seconds silence{};      /* longest within a message */
    std::chrono::seconds idle_silence{}; /* longest before a message */
    int stop_fd = -1;                    /* readable: no waiting before another message */
    bool idle = false;                   /* before a message; the first byte of it ends this */
    bool bounded = false;                /* every wait ends at `deadline` at the latest */
    Clock::time_point deadline;

    Connection *connection = nullptr; /* while there is one */
    int error = 0; /* what ended it: 0, -ECONNRESET, -ETIMEDOUT, -ECANCELED (stop_fd), -EPROTO */
    std::string handshake_failure; /* why there is no TLS; "" otherwise */
};

class Connection : public DcmTransportConnection
{
  public:
    /* Takes the socket; `ssl` is NULL for plain TCP. */
    Connection(int fd, SSL *ssl, Line &line);
    ~Connection() override;

    /* Waits for something to read: 0 or the line's error, with nothing consumed. */
    int await();
    /* Sends an A-ABORT as far as the socket takes it at once (PS3.8 9.3.8). */
    void send_abort(uint8_t source, uint8_t reason);
    /* Sends no more, and gives the peer a moment to read what was sent and close. */
    void linger();
    void describe_peer(struct dicom_association_request &request);

    OFCondition serverSideHandshake() override;
    OFCondition clientSideHandshake() override;
    OFCondition renegotiate(const char *suite) override;
    ssize_t read(void *buffer, size_t size) override;
    ssize_t write(void *buffer, size_t size) override;
    void close() override;
    void closeTransportConnection() override;
    unsigned long getPeerCertificateLength() override;
    unsigned long getPeerCertificate(void *buffer, unsigned long size) override;
    OFBool networkDataAvailable(int timeout) override;
    OFBool isTransparentConnection() override;
    OFString &dumpConnectionParameters(OFString &text) override;

  private:
    int wait(short events);
    int wait_after(int result); /* of an SSL_ call: 0 when it is to be made again */
    ssize_t fail(int error);

    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    Line &line_;
};

#endif
