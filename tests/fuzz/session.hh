/*
 * session.hh - a connection on which a peer has said all of its words already, for the targets that
 * see whole associations.
 */
#ifndef NOCTULE_FUZZ_SESSION_HH
#define NOCTULE_FUZZ_SESSION_HH

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

class Session
{
  public:
    /* What does not fit into the socket's buffer is not said; then the peer says no more. */
    explicit Session(const std::vector<uint8_t> &words)
    {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_) != 0)
            abort();
        (void)!send(ends_[1], words.data(), words.size(), MSG_NOSIGNAL);
        shutdown(ends_[1], SHUT_WR);
    }

    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    ~Session()
    {
        close(ends_[1]);
    }

    /* The end of who listens, who closes it. */
    int fd() const
    {
        return ends_[0];
    }

  private:
    int ends_[2];
};

#endif
