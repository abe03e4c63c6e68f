/*
 * watch.c - see watch.h.
 *
 * Each frame is built in memory and written over the last one line by line, which avoids flicker.
 * Lines that do not fit are counted in the last line. Signals arrive through a descriptor between
 * frames, so that they cannot interrupt a frame.
 */
#include "service/cli/watch.h"

#include "base/terminal.h"
#include "service/common/exit_codes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Switches to the alternate screen, without a cursor and without line wrap. */
#define SCREEN_OPEN  "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_CLOSE "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define LINE_END     "\033[K\n"
#define SCREEN_BELOW "\033[J"
#define MIN_LINES    3
#define WRAP_INDENT  12 /* of continuation lines, as in the text of status */

struct screen {
    struct termios before; /* of standard input */
    bool has_keys;         /* standard input is a terminal and was changed */
    sigset_t mask;         /* the mask to restore */
    int signals;
    char *text; /* of one frame */
    size_t size;
    FILE *out;
};

enum watch_next { WATCH_DRAW, WATCH_END };

int
watch_check(const struct cli_call *call, const struct watch *watch, bool streams)
{
    if (watch->seconds > MAX_WATCH_SECONDS)
        return cli_usage_error(call->command->name, "--interval is at most %d", MAX_WATCH_SECONDS);
    if (watch->seconds && !watch->on)
        return cli_usage_error(call->command->name, "--interval needs --watch");
    if (watch->on && streams)
        return cli_usage_error(call->command->name, "--watch cannot be combined with another output format");
    if (watch->on && !isatty(STDOUT_FILENO))
        return cli_usage_error(call->command->name,
                               "--watch needs a terminal as standard output: repeat the command without it");
    return EXIT_OK;
}

/* ------------------------------------------------------------------------------- screen ---- */

static void
screen_show(struct screen *screen)
{
    screen->has_keys = tcgetattr(STDIN_FILENO, &screen->before) == 0;
    if (screen->has_keys) {
        struct termios keys = screen->before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        screen->has_keys = tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys) == 0;
    }
    fputs(SCREEN_OPEN, screen->out);
    fflush(screen->out);
}

static void
screen_hide(struct screen *screen)
{
    fputs(SCREEN_CLOSE, screen->out);
    fflush(screen->out);
    if (screen->has_keys)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
}

static int
screen_open(struct screen *screen)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    sigset_t wanted;
    *screen = (struct screen){.out = stdout};
    sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&wanted, signals[i]);
    sigprocmask(SIG_BLOCK, &wanted, &screen->mask);
    screen->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (screen->signals < 0)
        return -errno;
    screen_show(screen);
    return 0;
}

/* ------------------------------------------------------------------------------ drawing ---- */

/* Returns the number of bytes up to the next visible character, or to the end. */
static size_t
screen_skip(const char *text)
{
    size_t bytes = 0;
    while (text[bytes] == '\033' || ((unsigned char)text[bytes] & 0xc0) == 0x80) {
        const bool is_style = text[bytes] == '\033';
        bytes += is_style ? strcspn(text + bytes, "m\n") : 1;
        bytes += is_style && text[bytes] == 'm';
    }
    return bytes;
}

/* Breaks all lines that are too wide. Without memory, lines are cut at the edge of the screen. */
static void
screen_wrap(struct screen *screen)
{
    char *wrapped = NULL;
    size_t size = 0;
    const int columns = terminal_columns(screen->out);
    FILE *out = columns > 2 * WRAP_INDENT ? open_memstream(&wrapped, &size) : NULL;
    if (!out)
        return;
    for (const char *line = screen->text; *line; line += strcspn(line, "\n") + 1) {
        /* A line that is wider than the screen is broken after a word. */
        const size_t length = strcspn(line, "\n");
        size_t begin = 0, space = 0, width = 0;
        for (size_t i = screen_skip(line); i < length; i += 1 + screen_skip(line + i + 1)) {
            if (line[i] == ' ')
                space = i;
            if (++width <= (size_t)columns)
                continue;
            /* a break after the label of the first line would not make room */
            const size_t end = space > (begin ? begin : WRAP_INDENT) ? space : i;
            fprintf(out, "%.*s\n%*s", (int)(end - begin), line + begin, WRAP_INDENT, "");
            begin = end + (line[end] == ' ');
            width = WRAP_INDENT + (i >= begin ? i - begin + 1 : 0);
            space = begin;
        }
        fprintf(out, "%.*s\n", (int)(length - begin), line + begin);
        if (line[length] == '\0')
            break;
    }
    if (fclose(out) == 0) {
        free(screen->text);
        screen->text = wrapped;
        screen->size = size;
    } else {
        free(wrapped);
    }
}

