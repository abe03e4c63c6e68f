/*
 * expression.cc - see expression.h. The engine is RE2. Text that RE2 and POSIX read differently is
 * rewritten (a backslash within [ ] is an ordinary character) or rejected here.
 */
#include "config/expression.h"

#include <re2/re2.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

struct expression {
    expression(const std::string &pattern, const RE2::Options &options) : engine(pattern, options)
    {
    }

    RE2 engine;
};

namespace
{

/* A part of the text, and why it is refused. */
struct Refusal {
    size_t at = 0, length = 0;
    const char *reason = nullptr;
};

bool
is_digit(char c)
{
    return isdigit(static_cast<unsigned char>(c)) != 0;
}

/* Returns the length of "{2,5}" at `at`, or 0 if there is no repetition. */
size_t
repetition_length(const std::string &text, size_t at)
{
    size_t end = at + 1;
    while (is_digit(text.c_str()[end]))
        end++;
    if (end == at + 1)
        return 0;
    if (text.c_str()[end] == ',')
        for (end++; is_digit(text.c_str()[end]);)
            end++;
    return text.c_str()[end] == '}' ? end + 1 - at : 0;
}

class Translation
{
  public:
    explicit Translation(const char *text) : text_(text)
    {
        while (at_ < text_.size() && !refusal_.reason)
            take_one();
    }

    const std::string &pattern() const
    {
        return pattern_;
    }

    const Refusal &refusal() const
    {
        return refusal_;
    }

  private:
    char ahead(size_t by) const
    {
        return text_.c_str()[at_ + by];
    }

    void copy(size_t length)
    {
        pattern_.append(text_, at_, length);
        at_ += length;
    }

    void refuse(size_t length, const char *reason)
    {
        refusal_ = {at_, length, reason};
    }

    void take_one()
    {
        switch (text_[at_]) {
        case '\\':
            take_escape();
            break;
        case '[':
            take_bracket();
            break;
        case '{':
            if (const size_t length = repetition_length(text_, at_))
                copy(length);
            else
                refuse(1, "a repetition must be {n}, {n,} or {n,m}; write \\{ for a brace");
            break;
        case '(':
            if (ahead(1) == '?')
                refuse(2, "look-around and other groups (?...) are not supported");
            else
                copy(1);
            break;
        default:
            copy(1);
        }
    }

    void take_escape()
    {
        const char escaped = ahead(1);
        if (is_digit(escaped))
            refuse(2, "back-references are not supported");
        else if (escaped == 'd' || escaped == 'D')
            refuse(2, "write [0-9] for a digit and [^0-9] for another character");
        else if (isalpha(static_cast<unsigned char>(escaped)) && !strchr("wWsSbB", escaped))
            refuse(2, "this escape is not supported");
        else if (escaped && strchr("<>`'", escaped))
            refuse(2, "this escape is not supported; write \\b for the edge of a word");
        else
            copy(escaped ? 2 : 1);
    }

    /* Copies a bracket expression and doubles each backslash. RE2 rejects one without an end. */
    void take_bracket()
    {
        copy(ahead(1) == '^' ? 2 : 1);
        if (ahead(0) == ']')
            copy(1);
        while (ahead(0) && ahead(0) != ']' && !refusal_.reason)
            take_member();
        if (ahead(0) == ']')
            copy(1);
    }

    void take_member()
    {
        if (ahead(0) == '[' && (ahead(1) == '.' || ahead(1) == '=')) {
            refuse(2, "collating elements [. .] and [= =] are not supported");
        } else if (ahead(0) == '[' && ahead(1) == ':') {
            const size_t end = text_.find(":]", at_ + 2);
            copy(end == std::string::npos ? text_.size() - at_ : end + 2 - at_);
        } else {
            if (ahead(0) == '\\')
                pattern_ += '\\';
            copy(1);
        }
    }

    const std::string text_;
    size_t at_ = 0;
    std::string pattern_;
    Refusal refusal_;
};

void
write_refusal(const std::string &text, const Refusal &refusal, char *reason)
{
    size_t number = 1; /* of the character, in UTF-8 */
    for (size_t i = 0; i < refusal.at; i++)
        number += (text[i] & '\xC0') != '\x80';
    snprintf(reason, EXPRESSION_REASON, "character %zu, \"%s\": %s", number,
             text.substr(refusal.at, refusal.length).c_str(), refusal.reason);
}

const char *
engine_reason(const RE2 &engine)
{
    switch (engine.error_code()) {
    case RE2::ErrorMissingParen:
        return "a parenthesis ( is not closed";
    case RE2::ErrorUnexpectedParen:
        return "a parenthesis ) is not open; write \\) for the character";
    case RE2::ErrorMissingBracket:
        return "a bracket [ is not closed";
    case RE2::ErrorBadEscape:
        return "this escape is not supported";
    case RE2::ErrorTrailingBackslash:
        return "the expression ends with a backslash";
    case RE2::ErrorRepeatSize:
        return "repetitions may not multiply to more than 1000";
    case RE2::ErrorRepeatArgument:
        return "the repeat operator has no operand";
    case RE2::ErrorPatternTooLarge:
        return "it is too large: it may take 1 MiB of memory";
    case RE2::ErrorBadUTF8:
        return "it is not valid UTF-8";
    default:
        return nullptr;
    }
}

RE2::Options
engine_options()
{
    RE2::Options options;
    options.set_posix_syntax(true);
    options.set_perl_classes(true);
    options.set_word_boundary(true);
    options.set_case_sensitive(false);
    options.set_never_capture(true);
    options.set_one_line(true); /* ^ and $ match at the ends of the subject alone */
    options.set_dot_nl(true);
    options.set_log_errors(false);
    options.set_max_mem(EXPRESSION_BYTES);
    return options;
}

} // namespace

int
expression_compile(const char *text, struct expression **expression, char reason[EXPRESSION_REASON])
{
    *expression = nullptr;
    try {
        const Translation translation(text);
        if (translation.refusal().reason) {
            write_refusal(text, translation.refusal(), reason);
            return -EINVAL;
        }
        auto made = std::make_unique<struct expression>(translation.pattern(), engine_options());
        if (!made->engine.ok()) {
            /* The engine's reason, with the part where the text has it once. */
            const char *known = engine_reason(made->engine);
            const char *why = known ? known : made->engine.error().c_str();
            const std::string &part = made->engine.error_arg();
            const std::string whole = text;
            const size_t at = part.empty() || part == whole ? std::string::npos : whole.find(part);
            if (at != std::string::npos && whole.find(part, at + 1) == std::string::npos)
                write_refusal(text, {at, part.size(), why}, reason);
            else
                snprintf(reason, EXPRESSION_REASON, "%s", why);
            return -EINVAL;
        }
        *expression = made.release();
        return 0;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

int
expression_match(const struct expression *expression, const char *subject)
{
    try {
        return RE2::PartialMatch(subject, expression->engine);
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

void
expression_free(struct expression *expression)
{
    delete expression;
}
