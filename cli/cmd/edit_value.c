/* cli/cmd/edit_value.c: values of --set. See cli/cmd/edit_value.h.
 *
 * int, float, bool and str are the types of --override-kv. A number of such a type gets the kind of
 * the key's old value. For a new key it gets the first of u32, i32 and i64 that can represent it,
 * or f32, which other programs expect. u8 to f64 are exact kinds. TYPE[] is an array, whose value
 * is JSON. Without TYPE a value has the kind of the old one. */
#include "cli/cmd/edit_value.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 127 };

enum class { INTEGER, REAL, TRUTH, TEXT };

static const struct {
    const char *name;
    enum class class;
    enum gguf_kind kind; /* GGUF_KIND_COUNT: the first kind that fits */
} types[] = {
    {"int", INTEGER, GGUF_KIND_COUNT}, {"float", REAL, GGUF_KIND_COUNT}, {"bool", TRUTH, GGUF_BOOL},
    {"str", TEXT, GGUF_STRING},        {"u8", INTEGER, GGUF_U8},         {"i8", INTEGER, GGUF_I8},
    {"u16", INTEGER, GGUF_U16},        {"i16", INTEGER, GGUF_I16},       {"u32", INTEGER, GGUF_U32},
    {"i32", INTEGER, GGUF_I32},        {"u64", INTEGER, GGUF_U64},       {"i64", INTEGER, GGUF_I64},
    {"f32", REAL, GGUF_F32},           {"f64", REAL, GGUF_F64},
};
enum { TYPES = sizeof types / sizeof *types };

static enum class class_of(enum gguf_kind kind) {
    return gguf_kind_is_integer(kind)             ? INTEGER
           : kind == GGUF_F32 || kind == GGUF_F64 ? REAL
           : kind == GGUF_BOOL                    ? TRUTH
                                                  : TEXT;
}

/* ---- Integers ---- */

static const struct integer_kind {
    enum gguf_kind kind;
    int64_t low;
    uint64_t high;
} integer_kinds[] = {
    {GGUF_U8, 0, UINT8_MAX},          {GGUF_I8, INT8_MIN, INT8_MAX},
    {GGUF_U16, 0, UINT16_MAX},        {GGUF_I16, INT16_MIN, INT16_MAX},
    {GGUF_U32, 0, UINT32_MAX},        {GGUF_I32, INT32_MIN, INT32_MAX},
    {GGUF_I64, INT64_MIN, INT64_MAX}, {GGUF_U64, 0, UINT64_MAX},
};

enum {
    INTEGER_KINDS = sizeof integer_kinds / sizeof *integer_kinds,
    FIRST_USUAL = 4 /* the first kind for a new key */
};

struct integer {
    bool negative;
    uint64_t bits; /* two's complement */
};

static bool fits(struct integer x, enum gguf_kind kind)
{
    for (size_t i = 0; i < INTEGER_KINDS; i++)
        if (integer_kinds[i].kind == kind)
            return x.negative ? (int64_t)x.bits >= integer_kinds[i].low
                              : x.bits <= integer_kinds[i].high;
    return false;
}

static bool parse_integer(const char *text, struct integer *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    out->negative = *text == '-' && strspn(digits, "0") != strlen(digits);
    out->bits = out->negative ? (uint64_t)strtoll(text, NULL, 10) : strtoull(digits, NULL, 10);
    return errno == 0;
}

/* Appends the low bytes: the file is little-endian. */
static void add_integer(struct base_buffer *b, struct integer x, enum gguf_kind kind)
{
    const uint64_t bits = x.bits;
    base_buffer_add(b, &bits, gguf_kind_size(kind));
}

static void add_real(struct base_buffer *b, double x, enum gguf_kind kind)
{
    uint64_t wide;
    uint32_t narrow;
    const float single = (float)x;
    memcpy(&wide, &x, sizeof wide);
    memcpy(&narrow, &single, sizeof narrow);
    if (kind == GGUF_F64)
        add_integer(b, (struct integer){.bits = wide}, GGUF_U64);
    else
        add_integer(b, (struct integer){.bits = narrow}, GGUF_U32);
}