/* Writes the lines that fit. The last line then gives the number of the others. */
static void
screen_put_text(struct screen *screen)
{
    struct winsize window;
    const bool known = ioctl(fileno(screen->out), TIOCGWINSZ, &window) == 0 && window.ws_row > 0;
    const size_t rows = known ? window.ws_row : 24;
    const size_t room = (rows > MIN_LINES ? rows : MIN_LINES) - 2;
    size_t lines = 0;
    for (size_t i = 0; i < screen->size; i++)
        lines += screen->text[i] == '\n';
    const size_t shown = lines <= room ? lines : room - 1;
    const char *line = screen->text;
    for (size_t i = 0; i < shown; i++) {
        const size_t length = strcspn(line, "\n");
        fwrite(line, 1, length, screen->out);
        fputs(i + 1 < room ? LINE_END : "\033[K", screen->out);
        line += length + 1;
    }
    if (shown < lines)
        fprintf(screen->out, "... and %zu more line%s\033[K", lines - shown, lines - shown == 1 ? "" : "s");
    else if (shown < room)
        fputs(SCREEN_BELOW, screen->out);
}

static int
screen_draw(struct screen *screen, struct cli_call *call, int64_t seconds, int (*draw)(struct cli_call *call),
            int *status)
{
    /* Redirect standard output and error to memory, as if they were the terminal. */
    FILE *const usual[2] = {stdout, stderr};
    FILE *memory = open_memstream(&screen->text, &screen->size);
    if (!memory)
        return -errno;
    terminal_stand_in(memory, STDOUT_FILENO);
    stdout = stderr = memory;
    *status = draw(call);
    stdout = usual[0];
    stderr = usual[1];
    terminal_stand_in(NULL, -1);
    const int rc = fclose(memory) == 0 ? 0 : -errno;
    if (rc == 0) {
        screen_wrap(screen);
        char now[32] = "";
        const time_t at = time(NULL);
        struct tm local;
        if (localtime_r(&at, &local))
            strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S", &local);
        fprintf(screen->out, SCREEN_HOME "%snoctule %s%s  %s, every %lld s; press q to quit" LINE_END LINE_END,
                cli_style(CLI_HEADING, screen->out), call->command->name, cli_style(CLI_PLAIN, screen->out), now,
                (long long)seconds);
        screen_put_text(screen);
    }
    free(screen->text);
    screen->text = NULL;
    return rc ? rc : fflush(screen->out) == 0 ? 0 : -errno;
}

/* ------------------------------------------------------------------------------ waiting ---- */

static enum watch_next
screen_take_signals(struct screen *screen)
{
    struct signalfd_siginfo signal;
    while (read(screen->signals, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGTSTP) {
            screen_hide(screen);
            raise(SIGSTOP); /* until it is continued in the foreground */
            screen_show(screen);
        } else if (signal.ssi_signo != SIGWINCH) {
            return WATCH_END;
        }
    }
    return WATCH_DRAW;
}

static enum watch_next
screen_wait(struct screen *screen, int64_t seconds)
{
    struct pollfd ends[] = {{.fd = screen->signals, .events = POLLIN},
                            {.fd = screen->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(ends, 2, (int)(1000 * seconds)) < 0)
        return errno == EINTR ? WATCH_DRAW : WATCH_END;
    if (ends[0].revents)
        return screen_take_signals(screen);
    if (!ends[1].revents)
        return WATCH_DRAW;
    char key; /* q ends; any other key draws at once */
    const ssize_t got = read(STDIN_FILENO, &key, 1);
    if (got <= 0) /* the end of input */
        screen->has_keys = false;
    return got == 1 && (key == 'q' || key == 'Q') ? WATCH_END : WATCH_DRAW;
}

int
watch_run(struct cli_call *call, const struct watch *watch, int (*draw)(struct cli_call *call))
{
    const int64_t seconds = watch->seconds ? watch->seconds : WATCH_SECONDS;
    struct screen screen;
    int status = EXIT_OK;
    int rc = screen_open(&screen);
    while (rc == 0) {
        rc = screen_draw(&screen, call, seconds, draw, &status);
        if (rc == 0 && screen_wait(&screen, seconds) == WATCH_END)
            break;
    }
    if (screen.signals >= 0) {
        screen_hide(&screen);
        close(screen.signals);
    }
    sigprocmask(SIG_SETMASK, &screen.mask, NULL);
    if (rc)
        cli_print_error("cannot draw on the terminal: %s", strerror(-rc));
    return rc ? EXIT_PARTIAL : status;
}
