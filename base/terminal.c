#include "base/terminal.h"

#include <limits.h>
#include <sys/ioctl.h>

static FILE *terminal_memory;
static int terminal_fd;

void
terminal_stand_in(FILE *memory, int fd)
{
    terminal_memory = memory;
    terminal_fd = fd;
}

int
terminal_of(FILE *out)
{
    return out == terminal_memory ? terminal_fd : fileno(out);
}

int
terminal_columns(FILE *out)
{
    struct winsize size;
    return ioctl(terminal_of(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : INT_MAX;
}
