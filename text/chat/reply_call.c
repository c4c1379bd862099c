/* text/chat/reply_call.c: reads the calls of one piece of markup in the notations of published
 * models. See text/chat/reply_rows.h. */
#include "text/chat/reply_rows.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *s;
    size_t n;
};

static struct span span_of(const char *s, const char *end)
{
    return (struct span){s, (size_t)(end - s)};
}

static const char *end_of(struct span x)
{
    return x.s + x.n;
}

static struct span strip(struct span x)
{
    static const char space[] = " \t\r\n";
    while (x.n && memchr(space, *x.s, 4)) x = span_of(x.s + 1, end_of(x));
    while (x.n && memchr(space, x.s[x.n - 1], 4)) x.n--;
    return x;
}

static bool starts(struct span x, const char *word)
{
    const size_t n = strlen(word);
    return x.n >= n && memcmp(x.s, word, n) == 0;
}

static const char *find(struct span x, const char *word)
{
    return x.n ? memmem(x.s, x.n, word, strlen(word)) : NULL;
}

static struct span skip(struct span x, const char *word)
{
    return starts(x, word) ? span_of(x.s + strlen(word), end_of(x)) : x;
}

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           memchr("_.-:/", c, 5) || (unsigned char)c >= 0x80;
}

/* Returns the name at the start of x. */
static struct span name_at(struct span x)
{
    size_t n = 0;
    while (n < x.n && is_name_char(x.s[n])) n++;
    return (struct span){x.s, n};
}

static bool is_name(struct span x)
{
    return x.n > 0 && x.n <= 256 && name_at(x).n == x.n;
}

/* ---- Adding ---- */

/* Appends a call and releases `arguments`; false if they are not an object (NULL included). */
static bool add(json_t *calls, struct span name, json_t *arguments, struct span id)
{
    if (!is_name(name) || !text_json_is_object(arguments)) {
        json_decref(arguments);
        return false;
    }
    json_t *call = json_object();
    bool ok = call && json_object_set(call, "arguments", arguments) == 0 &&
              json_object_set_new(call, "name", json_stringn(name.s, name.n)) == 0 &&
              (!id.n || json_object_set_new(call, "id", json_stringn(id.s, id.n)) == 0) &&
              json_array_append(calls, call) == 0;
    json_decref(call);
    json_decref(arguments);
    return ok;
}

/* Sets errno to ENOMEM without memory, which try_call in reply.c tests. */
static json_t *load(struct span x, size_t flags)
{
    const int before = errno;
    json_t *value = text_json_load(x.s, x.n, JSON_ALLOW_NUL | flags, NULL);
    if (before == ENOMEM) errno = before;
    return value;
}

