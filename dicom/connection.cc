#include "connection.hh"

#include "tls.hh"

#include <dcmtk/dcmnet/cond.h>

#include <openssl/err.h>

#include <cerrno>
#include <climits>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using std::chrono::milliseconds;

namespace
{

constexpr milliseconds linger_time(1000);

int
poll_timeout(Line::Clock::time_point until)
{
    const auto left =
        std::chrono::duration_cast<milliseconds>(until - Line::Clock::now()).count() + 1;
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

} // namespace

Connection::Connection(int fd, SSL *ssl, Line &line)
    : DcmTransportConnection(fd), ssl_(ssl, SSL_free), line_(line)
{
    line_.connection = this;
}

Connection::~Connection()
{
    closeTransportConnection();
    line_.connection = nullptr;
}

/* Latches the first error, for the line outlives what DCMTK makes of it. Never EINTR, on which
 * DCMTK would try again. */
ssize_t
Connection::fail(int error)
{
    if (!line_.error)
        line_.error = error;
    errno = -line_.error;
    return -1;
}

int
Connection::wait(short events)
{
    auto until = Line::Clock::now() + (line_.idle ? line_.idle_silence : line_.silence);
    if (line_.bounded && line_.deadline < until)
        until = line_.deadline;
    const bool stoppable = line_.idle && line_.stop_fd >= 0;
    for (;;) {
        struct pollfd fds[2] = {{getSocket(), events, 0}, {line_.stop_fd, POLLIN, 0}};
        const int ready = poll(fds, stoppable ? 2 : 1, poll_timeout(until));
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready == 0)
            return -ETIMEDOUT;
        if (ready > 0)
            return stoppable && fds[1].revents ? -ECANCELED : 0;
    }
}

int
Connection::wait_after(int result)
{
    switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
        return wait(POLLIN);
    case SSL_ERROR_WANT_WRITE:
        return wait(POLLOUT);
    case SSL_ERROR_SSL:
        return -EPROTO;
    default:
        return -ECONNRESET;
    }
}

int
Connection::await()
{
    if (!line_.error && !(ssl_ && SSL_pending(ssl_.get()) > 0))
        if (const int error = wait(POLLIN))
            fail(error);
    return line_.error;
}

ssize_t
Connection::read(void *buffer, size_t size)
{
    if (size > INT_MAX)
        size = INT_MAX;
    while (!line_.error) {
        int error = 0;
        if (ssl_) {
            ERR_clear_error();
            const int got = SSL_read(ssl_.get(), buffer, static_cast<int>(size));
            if (got > 0) {
                line_.idle = false;
                return got;
            }
            error = wait_after(got);
        } else {
            const ssize_t got = recv(getSocket(), buffer, size, 0);
            if (got > 0) {
                line_.idle = false;
                return got;
            }
            if (got == 0)
                error = -ECONNRESET;
            else if (errno == EAGAIN)
                error = wait(POLLIN);
            else if (errno != EINTR)
                error = -ECONNRESET;
        }
        if (error)
            return fail(error);
    }
    return fail(line_.error);
}

ssize_t
Connection::write(void *buffer, size_t size)
{
    const char *bytes = static_cast<const char *>(buffer);
    size_t left = size;
    while (left > 0 && !line_.error) {
        const size_t most = left > INT_MAX ? INT_MAX : left;
        int error = 0;
        ssize_t sent;
        if (ssl_) {
            ERR_clear_error();
            sent = SSL_write(ssl_.get(), bytes, static_cast<int>(most));
            if (sent <= 0)
                error = wait_after(static_cast<int>(sent));
        } else {
            sent = send(getSocket(), bytes, most, MSG_NOSIGNAL);
            if (sent < 0 && errno == EAGAIN)
                error = wait(POLLOUT);
            else if (sent < 0 && errno != EINTR)
                error = -ECONNRESET;
        }
        if (error)
            return fail(error);
        if (sent > 0) {
            bytes += sent;
            left -= static_cast<size_t>(sent);
        }
    }
    return line_.error ? fail(line_.error) : static_cast<ssize_t>(size);
}

void
Connection::send_abort(uint8_t source, uint8_t reason)
{
    uint8_t pdu[] = {0x07, 0, 0, 0, 0, 4, 0, 0, source, reason};
    if (ssl_) {
        ERR_clear_error();
        (void)SSL_write(ssl_.get(), pdu, sizeof(pdu));
    } else {
        (void)send(getSocket(), pdu, sizeof(pdu), MSG_NOSIGNAL);
    }
}

/* Closing with something unread resets the connection, and the peer may then never see what was
 * sent last. */
void
Connection::linger()
{
    const int fd = getSocket();
    if (fd < 0)
        return;
    if (ssl_ && SSL_is_init_finished(ssl_.get())) {
        ERR_clear_error();
        (void)SSL_shutdown(ssl_.get());
    }
    (void)shutdown(fd, SHUT_WR);
    const auto until = Line::Clock::now() + linger_time;
    char dropped[16384];
    for (int left = poll_timeout(until); left > 0; left = poll_timeout(until)) {
        struct pollfd readable = {fd, POLLIN, 0};
        if (poll(&readable, 1, left) <= 0)
            return;
        const ssize_t got = recv(fd, dropped, sizeof(dropped), 0);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return;
    }
}

void
Connection::describe_peer(struct dicom_association_request &request)
{
    request.tls = ssl_ != nullptr;
    if (ssl_)
        tls_describe_peer(ssl_.get(), request);
}

OFCondition
Connection::serverSideHandshake()
{
    if (!ssl_)
        return EC_Normal;
    int error = 0;
    while (!error) {
        ERR_clear_error();
        const int result = SSL_accept(ssl_.get());
        if (result == 1)
            return EC_Normal;
        error = wait_after(result);
    }
    line_.handshake_failure = error == -ETIMEDOUT ? "it took too long"
                              : error == -EPROTO  ? tls_reason("violation of the protocol")
                                                  : "the peer closed the connection";
    fail(error);
    return DUL_NETWORKCLOSED;
}

OFCondition
Connection::clientSideHandshake()
{
    return EC_IllegalCall;
}

OFCondition
Connection::renegotiate(const char *)
{
    return EC_IllegalCall;
}

void
Connection::close()
{
    if (ssl_ && getSocket() >= 0 && SSL_is_init_finished(ssl_.get())) {
        ERR_clear_error();
        (void)SSL_shutdown(ssl_.get());
    }
    closeTransportConnection();
}

void
Connection::closeTransportConnection()
{
    if (getSocket() >= 0)
        (void)::close(getSocket());
    setSocket(-1);
}

unsigned long
Connection::getPeerCertificateLength()
{
    return 0;
}

unsigned long
Connection::getPeerCertificate(void *, unsigned long)
{
    return 0;
}

/* The line's limits count, not DCMTK's. */
OFBool
Connection::networkDataAvailable(int)
{
    return await() == 0;
}

OFBool
Connection::isTransparentConnection()
{
    return !ssl_;
}

OFString &
Connection::dumpConnectionParameters(OFString &text)
{
    return text = ssl_ ? SSL_get_version(ssl_.get()) : "plain TCP";
}
