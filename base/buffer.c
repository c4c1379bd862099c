/* base/buffer.c: growable byte strings. See base/buffer.h. */
#include "base/buffer.h"
#include "base/size.h"
#include "base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct base_buffer *b, size_t more)
{
    uint64_t need;
    if (b->failed || !base_add(b->size, more, &need) || !base_add(need, 1, &need)) goto fail;
    if (need <= b->room) return true;
    size_t room = b->room ? b->room : 64;
    while (room < need) room += room / 2;
    char *data = realloc(b->data, room);
    if (!data) goto fail;
    b->data = data;
    b->room = room;
    return true;

fail:
    b->failed = true;
    return false;
}

void base_buffer_reserve(struct base_buffer *b, size_t size)
{
    make_room(b, size);
}

void base_buffer_add(struct base_buffer *b, const void *bytes, size_t size)
{
    if (!make_room(b, size)) return;
    if (size) memcpy(b->data + b->size, bytes, size);
    b->size += size;
    b->data[b->size] = '\0';
}

void base_buffer_add_text(struct base_buffer *b, const char *text)
{
    base_buffer_add(b, text, strlen(text));
}

void base_buffer_add_format(struct base_buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !make_room(b, (size_t)n)) {
        b->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(b->data + b->size, (size_t)n + 1, format, args);
    va_end(args);
    b->size += (size_t)n;
}

static void add_json_code(struct base_buffer *b, const char *s, size_t used, int32_t code)
{
    static const char *const names[] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};
    if (code < 0)
        base_buffer_add_text(b, "\xef\xbf\xbd");
    else if (code == '"' || code == '\\')
        base_buffer_add_format(b, "\\%c", (char)code);
    else if (code < 0x20 && (size_t)code < sizeof names / sizeof *names && names[code])
        base_buffer_add_text(b, names[code]);
    else if (code < 0x20 || code == 0x7f)
        base_buffer_add_format(b, "\\u%04x", (unsigned)code);
    else
        base_buffer_add(b, s, used);
}

void base_buffer_add_json(struct base_buffer *b, const char *text, size_t size)
{
    base_buffer_add(b, "\"", 1);
    for (size_t i = 0; i < size;) {
        int32_t code;
        size_t used = base_utf8_decode(text + i, size - i, &code);
        add_json_code(b, text + i, used, code);
        i += used;
    }
    base_buffer_add(b, "\"", 1);
}

void base_buffer_add_member(struct base_buffer *b, const char *name, const char *text, size_t size)
{
    const bool first = !b->size || strchr("{[,\n", b->data[b->size - 1]);
    base_buffer_add_format(b, "%s\"%s\":", first ? "" : ",", name);
    if (text)
        base_buffer_add_json(b, text, size);
    else
        base_buffer_add_text(b, "null");
}

void base_buffer_add_string(struct base_buffer *b, const char *name, const char *text)
{
    base_buffer_add_member(b, name, text && *text ? text : NULL, text ? strlen(text) : 0);
}

void base_buffer_clear(struct base_buffer *b)
{
    b->size = 0;
    b->failed = false;
    if (b->data) b->data[0] = '\0';
}

void base_buffer_free(struct base_buffer *b)
{
    free(b->data);
    *b = BASE_BUFFER_INIT;
}
