/* sample/constrain/json.c: a strict JSON reader (RFC 8259; no duplicate names). See
 * sample/constrain/json.h. */
#include "sample/constrain/json.h"
#include "base/interrupt.h"
#include "base/utf8.h"
#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 4000 }; /* of one object; each name is compared with all others */

struct json_reader {
    struct constrain_json *j;
    const char *text;
    size_t size, at;
    uint32_t line, column, depth;
    struct base_error *err;
};

static int peek(const struct json_reader *r)
{
    return r->at < r->size ? (unsigned char)r->text[r->at] : -1;
}

static void skip(struct json_reader *r)
{
    unsigned char c = (unsigned char)r->text[r->at++];
    if (c == '\n')
        r->line++, r->column = 1;
    else if ((c & 0xc0) != 0x80)
        r->column++;
}

static void skip_space(struct json_reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r') skip(r);
}

static bool fail(struct json_reader *r, const char *what)
{
    return base_fail(r->err, BASE_USAGE, "line %u, column %u: %s", r->line, r->column, what);
}

static bool read_hex4(struct json_reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = base_hex_digit(peek(r));
        if (digit < 0) return fail(r, "expected a hexadecimal digit");
        *out = *out << 4 | (uint32_t)digit;
        skip(r);
    }
    return true;
}

