/* text/chat/reply_call.c: reads the calls of one piece of markup in the notations of published
 * models. See text/chat/reply_rows.h. */
#include "base/utf8.h"
#include "text/chat/reply_rows.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct excerpt {
    const char *s;
    size_t n;
};

static struct excerpt excerpt_of(const char *s, const char *end)
{
    return (struct excerpt){s, (size_t)(end - s)};
}

static const char *end_of(struct excerpt x)
{
    return x.s + x.n;
}

static struct excerpt strip(struct excerpt x)
{
    static const char space[] = " \t\r\n";
    while (x.n && memchr(space, *x.s, 4)) x = excerpt_of(x.s + 1, end_of(x));
    while (x.n && memchr(space, x.s[x.n - 1], 4)) x.n--;
    return x;
}

static bool starts(struct excerpt x, const char *word)
{
    const size_t n = strlen(word);
    return x.n >= n && memcmp(x.s, word, n) == 0;
}

static const char *find(struct excerpt x, const char *word)
{
    return x.n ? memmem(x.s, x.n, word, strlen(word)) : NULL;
}

static struct excerpt skip(struct excerpt x, const char *word)
{
    return starts(x, word) ? excerpt_of(x.s + strlen(word), end_of(x)) : x;
}

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           memchr("_.-:/", c, 5) || (unsigned char)c >= 0x80;
}

/* Returns the name at the start of x. */
static struct excerpt name_at(struct excerpt x)
{
    size_t n = 0;
    while (n < x.n && is_name_char(x.s[n])) n++;
    return (struct excerpt){x.s, n};
}

static bool is_name(struct excerpt x)
{
    return x.n > 0 && x.n <= 256 && name_at(x).n == x.n;
}

/* ---- Adding ---- */

/* Appends a call and releases `arguments`; false if they are not an object (NULL included). */
static bool add(json_t *calls, struct excerpt name, json_t *arguments, struct excerpt id)
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
static json_t *load(struct excerpt x, size_t flags)
{
    const int before = errno;
    json_t *value = text_json_load(x.s, x.n, JSON_ALLOW_NUL | flags, NULL);
    if (before == ENOMEM) errno = before;
    return value;
}