static bool is_real(double x, enum gguf_kind kind)
{
    return isfinite(x) && (kind == GGUF_F64 || fabs(x) <= FLT_MAX);
}

/* ---- A value ---- */

static bool fail(struct base_error *err, const char *text, const char *what)
{
    return base_fail_at(err, BASE_USAGE, "--set", -1, "'%.100s' is %s", text, what);
}

static bool parse_scalar(struct cli_edit_value *v, enum class class, const char *text,
                         struct base_error *err)
{
    struct integer x;
    char *end;
    double real;
    switch (class) {
    case INTEGER:
        if (!parse_integer(text, &x)) return fail(err, text, "not a whole number of 64 bits");
        for (size_t i = FIRST_USUAL; v->kv.kind == GGUF_KIND_COUNT && i < INTEGER_KINDS; i++)
            if (fits(x, integer_kinds[i].kind)) v->kv.kind = integer_kinds[i].kind;
        if (!fits(x, v->kv.kind)) break;
        add_integer(&v->bytes, x, v->kv.kind);
        return true;
    case REAL:
        if (v->kv.kind == GGUF_KIND_COUNT) v->kv.kind = GGUF_F32;
        real = strtod(text, &end);
        if (*text == '\0' || strspn(text, "+-.0123456789eE") != strlen(text) || *end)
            return fail(err, text, "not a number");
        if (!is_real(real, v->kv.kind)) break;
        add_real(&v->bytes, real, v->kv.kind);
        return true;
    case TRUTH:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return fail(err, text, "neither true nor false");
        base_buffer_add(&v->bytes, strcmp(text, "true") == 0 ? "\1" : "\0", 1);
        return true;
    case TEXT:
        base_buffer_add(&v->bytes, text, strlen(text));
        return true;
    }
    return base_fail_at(err, BASE_USAGE, "--set", -1, "'%.100s' does not fit %s", text,
                        gguf_kind_name(v->kv.kind));
}

/* Reads an integer of up to 64 bits. */
static bool read_integer(const json_t *item, struct integer *out)
{
    const json_int_t x = json_integer_value(item);
    *out = (struct integer){x < 0, (uint64_t)x};
    return json_is_integer(item) ||
           (text_json_number(item) && parse_integer(text_json_number(item), out));
}

/* Returns whether all integers fit a kind. */
static bool all_fit(const json_t *array, enum gguf_kind kind)
{
    struct integer x;
    for (size_t i = 0; i < json_array_size(array); i++)
        if (read_integer(json_array_get(array, i), &x) && !fits(x, kind)) return false;
    return true;
}

static bool add_item(struct base_buffer *b, const json_t *item, enum class class,
                     enum gguf_kind kind)
{
    const char *kept = text_json_number(item);
    struct integer x;
    if (class == INTEGER && read_integer(item, &x)) {
        if (!fits(x, kind)) return false;
        add_integer(b, x, kind);
    } else if (class == REAL && (json_is_number(item) || kept)) {
        const double real = kept ? strtod(kept, NULL) : json_number_value(item);
        if (!is_real(real, kind)) return false;
        add_real(b, real, kind);
    } else if (class == TRUTH && json_is_boolean(item)) {
        base_buffer_add(b, json_is_true(item) ? "\1" : "\0", 1);
    } else if (class == TEXT && json_is_string(item)) {
        const size_t size = json_string_length(item);
        add_integer(b, (struct integer){.bits = size}, GGUF_U64);
        base_buffer_add(b, json_string_value(item), size);
    } else {
        return false;
    }
    return true;
}

static bool parse_array(struct cli_edit_value *v, enum class class, const char *text,
                        struct base_error *err)
{
    json_auto_t *array = text_json_parse(text, strlen(text), "--set", err);
    if (!array) return false;
    bool ok = json_is_array(array) || fail(err, text, "not an array of JSON");
    if (v->kv.item == GGUF_KIND_COUNT) /* the kind that other programs use for arrays */
        v->kv.item = class == REAL ? GGUF_F32 : all_fit(array, GGUF_I32) ? GGUF_I32 : GGUF_I64;
    v->kv.kind = GGUF_ARRAY;
    v->kv.count = json_array_size(array);
    for (size_t i = 0; ok && i < v->kv.count; i++)
        if (!add_item(&v->bytes, json_array_get(array, i), class, v->kv.item))
            ok = base_fail_at(err, BASE_USAGE, "--set", -1, "item %zu of '%.60s' is no %s", i + 1,
                              text, gguf_kind_name(v->kv.item));
    return ok;
}

