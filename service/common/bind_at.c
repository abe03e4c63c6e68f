#include "service/common/bind_at.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int
bind_at(const char *text, int port)
{
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof ipv6;
    if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
        length = sizeof ipv4;
        memcpy(&address, &ipv4, length);
    } else {
        if (*text)
            inet_pton(AF_INET6, text, &ipv6.sin6_addr); /* checked with the configuration */
        memcpy(&address, &ipv6, length);
    }
    const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EAFNOSUPPORT && !*text) /* the host has no IPv6 */
        return bind_at("0.0.0.0", port);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (!*text && address.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(fd, (const struct sockaddr *)&address, length) != 0) {
        const int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

int
bind_socket_at(const char *path, const char *octal_mode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int error = 0;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode)) {
        const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const bool is_stale = other >= 0 && connect(other, (const struct sockaddr *)&address, sizeof address) != 0 &&
                              errno == ECONNREFUSED;
        if (other >= 0)
            close(other);
        error = !is_stale ? -EADDRINUSE : unlink(path) != 0 ? -errno : 0;
    }
    const mode_t before = umask(0777 & ~(mode_t)strtoul(octal_mode, NULL, 8));
    if (!error && bind(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        error = -errno;
    umask(before);
    if (error)
        close(fd);
    return error ? error : fd;
}