static json_t *parse_json(struct excerpt x)
{
    size_t used;
    json_t *value = load(x, JSON_DECODE_ANY);
    if (value) return value;
    /* Models also write variants of JSON: single quotes, True, keys without quotes. */
    value = text_reply_read_value(x.s, x.n, &used);
    if (value && strip(excerpt_of(x.s + used, end_of(x))).n) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

/* Reads arguments as an object: empty text is an empty object, and a string may contain the
 * object. */
static json_t *parse_arguments(struct excerpt x)
{
    x = strip(x);
    if (!x.n) return json_object();
    json_t *value = parse_json(x), *inner;
    if (json_is_string(value)) {
        inner = parse_json((struct excerpt){json_string_value(value), json_string_length(value)});
        json_decref(value);
        value = inner;
    }
    return value;
}

static struct excerpt text_of(const json_t *value)
{
    return (struct excerpt){json_is_string(value) ? json_string_value(value) : "",
                            json_string_length(value)};
}

static const json_t *first_of(const json_t *object, const char *const names[])
{
    const json_t *found = NULL;
    for (size_t i = 0; names[i] && !found; i++) found = json_object_get(object, names[i]);
    return found;
}

/* Reads {"name": ..., "arguments": {...}} under any of the usual keys, or {"NAME": {...}}. */
static bool add_object(json_t *calls, const json_t *object)
{
    static const char *const names[] = {"name", "tool_name", "function", NULL};
    static const char *const arguments[] = {"arguments", "parameters", "args", "input", NULL};
    static const char *const ids[] = {"id", "tool_call_id", "call_id", NULL};
    if (!text_json_is_object(object)) return false;
    const json_t *name = first_of(object, names), *args = first_of(object, arguments);
    const struct excerpt id = text_of(first_of(object, ids));
    if (text_json_is_object(name)) { /* {"function": {"name": ..., "arguments": ...}} */
        args = first_of(name, arguments);
        name = json_object_get(name, "name");
    }
    if (json_is_string(name) && json_is_string(args))
        return add(calls, text_of(name), parse_arguments(text_of(args)), id);
    if (json_is_string(name))
        return add(calls, text_of(name), args ? json_deep_copy(args) : json_object(), id);
    if (json_object_size(object) != 1) return false;
    json_auto_t *copy = json_copy((json_t *)(uintptr_t)object);
    void *it = copy ? json_object_iter(copy) : NULL;
    return it &&
           add(calls, (struct excerpt){json_object_iter_key(it), json_object_iter_key_len(it)},
               json_incref(json_object_iter_value(it)), id);
}

/* ---- Notations ---- */

/* Reads JSON values, with ";", "," or space between them. */
static bool read_json(struct excerpt x, json_t *calls)
{
    while (x.n) {
        size_t used;
        json_auto_t *value = load(x, 0);
        if (value)
            used = x.n;
        else
            value = text_reply_read_value(x.s, x.n, &used);
        bool ok =
            text_json_is_object(value) ? add_object(calls, value) : json_array_size(value) > 0;
        if (json_is_array(value))
            for (size_t i = 0; ok && i < json_array_size(value); i++)
                ok = add_object(calls, json_array_get(value, i));
        if (!ok) return false;
        x = strip(excerpt_of(x.s + used, end_of(x)));
        while (x.n && memchr(";,", *x.s, 2)) x = strip(excerpt_of(x.s + 1, end_of(x)));
    }
    return json_array_size(calls) > 0;
}

/* Reads [NAME(key=value, ...), ...], with or without the brackets, and NAME.call(...). */
static bool read_python(struct excerpt x, json_t *calls)
{
    if (starts(x, "[") && x.s[x.n - 1] == ']') x = strip((struct excerpt){x.s + 1, x.n - 2});
    while (x.n) {
        size_t used;
        struct excerpt name = name_at(x), rest = excerpt_of(end_of(name), end_of(x));
        if (!starts(rest, "(")) return false;
        json_t *args = text_reply_read_keywords(rest.s + 1, rest.n - 1, ')', &used);
        if (name.n > 5 && memcmp(end_of(name) - 5, ".call", 5) == 0) name.n -= 5;
        if (!add(calls, name, args, (struct excerpt){0})) return false;
        x = strip(excerpt_of(rest.s + 1 + used, end_of(x)));
        while (x.n && memchr(";,", *x.s, 2)) x = strip(excerpt_of(x.s + 1, end_of(x)));
    }
    return json_array_size(calls) > 0;
}

/* Returns the type of a parameter in the tools, or NULL. */
static const char *type_of(const json_t *tools, struct excerpt tool, struct excerpt parameter)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *entry = json_array_get(tools, i);
        const json_t *function = json_object_get(entry, "function");
        if (!function) function = entry;
        const struct excerpt name = text_of(json_object_get(function, "name"));
        if (name.n != tool.n || memcmp(name.s, tool.s, tool.n) != 0) continue;
        const json_t *all = json_object_get(json_object_get(function, "parameters"), "properties");
        const json_t *found = json_object_getn(all, parameter.s, parameter.n);
        return json_string_value(json_object_get(found, "type"));
    }
    return NULL;
}

/* Reads an unquoted value: a string if its type in the tools is string, otherwise the value that it
 * can be parsed as. */
static json_t *plain_value(struct excerpt value, const char *type)
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
static struct excerpt unwrap(struct excerpt x)
{
    x = skip(x, "\n");
    if (x.n && x.s[x.n - 1] == '\n') x.n--;
    return x;
}

static bool set(json_t *arguments, struct excerpt key, json_t *value)
{
    if (value && key.n) return text_reply_set(arguments, key.s, key.n, value);
    json_decref(value);
    return false;
}

/* Reads <function=NAME><parameter=KEY>VALUE</parameter>...</function>, or JSON inside. */
static bool read_function(struct excerpt x, const json_t *tools, json_t *calls)
{
    for (x = strip(x); starts(x, "<function="); x = strip(x)) {
        const char *gt = find(x, ">"), *end = find(x, "</function>");
        if (!gt || (end && end < gt)) return false;
        const struct excerpt name = strip(excerpt_of(x.s + strlen("<function="), gt));
        struct excerpt body = strip(excerpt_of(gt + 1, end ? end : end_of(x)));
        json_t *args = starts(body, "<") || !body.n ? json_object() : parse_arguments(body);
        while (args && starts(body, "<parameter=")) {
            gt = find(body, ">");
            const char *close = find(body, "</parameter>");
            if (!gt || !close || close < gt) break;
            const struct excerpt key = strip(excerpt_of(body.s + strlen("<parameter="), gt));
            const struct excerpt value = unwrap(excerpt_of(gt + 1, close));
            if (!set(args, key, plain_value(value, type_of(tools, name, key)))) break;
            body = strip(excerpt_of(close + strlen("</parameter>"), end_of(body)));
        }
        if (starts(body, "<")) { /* no parameters */
            json_decref(args);
            return false;
        }
        if (!add(calls, name, args, (struct excerpt){0})) return false;
        x = end ? excerpt_of(end + strlen("</function>"), end_of(x))
                : excerpt_of(end_of(x), end_of(x));
    }
    return !x.n && json_array_size(calls) > 0;
}