/* ---- Parsing ---- */

size_t cli_edit_key_size(const char *text)
{
    const size_t n = strcspn(text, "=");
    return n > MAX_KEY || text[n] == '\0' ? 0 : n;
}

/* Checks that a key keeps its class of values, because programs cannot read a file with another
 * one. */
static bool check_class(const struct gguf_kv *old, enum class class, bool is_array,
                        struct base_error *err)
{
    const bool was_array = old->kind == GGUF_ARRAY;
    if (was_array == is_array && class_of(was_array ? old->item : old->kind) == class) return true;
    return base_fail_at(err, BASE_USAGE, "--set", -1,
                        "%.*s is %s%s in the file: another type needs --delete of it too",
                        (int)(old->key.size < MAX_KEY ? old->key.size : MAX_KEY), old->key.data,
                        was_array ? "an array of " : "",
                        gguf_kind_name(was_array ? old->item : old->kind));
}

/* Returns the number of the type in TYPE:VALUE or TYPE[]:VALUE; the number of types if there is
 * none. */
static size_t find_type(const char *text, bool *is_array)
{
    size_t size = strcspn(text, ":"), i = 0;
    *is_array = size > 2 && memcmp(text + size - 2, "[]", 2) == 0;
    if (*is_array) size -= 2;
    while (i < TYPES && (text[strcspn(text, ":")] == '\0' || strlen(types[i].name) != size ||
                         memcmp(text, types[i].name, size) != 0))
        i++;
    return i;
}

bool cli_edit_value_parse(struct cli_edit_value *out, const char *text, const struct gguf_kv *old,
                          struct base_error *err)
{
    const size_t key_size = cli_edit_key_size(text);
    *out = (struct cli_edit_value){.bytes = BASE_BUFFER_INIT};
    if (key_size == 0) return fail(err, text, "not KEY=TYPE:VALUE");
    const char *value = text + key_size + 1;
    bool is_array;
    const size_t i = find_type(value, &is_array);
    if (i == TYPES && !old)
        return base_fail_at(err, BASE_USAGE, "--set", -1,
                            "'%.100s': the file has no such key: write its type, as %.*s=str:%.40s "
                            "(int, float, bool, str, u8 to u64, i8 to i64, f32 or f64, or one of "
                            "these with [] after it)",
                            text, (int)(key_size < 60 ? key_size : 60), text, value);
    if (i == TYPES && old->item == GGUF_ARRAY) return fail(err, text, "an array of arrays there");
    if (i == TYPES) is_array = old->kind == GGUF_ARRAY; /* KEY=VALUE: the type that it has */
    if (i < TYPES) value = strchr(value, ':') + 1;
    const enum class class =
        i < TYPES ? types[i].class : class_of(is_array ? old->item : old->kind);
    if (old && !check_class(old, class, is_array, err)) return false;
    enum gguf_kind kind = i < TYPES ? types[i].kind : GGUF_KIND_COUNT;
    if (kind == GGUF_KIND_COUNT && old) kind = is_array ? old->item : old->kind;
    out->kv = (struct gguf_kv){
        .key = {text, key_size}, .kind = kind, .item = kind, .count = 1, .offset = UINT64_MAX};
    if (!(is_array ? parse_array : parse_scalar)(out, class, value, err)) return false;
    if (!is_array) out->kv.item = out->kv.kind;
    out->kv.data = out->bytes.data ? out->bytes.data : "";
    out->kv.size = out->bytes.size;
    return !out->bytes.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory for a value");
}

void cli_edit_value_free(struct cli_edit_value *v)
{
    base_buffer_free(&v->bytes);
}