static json_t *parse_json(struct span x)
{
    size_t used;
    json_t *value = load(x, JSON_DECODE_ANY);
    if (value) return value;
    /* Models also write variants of JSON: single quotes, True, keys without quotes. */
    value = text_reply_read_value(x.s, x.n, &used);
    if (value && strip(span_of(x.s + used, end_of(x))).n) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

/* Reads arguments as an object: empty text is an empty object, and a string may contain the
 * object. */
static json_t *parse_arguments(struct span x)
{
    x = strip(x);
    if (!x.n) return json_object();
    json_t *value = parse_json(x), *inner;
    if (json_is_string(value)) {
        inner = parse_json((struct span){json_string_value(value), json_string_length(value)});
        json_decref(value);
        value = inner;
    }
    return value;
}

static struct span text_of(const json_t *value)
{
    return (struct span){json_is_string(value) ? json_string_value(value) : "",
                         json_string_length(value)};
}

static const json_t *first_of(const json_t *object, const char *const names[])
{
    const json_t *hit = NULL;
    for (size_t i = 0; names[i] && !hit; i++) hit = json_object_get(object, names[i]);
    return hit;
}

/* Reads {"name": ..., "arguments": {...}} under any of the usual keys, or {"NAME": {...}}. */
static bool add_object(json_t *calls, const json_t *object)
{
    static const char *const names[] = {"name", "tool_name", "function", NULL};
    static const char *const arguments[] = {"arguments", "parameters", "args", "input", NULL};
    static const char *const ids[] = {"id", "tool_call_id", "call_id", NULL};
    if (!text_json_is_object(object)) return false;
    const json_t *name = first_of(object, names), *args = first_of(object, arguments);
    const struct span id = text_of(first_of(object, ids));
    if (text_json_is_object(name)) { /* {"function": {"name": ..., "arguments": ...}} */
        args = first_of(name, arguments);
        name = json_object_get(name, "name");
    }
    if (json_is_string(name) && json_is_string(args))
        return add(calls, text_of(name), parse_arguments(text_of(args)), id);
    if (json_is_string(name))
        return add(calls, text_of(name), args ? json_deep_copy(args) : json_object(), id);
    if (json_object_size(object) != 1) return false;
    json_t *copy = json_copy((json_t *)(uintptr_t)object);
    void *it = copy ? json_object_iter(copy) : NULL;
    const bool ok =
        it && add(calls, (struct span){json_object_iter_key(it), json_object_iter_key_len(it)},
                  json_incref(json_object_iter_value(it)), id);
    json_decref(copy);
    return ok;
}

/* ---- Notations ---- */

/* Reads JSON values, with ";", "," or space between them. */
static bool read_json(struct span x, json_t *calls)
{
    while (x.n) {
        size_t used;
        json_t *value = load(x, 0);
        if (value)
            used = x.n;
        else
            value = text_reply_read_value(x.s, x.n, &used);
        bool ok =
            text_json_is_object(value) ? add_object(calls, value) : json_array_size(value) > 0;
        if (json_is_array(value))
            for (size_t i = 0; ok && i < json_array_size(value); i++)
                ok = add_object(calls, json_array_get(value, i));
        json_decref(value);
        if (!ok) return false;
        x = strip(span_of(x.s + used, end_of(x)));
        while (x.n && memchr(";,", *x.s, 2)) x = strip(span_of(x.s + 1, end_of(x)));
    }
    return json_array_size(calls) > 0;
}

/* Reads [NAME(key=value, ...), ...], with or without the brackets, and NAME.call(...). */
static bool read_python(struct span x, json_t *calls)
{
    if (starts(x, "[") && x.s[x.n - 1] == ']') x = strip((struct span){x.s + 1, x.n - 2});
    while (x.n) {
        size_t used;
        struct span name = name_at(x), rest = span_of(end_of(name), end_of(x));
        if (!starts(rest, "(")) return false;
        json_t *args = text_reply_read_keywords(rest.s + 1, rest.n - 1, ')', &used);
        if (name.n > 5 && memcmp(end_of(name) - 5, ".call", 5) == 0) name.n -= 5;
        if (!add(calls, name, args, (struct span){0})) return false;
        x = strip(span_of(rest.s + 1 + used, end_of(x)));
        while (x.n && memchr(";,", *x.s, 2)) x = strip(span_of(x.s + 1, end_of(x)));
    }
    return json_array_size(calls) > 0;
}

/* Returns the type of a parameter in the tools, or NULL. */
static const char *type_of(const json_t *tools, struct span tool, struct span parameter)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *entry = json_array_get(tools, i);
        const json_t *function = json_object_get(entry, "function");
        if (!function) function = entry;
        const struct span name = text_of(json_object_get(function, "name"));
        if (name.n != tool.n || memcmp(name.s, tool.s, tool.n) != 0) continue;
        const json_t *all = json_object_get(json_object_get(function, "parameters"), "properties");
        const json_t *hit = json_object_getn(all, parameter.s, parameter.n);
        return json_string_value(json_object_get(hit, "type"));
    }
    return NULL;
}

/* Reads an unquoted value: a string if its type in the tools is string, otherwise the value that it
 * can be parsed as. */
static json_t *plain_value(struct span value, const char *type)
{
    json_t *json = NULL;
    if (!type || strcmp(type, "string") != 0) json = load(value, JSON_DECODE_ANY);
    if (json_is_string(json)) { /* the quotes belong to the text */
        json_decref(json);
        json = NULL;
    }
    return json ? json : json_stringn(value.s, value.n);
}

/* Removes one line break at each end, which belongs to the markup. */
static struct span unwrap(struct span x)
{
    x = skip(x, "\n");
    if (x.n && x.s[x.n - 1] == '\n') x.n--;
    return x;
}

static bool set(json_t *arguments, struct span key, json_t *value)
{
    if (value && key.n) return text_reply_set(arguments, key.s, key.n, value);
    json_decref(value);
    return false;
}