/* Returns the value of name="..." in a tag. */
static struct excerpt quoted_name(struct excerpt tag)
{
    const char *at = find(tag, "name=\"");
    if (!at) return (struct excerpt){0};
    struct excerpt value = excerpt_of(at + strlen("name=\""), end_of(tag));
    const char *end = find(value, "\"");
    return end ? excerpt_of(value.s, end) : (struct excerpt){0};
}

/* Returns the text of <![CDATA[...]]>, or x. */
static struct excerpt uncover(struct excerpt x)
{
    const char *end;
    if (!starts(x, "<![CDATA[") || (end = find(x, "]]>")) == NULL || end + 3 != end_of(x)) return x;
    return excerpt_of(x.s + strlen("<![CDATA["), end);
}

/* Words of tags: `call` before the tool's name, `parameter` before that of a parameter, and the end
 * of a parameter. */
struct tag_words {
    const char *call, *parameter, *end;
};

/* Reads <invoke name="..."><parameter name="...">VALUE</parameter></invoke>, with any prefix before
 * the words. A parameter may have string="true". */
static bool read_invoke(struct excerpt x, const struct tag_words *w, const json_t *tools,
                        json_t *calls)
{
    const char *at;
    while ((at = find(x, w->call)) != NULL) {
        x = excerpt_of(at, end_of(x));
        const char *gt = find(x, ">"), *next = find(excerpt_of(x.s + 1, end_of(x)), w->call);
        if (!gt) return false;
        const struct excerpt name = quoted_name(excerpt_of(x.s, gt));
        struct excerpt body = excerpt_of(gt + 1, next && next > gt ? next : end_of(x));
        json_t *args = json_object();
        while (args && (at = find(body, w->parameter)) != NULL) {
            gt = find(excerpt_of(at, end_of(body)), ">");
            struct excerpt rest = gt ? excerpt_of(gt + 1, end_of(body)) : (struct excerpt){0};
            const char *covered = starts(rest, "<![CDATA[") ? find(rest, "]]>") : NULL;
            if (covered) rest = excerpt_of(covered, end_of(body));
            const char *close = find(rest, w->end);
            while (close && close > gt && *close != '<') close--;
            if (!close || close <= gt) break;
            const struct excerpt tag = excerpt_of(at, gt),
                                 value = uncover(unwrap(excerpt_of(gt + 1, close)));
            const struct excerpt key = quoted_name(tag);
            const char *type = find(tag, "string=\"true\"") ? "string" : type_of(tools, name, key);
            if (!set(args, key, plain_value(value, type))) break;
            body = excerpt_of(close + 2, end_of(body));
        }
        const bool open = at != NULL;
        if (!add(calls, name, args, (struct excerpt){0}) || open) return false;
        x = excerpt_of(body.s, end_of(x));
    }
    return json_array_size(calls) > 0;
}

/* ---- MiniMax M3: tags with the parameter's name ---- */

/* Copies x without the mark that precedes each tag. */
static void strip_marks(struct excerpt x, const char *mark, struct base_buffer *out)
{
    for (const char *at; (at = find(x, mark)) != NULL; x = excerpt_of(at + strlen(mark), end_of(x)))
        base_buffer_add(out, x.s, (size_t)(at - x.s));
    base_buffer_add(out, x.s, x.n);
    base_buffer_add(out, "", 1);
}

static json_t *read_element(struct excerpt *x, const char *type, int depth, struct excerpt *name);

/* Reads the elements <KEY>VALUE</KEY> up to another text: an object, or a list of <item>. */
static json_t *read_elements(struct excerpt *x, int depth)
{
    json_t *object = json_object(), *list = json_array();
    bool ok = object && list && depth < 32;
    while (ok && starts(*x = strip(*x), "<") && !starts(*x, "</")) {
        struct excerpt name;
        json_t *value = read_element(x, NULL, depth + 1, &name);
        if (value && name.n == 4 && memcmp(name.s, "item", 4) == 0)
            ok = json_array_append_new(list, value) == 0;
        else
            ok = set(object, name, value);
    }
    const bool is_list = json_array_size(list) > 0;
    ok = ok && !(is_list && json_object_size(object));
    json_t *out = ok ? json_incref(is_list ? list : object) : NULL;
    json_decref(object);
    json_decref(list);
    return out;
}