static bool read_escape(struct json_reader *r)
{
    static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    char bytes[4];
    uint32_t code, low;
    skip(r);
    int c = peek(r);
    for (size_t i = 0; i + 1 < sizeof names; i += 2)
        if (c == names[i]) {
            base_buffer_add(&r->j->text, &names[i + 1], 1);
            skip(r);
            return true;
        }
    if (c != 'u') return fail(r, "unknown escape");
    skip(r);
    if (!read_hex4(r, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
        if (peek(r) != '\\') return fail(r, "half of a surrogate pair");
        skip(r);
        if (peek(r) != 'u') return fail(r, "half of a surrogate pair");
        skip(r);
        if (!read_hex4(r, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return fail(r, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return fail(r, "half of a surrogate pair");
    }
    base_buffer_add(&r->j->text, bytes, base_utf8_encode((int32_t)code, bytes));
    return true;
}

static bool read_string(struct json_reader *r, uint32_t *at, uint32_t *size)
{
    *at = (uint32_t)r->j->text.size;
    skip(r);
    while (peek(r) != '"') {
        int32_t code;
        if (peek(r) < 0) return fail(r, "this string is not closed");
        if (peek(r) < 0x20) return fail(r, "a control character in a string");
        if (peek(r) == '\\') {
            if (!read_escape(r)) return false;
            continue;
        }
        size_t n = base_utf8_decode(r->text + r->at, r->size - r->at, &code);
        if (code < 0) return fail(r, "invalid UTF-8");
        base_buffer_add(&r->j->text, r->text + r->at, n);
        while (n--) skip(r);
    }
    skip(r);
    *size = (uint32_t)r->j->text.size - *at;
    return !r->j->text.failed || base_fail(r->err, BASE_NO_MEMORY, "no memory for the JSON");
}

static bool read_digits(struct json_reader *r)
{
    if (peek(r) < '0' || peek(r) > '9') return fail(r, "expected a digit");
    while (peek(r) >= '0' && peek(r) <= '9') skip(r);
    return true;
}

static bool read_number(struct json_reader *r, struct constrain_json_node *n)
{
    size_t from = r->at;
    if (peek(r) == '-') skip(r);
    if (peek(r) == '0')
        skip(r);
    else if (!read_digits(r))
        return false;
    if (peek(r) == '.') {
        skip(r);
        if (!read_digits(r)) return false;
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        skip(r);
        if (peek(r) == '+' || peek(r) == '-') skip(r);
        if (!read_digits(r)) return false;
    }
    n->text = (uint32_t)r->j->text.size;
    n->text_size = (uint32_t)(r->at - from);
    base_buffer_add(&r->j->text, r->text + from, n->text_size);
    return true;
}

static bool read_word(struct json_reader *r, const char *word)
{
    size_t n = strlen(word);
    if (r->size - r->at < n || memcmp(r->text + r->at, word, n) != 0)
        return fail(r, "expected a JSON value");
    while (n--) skip(r);
    return true;
}

static uint32_t read_value(struct json_reader *r);

static bool read_children(struct json_reader *r, uint32_t parent, bool object)
{
    struct constrain_json *j = r->j;
    char close = object ? '}' : ']';
    uint32_t last = 0, name = 0, name_size = 0;
    skip(r);
    skip_space(r);
    if (peek(r) == close) {
        skip(r);
        return true;
    }
    for (;; skip(r)) { /* each step skips a comma */
        skip_space(r);
        if (object) {
            if (peek(r) != '"') return fail(r, "expected a name in quotes");
            if (!read_string(r, &name, &name_size)) return false;
            if (constrain_json_member(j, parent, j->text.data + name, name_size))
                return fail(r, "this name occurs twice in one object");
            skip_space(r);
            if (peek(r) != ':') return fail(r, "expected ':'");
            skip(r);
        }
        uint32_t child = read_value(r);
        if (!child) return false;
        j->node[child].name = name;
        j->node[child].name_size = name_size;
        if (last)
            j->node[last].sibling = child;
        else
            j->node[parent].child = child;
        last = child;
        if (++j->node[parent].count > MAX_NAMES && object)
            return fail(r, "more than 4000 names in one object");
        skip_space(r);
        if (peek(r) == close) break;
        if (peek(r) != ',') return fail(r, object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    skip(r);
    return true;
}

static uint32_t read_value(struct json_reader *r)
{
    struct constrain_json *j = r->j;
    skip_space(r);
    struct constrain_json_node n = {.line = r->line, .column = r->column};
    if (!constrain_grow(&j->node, &j->node_room, j->n_node, sizeof *j->node, r->err)) return 0;
    if (!base_goes_on(r->err)) return 0;
    uint32_t at = j->n_node++;
    int c = peek(r);
    bool ok, nested = c == '{' || c == '[';
    if (nested) {
        if (r->depth >= CONSTRAIN_MAX_NESTING)
            return fail(r, "values are nested more than 200 deep");
        n.kind = c == '{' ? CONSTRAIN_JSON_OBJECT : CONSTRAIN_JSON_ARRAY;
        j->node[at] = n;
        r->depth++;
        ok = read_children(r, at, c == '{');
        r->depth--;
        return ok ? at : 0;
    }
    if (c == '"') {
        n.kind = CONSTRAIN_JSON_STRING;
        ok = read_string(r, &n.text, &n.text_size);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        n.kind = CONSTRAIN_JSON_NUMBER;
        ok = read_number(r, &n);
    } else {
        n.kind = c == 't'   ? CONSTRAIN_JSON_TRUE
                 : c == 'f' ? CONSTRAIN_JSON_FALSE
                            : CONSTRAIN_JSON_NULL;
        ok = read_word(r, c == 't' ? "true" : c == 'f' ? "false" : "null");
    }
    j->node[at] = n;
    return ok ? at : 0;
}

bool constrain_json_read(struct constrain_json *j, const char *text, size_t size,
                         struct base_error *err)
{
    struct json_reader r = {j, text, size, 0, 1, 1, 0, err};
    j->n_node = 1;
    base_buffer_add(&j->text, "", 0); /* allocates, so that data is not NULL */
    if (j->text.failed) return base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    if (!read_value(&r)) return false;
    skip_space(&r);
    if (peek(&r) >= 0) return fail(&r, "something follows the value");
    return !j->text.failed || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
}

void constrain_json_free(struct constrain_json *j)
{
    free(j->node);
    base_buffer_free(&j->text);
    *j = (struct constrain_json){0};
}

uint32_t constrain_json_member(const struct constrain_json *j, uint32_t node, const char *name,
                               size_t size)
{
    if (j->node[node].kind != CONSTRAIN_JSON_OBJECT) return 0;
    for (uint32_t c = j->node[node].child; c; c = j->node[c].sibling)
        if (j->node[c].name_size == size &&
            (size == 0 || memcmp(j->text.data + j->node[c].name, name, size) == 0))
            return c;
    return 0;
}

bool constrain_json_is(const struct constrain_json *j, uint32_t node, const char *text)
{
    const struct constrain_json_node *n = &j->node[node];
    return n->kind == CONSTRAIN_JSON_STRING && n->text_size == strlen(text) &&
           memcmp(j->text.data + n->text, text, n->text_size) == 0;
}

bool constrain_json_is_named(const struct constrain_json *j, uint32_t node, const char *name)
{
    const struct constrain_json_node *n = &j->node[node];
    return n->name_size == strlen(name) && memcmp(j->text.data + n->name, name, n->name_size) == 0;
}