/* Reads <function=NAME><parameter=KEY>VALUE</parameter>...</function>, or JSON inside. */
static bool read_function(struct span x, const json_t *tools, json_t *calls)
{
    for (x = strip(x); starts(x, "<function="); x = strip(x)) {
        const char *gt = find(x, ">"), *end = find(x, "</function>");
        if (!gt || (end && end < gt)) return false;
        const struct span name = strip(span_of(x.s + strlen("<function="), gt));
        struct span body = strip(span_of(gt + 1, end ? end : end_of(x)));
        json_t *args = starts(body, "<") || !body.n ? json_object() : parse_arguments(body);
        while (args && starts(body, "<parameter=")) {
            gt = find(body, ">");
            const char *close = find(body, "</parameter>");
            if (!gt || !close || close < gt) break;
            const struct span key = strip(span_of(body.s + strlen("<parameter="), gt));
            const struct span value = unwrap(span_of(gt + 1, close));
            if (!set(args, key, plain_value(value, type_of(tools, name, key)))) break;
            body = strip(span_of(close + strlen("</parameter>"), end_of(body)));
        }
        if (starts(body, "<")) { /* no parameters */
            json_decref(args);
            return false;
        }
        if (!add(calls, name, args, (struct span){0})) return false;
        x = end ? span_of(end + strlen("</function>"), end_of(x)) : span_of(end_of(x), end_of(x));
    }
    return !x.n && json_array_size(calls) > 0;
}

/* Returns the value of name="..." in a tag. */
static struct span quoted_name(struct span tag)
{
    const char *at = find(tag, "name=\"");
    if (!at) return (struct span){0};
    struct span value = span_of(at + strlen("name=\""), end_of(tag));
    const char *end = find(value, "\"");
    return end ? span_of(value.s, end) : (struct span){0};
}

/* Reads <invoke name="..."><parameter name="...">VALUE</parameter></invoke>, with any prefix before
 * the words. A parameter may have string="true". */
static bool read_invoke(struct span x, const json_t *tools, json_t *calls)
{
    const char *at;
    while ((at = find(x, "invoke name=\"")) != NULL) {
        x = span_of(at, end_of(x));
        const char *gt = find(x, ">"), *next = find(span_of(x.s + 1, end_of(x)), "invoke name=\"");
        if (!gt) return false;
        const struct span name = quoted_name(span_of(x.s, gt));
        struct span body = span_of(gt + 1, next && next > gt ? next : end_of(x));
        json_t *args = json_object();
        while (args && (at = find(body, "parameter name=\"")) != NULL) {
            gt = find(span_of(at, end_of(body)), ">");
            const char *close = gt ? find(span_of(gt, end_of(body)), "parameter>") : NULL;
            while (close && close > gt && *close != '<') close--;
            if (!close || close <= gt) break;
            const struct span tag = span_of(at, gt), value = unwrap(span_of(gt + 1, close));
            const struct span key = quoted_name(tag);
            const char *type = find(tag, "string=\"true\"") ? "string" : type_of(tools, name, key);
            if (!set(args, key, plain_value(value, type))) break;
            body = span_of(close + 2, end_of(body));
        }
        const bool open = at != NULL;
        if (!add(calls, name, args, (struct span){0}) || open) return false;
        x = span_of(body.s, end_of(x));
    }
    return json_array_size(calls) > 0;
}

/* Reads NAME and <arg_key>K</arg_key><arg_value>V</arg_value> pairs. */
static bool read_pairs(struct span x, const json_t *tools, json_t *calls)
{
    const struct span name = name_at(x);
    x = strip(span_of(end_of(name), end_of(x)));
    json_t *args = json_object();
    while (args && starts(x, "<arg_key>")) {
        const char *key_end = find(x, "</arg_key>"), *open = find(x, "<arg_value>"),
                   *close = find(x, "</arg_value>");
        if (!key_end || !open || !close || open < key_end || close < open) break;
        const struct span key = strip(span_of(x.s + strlen("<arg_key>"), key_end));
        const struct span value = span_of(open + strlen("<arg_value>"), close);
        if (!set(args, key, plain_value(value, type_of(tools, name, key)))) break;
        x = strip(span_of(close + strlen("</arg_value>"), end_of(x)));
    }
    return add(calls, name, args, (struct span){0}) && !x.n;
}

/* Reads one call of a section: HEAD divider BODY. If the head is a type, the body begins with the
 * name. */
