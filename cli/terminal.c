/* cli/terminal.c: shows untrusted text on a terminal. See cli/terminal.h. */
#include "cli/terminal.h"
#include "base/utf8.h"
#include <string.h>

static bool is_harmless(int32_t code, bool lines)
{
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool is_bidi = code == 0x61c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return (lines && (code == '\n' || code == '\t')) || (!is_control && !is_bidi);
}

/* Writes the last `digits` hexadecimal digits of a number; printf is not async-signal-safe. */
static void write_hex(unsigned number, size_t digits, char *out)
{
    for (size_t i = digits; i-- > 0; number >>= 4) out[i] = "0123456789abcdef"[number & 15];
}

size_t cli_show_character(const char *bytes, size_t size, bool lines, char out[CLI_SHOWN_MAX],
                          size_t *n)
{
    int32_t code;
    const size_t used = base_utf8_decode(bytes, size, &code);
    if (code < 0) {
        *n = 4;
        memcpy(out, "\\x", 2);
        write_hex((unsigned char)*bytes, 2, out + 2);
    } else if (!is_harmless(code, lines)) {
        *n = 6;
        memcpy(out, "\\u", 2);
        write_hex((unsigned)code, 4, out + 2);
    } else {
        *n = used;
        memcpy(out, bytes, used);
    }
    return used;
}

void cli_show(struct base_buffer *out, const char *bytes, size_t size, bool lines)
{
    for (size_t i = 0, n; i < size;) {
        char shown[CLI_SHOWN_MAX];
        i += cli_show_character(bytes + i, size - i, lines, shown, &n);
        base_buffer_add(out, shown, n);
    }
}

/* Returns the size of the longest beginning of a text that ends at a word and has at most `room`
 * columns; a longer word is a line of its own. */
static size_t fit(const char *text, size_t size, size_t room)
{
    size_t end = 0;
    for (size_t i = 0; i < size;) {
        size_t word = i + strspn(text + i, " ");
        if (word > size) word = size;
        const size_t rest = strcspn(text + word, " ");
        i = word + rest < size ? word + rest : size;
        if (end > 0 && i > room) break;
        end = i;
    }
    return end;
}

void cli_show_wrapped(const char *text, size_t size, size_t column, size_t indent, size_t width,
                      struct base_buffer *out)
{
    for (;;) {
        const size_t n = fit(text, size, width > column ? width - column : 1);
        base_buffer_add(out, text, n);
        base_buffer_add_text(out, "\n");
        const size_t next = n + strspn(text + n, " ");
        if (next >= size) return;
        text += next;
        size -= next;
        column = indent;
        base_buffer_add_format(out, "%*s", (int)indent, "");
    }
}
