/* session.hh - a connection with a peer that has already sent everything, for targets that run whole associations. */
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
    /* Sends the bytes that fit into the socket's buffer, drops the rest, and closes the peer's direction. */
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

    /* Returns the end of the program under test, which must close it. */
    int fd() const
    {
        return ends_[0];
    }

  private:
    int ends_[2];
};

#endif
