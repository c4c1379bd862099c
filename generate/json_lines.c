/* generate/json_lines.c: see generate/json_lines.h. */
#include "generate/json_lines.h"
#include <string.h>

enum { MAX_INDENT = 1000 }; /* spaces at the beginning of a line */

static void break_line(const struct generate_json_lines *l, struct base_buffer *out)
{
    const uint64_t width = (uint64_t)l->depth * l->indent;
    base_buffer_add(out, "\n", 1);
    for (uint64_t i = 0; i < width && i < MAX_INDENT; i++) base_buffer_add(out, " ", 1);
}

static void add_quoted(struct generate_json_lines *l, char c, struct base_buffer *out)
{
    base_buffer_add(out, &c, 1);
    if (!l->escaped && c == '"') l->quoted = false;
    l->escaped = !l->escaped && c == '\\';
}

static void add_plain(struct generate_json_lines *l, char c, struct base_buffer *out)
{
    const bool closes = c == '}' || c == ']', opened = l->opened;
    if (c && strchr(" \t\r\n", c)) return;
    l->opened = false;
    if (closes && l->depth) l->depth--;
    if (opened != closes) break_line(l, out); /* not within {} and [] */
    base_buffer_add(out, &c, 1);
    if (c == ':') base_buffer_add(out, " ", 1);
    if (c == ',') break_line(l, out);
    l->quoted = c == '"';
    l->opened = c == '{' || c == '[';
    l->depth += l->opened;
}

void generate_json_lines_add(struct generate_json_lines *l, const char *bytes, size_t size,
                             struct base_buffer *out)
{
    for (size_t i = 0; i < size; i++) (l->quoted ? add_quoted : add_plain)(l, bytes[i], out);
}