static json_t *read_element(struct excerpt *x, const char *type, int depth, struct excerpt *name)
{
    *name = name_at(excerpt_of(x->s + 1, end_of(*x)));
    const char *gt = find(*x, ">");
    if (!name->n || gt != end_of(*name)) return NULL;
    char close[300];
    if (name->n > sizeof close - 4) return NULL;
    snprintf(close, sizeof close, "</%.*s>", (int)name->n, name->s);
    struct excerpt body = excerpt_of(gt + 1, end_of(*x));
    const char *end = find(body, close);
    if (!end) return NULL;
    struct excerpt inner = strip(body);
    if (starts(inner, "<") && !starts(inner, "</") && (!type || strcmp(type, "string") != 0)) {
        json_t *value = read_elements(&inner, depth);
        if (value && starts(inner, close)) {
            *x = excerpt_of(inner.s + strlen(close), end_of(*x));
            return value;
        }
        json_decref(value);
    }
    *x = excerpt_of(end + strlen(close), end_of(*x));
    return plain_value(excerpt_of(body.s, end), type);
}

/* Reads <invoke name="..."><KEY>VALUE</KEY>...</invoke>. */
static bool read_named_tags(struct excerpt x, const json_t *tools, json_t *calls)
{
    for (x = strip(x); starts(x, "<invoke name=\""); x = strip(skip(x, "</invoke>"))) {
        const char *gt = find(x, ">");
        if (!gt) return false;
        const struct excerpt name = quoted_name(excerpt_of(x.s, gt));
        json_t *args = json_object();
        bool ok = args != NULL;
        x = strip(excerpt_of(gt + 1, end_of(x)));
        while (ok && starts(x, "<") && !starts(x, "</")) {
            struct excerpt key = name_at(excerpt_of(x.s + 1, end_of(x)));
            json_t *value = read_element(&x, type_of(tools, name, key), 0, &key);
            ok = set(args, key, value);
            x = strip(x);
        }
        if (!ok) json_decref(args);
        if (!ok || !add(calls, name, args, (struct excerpt){0})) return false;
    }
    return !x.n && json_array_size(calls) > 0;
}

/* ---- Kimi K3: <|open|>TAG ATTRIBUTES<|sep|>...<|close|>TAG<|sep|> ---- */

static const char xopen[] = "<|open|>", xclose[] = "<|close|>", xsep[] = "<|sep|>";

/* Returns the value of ATTRIBUTE="..." with its escapes, a new text; NULL without it or memory. */
static json_t *attribute(struct excerpt tag, const char *before)
{
    const char *at = find(tag, before);
    struct excerpt rest = at ? excerpt_of(at + strlen(before), end_of(tag)) : (struct excerpt){0};
    const char *end = find(rest, "\"");
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    if (!end) return NULL;
    for (rest = excerpt_of(rest.s, end); rest.n;) {
        const bool quote = starts(rest, "&quot;"), ampersand = starts(rest, "&amp;");
        base_buffer_add(&text, quote ? "\"" : ampersand ? "&" : rest.s, 1);
        rest = excerpt_of(rest.s + (quote ? 6 : ampersand ? 5 : 1), end);
    }
    return text.failed ? NULL : json_stringn(text.size ? text.data : "", text.size);
}

/* Reads the tag at the start of *x and its content up to its closing tag. */
static bool read_tag(struct excerpt *x, const char *word, struct excerpt *tag,
                     struct excerpt *content)
{
    char close[64];
    *x = strip(*x);
    const char *sep = find(*x, xsep);
    if (!starts(*x, xopen) || !sep) return false;
    *tag = excerpt_of(x->s + strlen(xopen), sep);
    if (!starts(*tag, word)) return false;
    *content = excerpt_of(sep + strlen(xsep), end_of(*x));
    snprintf(close, sizeof close, "%s%s%s", xclose, word, xsep);
    const char *end = find(*content, close);
    *x = end ? excerpt_of(end + strlen(close), end_of(*x)) : excerpt_of(end_of(*x), end_of(*x));
    if (end) *content = excerpt_of(content->s, end);
    return true;
}

