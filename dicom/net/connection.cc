#include "dicom/net/connection.hh"

#include "dicom/net/associate.hh"
#include "dicom/net/tls.hh"

#include <openssl/err.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using std::chrono::milliseconds;

namespace
{

constexpr ssize_t max_lingered = 4 << 20; /* max bytes read from a peer that keeps sending */

constexpr uint32_t min_peer_pdu = 64; /* smaller maxima of a peer are raised to this */
constexpr uint32_t max_sent_pdu = DICOM_PDU_MAX;

int
poll_timeout(Limits::Clock::time_point until)
{
    const auto left = std::chrono::duration_cast<milliseconds>(until - Limits::Clock::now()).count() + 1;
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

} // namespace

Connection::Connection(int fd, SSL *ssl, const Limits &the_limits) : limits(the_limits), fd_(fd), ssl_(ssl, SSL_free)
{
}

Connection::~Connection()
{
    (void)close(fd_);
}

int
Connection::fail(int error)
{
    if (!error_)
        error_ = error;
    return error_;
}

/* Returns how long to wait for the next bytes. */
milliseconds
Connection::patience() const
{
    if (limits.idle)
        return limits.idle_silence;
    if (limits.min_rate <= 0)
        return limits.silence;
    const std::chrono::duration<double> earned(moved_ / limits.min_rate);
    const auto left = std::chrono::duration_cast<milliseconds>(limits.silence + earned - waited_);
    return std::clamp(left, milliseconds(0), limits.silence);
}

/* Counts bytes. The first bytes after `idle` begin a message. */
void
Connection::moved(size_t count)
{
    if (limits.idle && count > 0) {
        limits.idle = false;
        begin_message();
    }
    moved_ += static_cast<double>(count);
}

int
Connection::wait(short events)
{
    const auto start = Limits::Clock::now();
    auto until = start + patience();
    if (limits.bounded && limits.deadline < until)
        until = limits.deadline;
    const bool stoppable = (limits.idle || limits.bounded) && limits.stop_fd >= 0;
    for (;;) {
        struct pollfd fds[2] = {{fd_, events, 0}, {limits.stop_fd, POLLIN, 0}};
        const int ready = poll(fds, stoppable ? 2 : 1, poll_timeout(until));
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready == 0)
            return -ETIMEDOUT;
        waited_ += limits.idle ? Limits::Clock::duration(0) : Limits::Clock::now() - start;
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
        return -ECONNABORTED;
    }
}

int
Connection::await()
{
    if (!error_ && !(ssl_ && SSL_pending(ssl_.get()) > 0))
        if (const int error = wait(POLLIN))
            fail(error);
    return error_;
}

/* Returns 0 with got = 0 if the call must be repeated. */
int
Connection::read_some(uint8_t *bytes, size_t size, size_t &got)
{
    got = 0;
    if (ssl_) {
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_.get(), bytes, size, &got);
        return result == 1 ? 0 : wait_after(result);
    }
    const ssize_t result = recv(fd_, bytes, size, 0);
    if (result > 0) {
        got = static_cast<size_t>(result);
        return 0;
    }
    if (result < 0 && errno == EAGAIN)
        return wait(POLLIN);
    return result < 0 && errno == EINTR ? 0 : -ECONNABORTED;
}

int
Connection::read(uint8_t *bytes, size_t size)
{
    while (size > 0 && !error_) {
        size_t got;
        if (const int error = read_some(bytes, size, got))
            return fail(error);
        moved(got);
        bytes += got;
        size -= got;
    }
    return error_;
}

int
Connection::write_some(const uint8_t *bytes, size_t size, size_t &sent)
{
    sent = 0;
    if (ssl_) {
        ERR_clear_error();
        const int result = SSL_write_ex(ssl_.get(), bytes, size, &sent);
        return result == 1 ? 0 : wait_after(result);
    }
    const ssize_t result = send(fd_, bytes, size, MSG_NOSIGNAL);
    if (result >= 0) {
        sent = static_cast<size_t>(result);
        return 0;
    }
    if (errno == EAGAIN)
        return wait(POLLOUT);
    return errno == EINTR ? 0 : -ECONNABORTED;
}

int
Connection::write(const uint8_t *bytes, size_t size)
{
    while (size > 0 && !error_) {
        size_t sent;
        if (const int error = write_some(bytes, size, sent))
            return fail(error);
        moved(sent);
        bytes += sent;
        size -= sent;
    }
    return error_;
}