static bool read_divided(struct span x, const char *divider, json_t *calls)
{
    const char *at = find(x, divider);
    if (!at) return false;
    struct span head = strip(span_of(x.s, at)), id = {0};
    struct span body = strip(span_of(at + strlen(divider), end_of(x)));
    if (!starts(body, "{") && name_at(body).n) {
        head = name_at(body);
        body = strip(span_of(end_of(head), end_of(body)));
    }
    if (starts(head, "functions.")) { /* functions.NAME:INDEX contains the name and is the id */
        id = head;
        head = skip(head, "functions.");
        const char *colon = memrchr(head.s, ':', head.n);
        if (colon) head.n = (size_t)(colon - head.s);
    }
    if (starts(body, "```")) {
        const char *line = find(body, "\n");
        body = strip(span_of(line ? line : end_of(body), end_of(body)));
        if (body.n >= 3 && memcmp(end_of(body) - 3, "```", 3) == 0) body.n -= 3;
    }
    return add(calls, head, parse_arguments(body), id);
}

/* Reads calls between `begin` and `end` marks. */
static bool read_section(struct span x, const char *begin, const char *divider, const char *end,
                         json_t *calls)
{
    for (x = strip(x); x.n; x = strip(x)) {
        if (!starts(x, begin)) return false;
        x = skip(x, begin);
        const char *stop = find(x, end);
        if (!read_divided(span_of(x.s, stop ? stop : end_of(x)), divider, calls)) return false;
        x = stop ? span_of(stop + strlen(end), end_of(x)) : span_of(end_of(x), end_of(x));
    }
    return json_array_size(calls) > 0;
}

/* Reads call:NAME{key:value, ...}, whose values need not be JSON. */
static bool read_loose(struct span x, json_t *calls)
{
    while (x.n) {
        size_t used;
        x = skip(x, "call:");
        const struct span name = name_at(x), rest = span_of(end_of(name), end_of(x));
        if (!starts(rest, "{")) return false;
        json_t *args = text_reply_read_keywords(rest.s + 1, rest.n - 1, '}', &used);
        if (!add(calls, name, args, (struct span){0})) return false;
        x = strip(span_of(rest.s + 1 + used, end_of(x)));
    }
    return json_array_size(calls) > 0;
}

/* Reads NAME[CALL_ID]ID[ARGS]{...}, in which both marks are optional, or only NAME. */
static bool read_mistral(struct span x, json_t *calls)
{
    const struct span name = name_at(x);
    struct span id = {0};
    x = span_of(end_of(name), end_of(x));
    if (starts(x, "[CALL_ID]")) {
        x = skip(x, "[CALL_ID]");
        id = name_at(x);
        x = span_of(end_of(id), end_of(x));
    }
    return add(calls, name, parse_arguments(skip(x, "[ARGS]")), id);
}

static bool read_any(struct span x, const json_t *tools, json_t *calls)
{
    const struct span name = name_at(x), rest = span_of(end_of(name), end_of(x));
    if (!x.n) return false;
    if (starts(x, "functools[")) x = span_of(x.s + strlen("functools"), end_of(x));
    if (starts(x, "[") && name_at(span_of(x.s + 1, end_of(x))).n) return read_python(x, calls);
    if (starts(x, "{") || starts(x, "[")) return read_json(x, calls);
    if (starts(x, "<function=")) return read_function(x, tools, calls);
    if (starts(x, "<｜tool▁call▁begin｜>"))
        return read_section(x, "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
                            calls);
    if (starts(x, "<|tool_call_begin|>"))
        return read_section(x, "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
                            "<|tool_call_end|>", calls);
    if (starts(x, "<")) return read_invoke(x, tools, calls);
    if (starts(x, "call:")) return read_loose(x, calls);
    if (starts(rest, "(")) return read_python(x, calls);
    if (find(x, "<arg_key>")) return read_pairs(x, tools, calls);
    return read_mistral(x, calls);
}

bool text_reply_read_calls(const char *body, size_t size, const json_t *tools, json_t *calls)
{
    json_t *found = json_array();
    const bool ok = found && read_any(strip((struct span){body, size}), tools, found) &&
                    json_array_extend(calls, found) == 0;
    json_decref(found);
    return ok;
}

bool text_reply_read_named(const char *name, size_t name_size, const char *body, size_t size,
                           json_t *calls)
{
    const struct span x = strip((struct span){body, size});
    json_t *args = !x.n || *x.s == '{' ? parse_arguments(x) : json_object();
    if (args && x.n && *x.s != '{' &&
        !set(args, (struct span){"code", 4}, json_stringn(x.s, x.n))) {
        json_decref(args);
        args = NULL;
    }
    return add(calls, (struct span){name, name_size}, args, (struct span){0});
}
