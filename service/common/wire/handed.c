#include "service/common/wire/handed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the control message of one descriptor. */
union handed_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int
handed_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0 ? -errno : 0;
}

int
handed_send(int end, int64_t token, int fd)
{
    union handed_control control = {0};
    struct iovec bytes = {&token, sizeof token};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(end, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Returns the descriptor of the next packet, -EBADMSG for a packet without one, or -EAGAIN if there is none. */
static int
handed_receive(int end, int64_t *token)
{
    int fd = -EBADMSG;
    union handed_control control = {0};
    struct iovec bytes = {token, sizeof *token};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    const ssize_t got = recvmsg(end, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0)
        return got < 0 ? -errno : -EAGAIN;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    if ((size_t)got != sizeof *token)
        *token = -1; /* of no message */
    return fd;
}

int
handed_take(int end, int64_t token)
{
    int64_t found;
    int fd;
    while ((fd = handed_receive(end, &found)) >= 0 || fd == -EBADMSG || fd == -EINTR) {
        if (fd >= 0 && found == token)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -ENOENT;
}
