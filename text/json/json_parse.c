/* text/json/json_parse.c: JSON that users write. See text/json/json_parse.h. */
#include "text/json/json_parse.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <string.h>

json_t *text_json_parse(const char *text, size_t size, const char *what, struct base_error *err)
{
    json_error_t error;
    json_t *json = text_json_load(
        text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (json) return json;
    if (errno == ENOMEM)
        base_fail(err, BASE_NO_MEMORY, "not enough memory for the JSON");
    else if (error.line > 0)
        base_fail_at(err, BASE_USAGE, what, -1, "line %d, column %d: %s", error.line, error.column,
                     error.text);
    else
        base_fail_at(err, BASE_USAGE, what, -1, "%s", error.text);
    return NULL;
}

const json_t *text_json_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

/* Returns the index after the string whose opening quote is text[at]. */
static size_t string_end(const char *text, size_t at)
{
    for (at++; text[at] != '"'; at++) at += text[at] == '\\';
    return at + 1;
}

void text_json_add_own(struct base_buffer *out, const json_t *object, const char *text, size_t size,
                       const char *name)
{
    const size_t n = strlen(name);
    size_t depth = 0, from = 0, to = 0;
    bool is_name = false;
    for (size_t at = 0, next; at < size && !to; at = next) {
        const char c = text[at];
        next = c == '"' ? string_end(text, at) : at + 1;
        if (c == ':' && is_name) from = next;
        if (from && depth == 1 && (c == ',' || c == '}')) to = at;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        if (c != ' ' && c != '\t')
            is_name =
                c == '"' && depth == 1 && next - at == n + 2 && memcmp(text + at + 1, name, n) == 0;
    }
    while (to && strchr(" \t\r\n", text[from])) from++;
    while (to && strchr(" \t\r\n", text[to - 1])) to--;
    if (to)
        base_buffer_add(out, text + from, to - from);
    else /* its name has escapes */
        text_json_write(out, json_object_get(object, name), false);
}