int
Connection::write_message(const MessagePart &part, const uint8_t *bytes, size_t size)
{
    const size_t wanted = part.max_pdu ? std::max(part.max_pdu, min_peer_pdu) : max_sent_pdu;
    const size_t most = (std::min<size_t>(wanted, max_sent_pdu) - pdv_head_size) & ~size_t{1};
    std::vector<uint8_t> pdu;
    while (size > 0) {
        const size_t count = std::min(most, size);
        const bool last = part.is_last && count == size;
        pdu.resize(pdu_head_size + pdv_head_size);
        pdu[0] = PDU_DATA;
        associate_put_u32(&pdu[2], pdv_head_size + count);
        associate_put_u32(&pdu[6], pdv_head_size - pdv_length_size + count);
        pdu[10] = part.context_id;
        pdu[11] = static_cast<uint8_t>((part.is_command ? pdv_command : 0) | (last ? pdv_last : 0));
        pdu.insert(pdu.end(), bytes, bytes + count);
        if (const int error = write(pdu.data(), pdu.size()))
            return error;
        bytes += count;
        size -= count;
    }
    return 0;
}

bool
Connection::has_input() const
{
    struct pollfd readable = {fd_, POLLIN, 0};
    return (ssl_ && SSL_pending(ssl_.get()) > 0) || poll(&readable, 1, 0) > 0;
}

bool
Connection::peer_is_gone()
{
    struct pollfd state = {fd_, POLLRDHUP, 0};
    uint8_t next = 0;
    if (poll(&state, 1, 0) > 0)
        return true;
    if (!ssl_)
        return recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && next == PDU_ABORT;
    size_t got;
    ERR_clear_error();
    const int result = SSL_peek_ex(ssl_.get(), &next, 1, &got);
    const int failure = SSL_get_error(ssl_.get(), result);
    return result == 1 ? next == PDU_ABORT : failure != SSL_ERROR_WANT_READ && failure != SSL_ERROR_WANT_WRITE;
}

void
Connection::send_abort(uint8_t source, uint8_t reason)
{
    const uint8_t pdu[] = {0x07, 0, 0, 0, 0, 4, 0, 0, source, reason};
    if (ssl_) {
        ERR_clear_error();
        (void)SSL_write(ssl_.get(), pdu, sizeof(pdu));
    } else {
        (void)send(fd_, pdu, sizeof(pdu), MSG_NOSIGNAL);
    }
}

/* Reads pending bytes before closing. Closing with unread bytes resets the connection, and the
 * peer may lose the last bytes sent. */
void
Connection::linger(milliseconds time)
{
    if (ssl_ && SSL_is_init_finished(ssl_.get())) {
        ERR_clear_error();
        (void)SSL_shutdown(ssl_.get());
    }
    (void)shutdown(fd_, SHUT_WR);
    const auto until = Limits::Clock::now() + time;
    char dropped[16384];
    ssize_t total = 0;
    for (int left = poll_timeout(until); left > 0 && total < max_lingered; left = poll_timeout(until)) {
        struct pollfd readable = {fd_, POLLIN, 0};
        if (poll(&readable, 1, left) <= 0)
            return;
        const ssize_t got = recv(fd_, dropped, sizeof(dropped), 0);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return;
        total += std::max<ssize_t>(got, 0);
    }
}

void
Connection::describe_peer(struct dicom_association_request &request) const
{
    request.tls = ssl_ != nullptr;
    if (ssl_)
        tls_describe_peer(ssl_.get(), request);
}

int
Connection::handshake()
{
    int error = 0;
    while (ssl_ && !error) {
        ERR_clear_error();
        const int result = SSL_do_handshake(ssl_.get());
        if (result == 1)
            return 0;
        error = wait_after(result);
    }
    if (error == 0)
        return 0;
    handshake_failure_ = "the peer closed the connection";
    if (error == -ETIMEDOUT)
        handshake_failure_ = "it took too long";
    if (error == -EPROTO) {
        /* The fault of a certificate that is not trusted is more specific than the handshake's error. */
        const char *reason = tls_reason("violation of the protocol");
        const long verified = SSL_get_verify_result(ssl_.get());
        handshake_failure_ = verified == X509_V_OK ? reason : X509_verify_cert_error_string(verified);
    }
    return fail(error);
}
