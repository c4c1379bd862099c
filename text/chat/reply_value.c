/* text/chat/reply_value.c: reads values in the notations that models use for arguments (JSON,
 * Python literals, mixtures with unquoted keys). See text/chat/reply_rows.h. */
#include "base/utf8.h"
#include "text/chat/reply_rows.h"
#include "text/json/json_number.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

struct value_reader {
    const char *s;
    size_t n, at;
    int depth;
};

static json_t *read_any(struct value_reader *x);

static void skip_space(struct value_reader *x)
{
    while (x->at < x->n && memchr(" \t\r\n", x->s[x->at], 4)) x->at++;
}

static bool take(struct value_reader *x, const char *word)
{
    const size_t n = strlen(word);
    if (x->n - x->at < n || memcmp(x->s + x->at, word, n) != 0) return false;
    x->at += n;
    return true;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '.' || c == '-';
}

static size_t word_size(const struct value_reader *x)
{
    size_t n = 0;
    while (x->at + n < x->n && is_word(x->s[x->at + n])) n++;
    return n;
}

/* Returns the value of four hexadecimal digits at p, or -1. */
static int32_t read_unit(const struct value_reader *x, size_t p)
{
    int32_t code = 0;
    if (x->n - p < 4) return -1;
    for (size_t i = 0; i < 4; i++) {
        const int digit = base_hex_digit(x->s[p + i]);
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Decodes the escape after a backslash at x->at; an unknown one keeps its backslash. */
static bool read_escape(struct value_reader *x, struct base_buffer *out)
{
    static const char names[] = "nrtbf/\\'\"", values[] = "\n\r\t\b\f/\\'\"";
    if (x->at == x->n) return false;
    const char c = x->s[x->at++];
    const char *found = memchr(names, c, sizeof names - 1);
    if (found) {
        base_buffer_add(out, &values[found - names], 1);
        return true;
    }
    if (c != 'u') {
        base_buffer_add(out, "\\", 1);
        base_buffer_add(out, &c, 1);
        return true;
    }
    char bytes[4];
    int32_t code = read_unit(x, x->at);
    if (code < 0) return false;
    x->at += 4;
    if (code >= 0xd800 && code < 0xdc00 && take(x, "\\u")) {
        const int32_t low = read_unit(x, x->at);
        if (low < 0xdc00 || low > 0xdfff) return false;
        x->at += 4;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000) return false;
    base_buffer_add(out, bytes, base_utf8_encode(code, bytes));
    return true;
}

static json_t *read_string(struct value_reader *x, const char *quote, bool escapes)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    json_t *value = NULL;
    bool ok = true;
    while (ok && x->at < x->n) {
        if (take(x, quote)) {
            if (!out.failed) value = json_stringn(out.data ? out.data : "", out.size);
            break;
        }
        if (escapes && x->s[x->at] == '\\') {
            x->at++;
            ok = read_escape(x, &out);
        } else {
            base_buffer_add(&out, &x->s[x->at++], 1);
        }
    }
    return value;
}

static json_t *read_number(struct value_reader *x)
{
    char text[64], *end;
    const size_t start = x->at;
    size_t n = text_json_number_size(x->s + start, x->n - start);
    if (n && (start + n == x->n || !is_word(x->s[start + n]))) {
        x->at += n;
        return text_json_number_new(x->s + start, n);
    }
    n = 0; /* a form that JSON does not have: +1, .5, 007 */
    while (start + n < x->n && n + 1 < sizeof text &&
           memchr("0123456789+-.eE", x->s[start + n], 15)) {
        text[n] = x->s[start + n];
        n++;
    }
    text[n] = '\0';
    if (!n || n + 1 == sizeof text) return NULL;
    const bool whole = !strpbrk(text, ".eE");
    const double f = strtod(text, &end);
    if (end != text + n || !isfinite(f)) return NULL;
    x->at += n;
    if (whole && fabs(f) < 9e18) return json_integer(strtoll(text, NULL, 10));
    return json_real(f);
}

static json_t *read_list(struct value_reader *x, char close)
{
    json_t *list = json_array();
    for (bool first = true; list; first = false) {
        skip_space(x);
        if (x->at < x->n && x->s[x->at] == close) {
            x->at++;
            return list;
        }
        if (!first && !take(x, ",")) break;
        skip_space(x);
        if (!first && x->at < x->n && x->s[x->at] == close) continue; /* a trailing comma */
        json_t *item = read_any(x);
        if (!item || json_array_append_new(list, item)) break;
    }
    json_decref(list);
    return NULL;
}

static json_t *read_key(struct value_reader *x)
{
    const size_t n = word_size(x);
    if (take(x, "<|\"|>")) return read_string(x, "<|\"|>", false);
    if (take(x, "\"")) return read_string(x, "\"", true);
    if (take(x, "'")) return read_string(x, "'", true);
    if (!n) return NULL;
    x->at += n;
    return json_stringn(x->s + x->at - n, n);
}

bool text_reply_set(json_t *object, const char *key, size_t size, json_t *value)
{
    if (memchr(key, '\0', size)) {
        json_decref(value);
        return false;
    }
    return json_object_setn_new(object, key, size, value) == 0;
}

/* Reads entries "key : value" or "key = value" up to `close`. */
static json_t *read_entries(struct value_reader *x, char close)
{
    json_t *object = json_object(), *key = NULL;
    for (bool first = true; object; first = false) {
        skip_space(x);
        if (x->at < x->n && x->s[x->at] == close) {
            x->at++;
            return object;
        }
        if (!first && !take(x, ",")) break;
        skip_space(x);
        if (!first && x->at < x->n && x->s[x->at] == close) continue;
        key = read_key(x);
        skip_space(x);
        if (!key || (!take(x, ":") && !take(x, "="))) break;
        json_t *item = read_any(x);
        if (!item || !text_reply_set(object, json_string_value(key), json_string_length(key), item))
            break;
        json_decref(key);
        key = NULL;
    }
    json_decref(key);
    json_decref(object);
    return NULL;
}

static json_t *read_plain(struct value_reader *x)
{
    const size_t n = word_size(x);
    if (n == 4 && (take(x, "true") || take(x, "True"))) return json_true();
    if (n == 5 && (take(x, "false") || take(x, "False"))) return json_false();
    if (n == 4 && (take(x, "null") || take(x, "None"))) return json_null();
    return read_number(x);
}

static json_t *read_any(struct value_reader *x)
{
    json_t *value;
    skip_space(x);
    if (x->at == x->n || ++x->depth > MAX_DEPTH) return NULL;
    if (take(x, "<|\"|>"))
        value = read_string(x, "<|\"|>", false);
    else if (take(x, "\""))
        value = read_string(x, "\"", true);
    else if (take(x, "'"))
        value = read_string(x, "'", true);
    else if (take(x, "["))
        value = read_list(x, ']');
    else if (take(x, "("))
        value = read_list(x, ')');
    else if (take(x, "{"))
        value = read_entries(x, '}');
    else
        value = read_plain(x);
    x->depth--;
    return value;
}

json_t *text_reply_read_value(const char *at, size_t size, size_t *used)
{
    struct value_reader x = {.s = at, .n = size};
    json_t *value = read_any(&x);
    *used = x.at;
    return value;
}

json_t *text_reply_read_keywords(const char *at, size_t size, char close, size_t *used)
{
    struct value_reader x = {.s = at, .n = size};
    json_t *object = read_entries(&x, close);
    *used = x.at;
    return object;
}