static json_t *read_arguments(struct excerpt x)
{
    struct excerpt tag, content;
    if (read_tag(&x, "json", &tag, &content)) return parse_arguments(content);
    json_t *args = json_object();
    while (args && read_tag(&x, "argument", &tag, &content)) {
        json_auto_t *key = attribute(tag, "key=\"");
        const char *type = find(tag, "type=\"string\"") ? "string" : NULL;
        const bool ok = key && set(args, text_of(key), plain_value(content, type));
        if (!ok) break;
        x = strip(x);
    }
    if (strip(x).n) {
        json_decref(args);
        return NULL;
    }
    return args;
}

static bool read_open_close(struct excerpt x, json_t *calls)
{
    struct excerpt tag, content;
    while (read_tag(&x, "call", &tag, &content)) {
        json_auto_t *name = attribute(tag, "tool=\"");
        const bool ok =
            name && add(calls, text_of(name), read_arguments(content), (struct excerpt){0});
        if (!ok) return false;
    }
    return !strip(x).n && json_array_size(calls) > 0;
}

/* Reads NAME and <arg_key>K</arg_key><arg_value>V</arg_value> pairs. */
static bool read_pairs(struct excerpt x, const json_t *tools, json_t *calls)
{
    const struct excerpt name = name_at(x);
    x = strip(skip(strip(excerpt_of(end_of(name), end_of(x))), "<tool_sep>"));
    json_t *args = json_object();
    while (args && starts(x, "<arg_key>")) {
        const char *key_end = find(x, "</arg_key>"), *open = find(x, "<arg_value>"),
                   *close = find(x, "</arg_value>");
        if (!key_end || !open || !close || open < key_end || close < open) break;
        const struct excerpt key = strip(excerpt_of(x.s + strlen("<arg_key>"), key_end));
        const struct excerpt value = excerpt_of(open + strlen("<arg_value>"), close);
        if (!set(args, key, plain_value(value, type_of(tools, name, key)))) break;
        x = strip(excerpt_of(close + strlen("</arg_value>"), end_of(x)));
    }
    return add(calls, name, args, (struct excerpt){0}) && !x.n;
}

/* Reads one call of a section: HEAD divider BODY. If the head is a type, the body begins with the
 * name. */
static bool read_divided(struct excerpt x, const char *divider, json_t *calls)
{
    const char *at = find(x, divider);
    if (!at) return false;
    struct excerpt head = strip(excerpt_of(x.s, at)), id = {0};
    struct excerpt body = strip(excerpt_of(at + strlen(divider), end_of(x)));
    if (!starts(body, "{") && name_at(body).n) {
        head = name_at(body);
        body = strip(excerpt_of(end_of(head), end_of(body)));
    }
    if (starts(head, "functions.")) { /* functions.NAME:INDEX contains the name and is the id */
        id = head;
        head = skip(head, "functions.");
        const char *colon = base_find_last(head.s, ':', head.n);
        if (colon) head.n = (size_t)(colon - head.s);
    }
    if (starts(body, "```")) {
        const char *line = find(body, "\n");
        body = strip(excerpt_of(line ? line : end_of(body), end_of(body)));
        if (body.n >= 3 && memcmp(end_of(body) - 3, "```", 3) == 0) body.n -= 3;
    }
    return add(calls, head, parse_arguments(body), id);
}

/* Reads calls between `begin` and `end` marks. */
static bool read_section(struct excerpt x, const char *begin, const char *divider, const char *end,
                         json_t *calls)
{
    for (x = strip(x); x.n; x = strip(x)) {
        if (!starts(x, begin)) return false;
        x = skip(x, begin);
        const char *stop = find(x, end);
        if (!read_divided(excerpt_of(x.s, stop ? stop : end_of(x)), divider, calls)) return false;
        x = stop ? excerpt_of(stop + strlen(end), end_of(x)) : excerpt_of(end_of(x), end_of(x));
    }
    return json_array_size(calls) > 0;
}

/* Reads call:NAME{key:value, ...}, whose values need not be JSON. */
static bool read_loose(struct excerpt x, json_t *calls)
{
    while (x.n) {
        size_t used;
        x = skip(x, "call:");
        const struct excerpt name = name_at(x), rest = excerpt_of(end_of(name), end_of(x));
        if (!starts(rest, "{")) return false;
        json_t *args = text_reply_read_keywords(rest.s + 1, rest.n - 1, '}', &used);
        if (!add(calls, name, args, (struct excerpt){0})) return false;
        x = strip(excerpt_of(rest.s + 1 + used, end_of(x)));
    }
    return json_array_size(calls) > 0;
}

/* Reads NAME[CALL_ID]ID[ARGS]{...}, in which both marks are optional, or only NAME. */
static bool read_mistral(struct excerpt x, json_t *calls)
{
    const struct excerpt name = name_at(x);
    struct excerpt id = {0};
    x = excerpt_of(end_of(name), end_of(x));
    if (starts(x, "[CALL_ID]")) {
        x = skip(x, "[CALL_ID]");
        id = name_at(x);
        x = excerpt_of(end_of(id), end_of(x));
    }
    return add(calls, name, parse_arguments(skip(x, "[ARGS]")), id);
}

/* Reads <tool_call>NAME and pairs</tool_call>... */
static bool read_pair_calls(struct excerpt x, const json_t *tools, json_t *calls)
{
    static const char begin[] = "<tool_call>", end[] = "</tool_call>";
    for (x = strip(x); starts(x, begin); x = strip(x)) {
        x = skip(x, begin);
        const char *stop = find(x, end);
        if (!read_pairs(strip(excerpt_of(x.s, stop ? stop : end_of(x))), tools, calls))
            return false;
        x = stop ? excerpt_of(stop + strlen(end), end_of(x)) : excerpt_of(end_of(x), end_of(x));
    }
    return !x.n && json_array_size(calls) > 0;
}

/* Reads calls whose tags contain a mark, without it. */
static bool read_stripped(struct excerpt x, const char *mark,
                          bool read(struct excerpt, const json_t *, json_t *), const json_t *tools,
                          json_t *calls)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    strip_marks(x, mark, &text);
    if (text.failed) errno = ENOMEM;
    return !text.failed && read(strip((struct excerpt){text.data, text.size - 1}), tools, calls);
}

static bool read_any(struct excerpt x, const json_t *tools, json_t *calls)
{
    static const struct tag_words invoke = {"invoke name=\"", "parameter name=\"", "parameter>"},
                                  function = {"function name=\"", "param name=\"", "param>"};
    const struct excerpt name = name_at(x), rest = excerpt_of(end_of(name), end_of(x));
    if (!x.n) return false;
    if (starts(x, "functools[")) x = excerpt_of(x.s + strlen("functools"), end_of(x));
    if (starts(x, "[") && name_at(excerpt_of(x.s + 1, end_of(x))).n) return read_python(x, calls);
    if (starts(x, "{") || starts(x, "[")) return read_json(x, calls);
    if (starts(x, "<function=")) return read_function(x, tools, calls);
    if (starts(x, "<｜tool▁call▁begin｜>"))
        return read_section(x, "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
                            calls);
    if (starts(x, "<|tool_call_begin|>"))
        return read_section(x, "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
                            "<|tool_call_end|>", calls);
    if (starts(x, "]<]minimax[>["))
        return read_stripped(x, "]<]minimax[>[", read_named_tags, tools, calls);
    if (starts(x, "<tool_call:opensource>"))
        return read_stripped(x, ":opensource", read_pair_calls, tools, calls);
    if (starts(x, "<tool_call>")) return read_pair_calls(x, tools, calls);
    if (starts(x, xopen)) return read_open_close(x, calls);
    if (starts(x, "<function name=\"")) return read_invoke(x, &function, tools, calls);
    if (starts(x, "<|plugin|>")) return read_json(strip(skip(x, "<|plugin|>")), calls);
    if (starts(x, "<")) return read_invoke(x, &invoke, tools, calls);
    if (starts(x, "call:")) return read_loose(x, calls);
    if (starts(rest, "(")) return read_python(x, calls);
    if (find(x, "<arg_key>")) return read_pairs(x, tools, calls);
    return read_mistral(x, calls);
}

bool text_reply_read_calls(const char *body, size_t size, const json_t *tools, json_t *calls)
{
    json_auto_t *found = json_array();
    return found && read_any(strip((struct excerpt){body, size}), tools, found) &&
           json_array_extend(calls, found) == 0;
}

bool text_reply_read_named(const char *name, size_t name_size, const char *body, size_t size,
                           json_t *calls)
{
    const struct excerpt x = strip((struct excerpt){body, size});
    json_t *args = !x.n || *x.s == '{' ? parse_arguments(x) : json_object();
    if (args && x.n && *x.s != '{' &&
        !set(args, (struct excerpt){"code", 4}, json_stringn(x.s, x.n))) {
        json_decref(args);
        args = NULL;
    }
    return add(calls, (struct excerpt){name, name_size}, args, (struct excerpt){0});
}
