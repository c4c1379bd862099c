/* text/json/json_number.c: see text/json/json_number.h. */
#include "text/json/json_number.h"
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char number_key[] = "\xff"; /* no UTF-8: no text that is read has this name */

/* A double is written with the fewest digits that are read back as the same number. */
enum { REAL_SIZE = 40 };
static void print_real(double f, char out[REAL_SIZE])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, REAL_SIZE, "%.*g", digits, f);
        if (strtod(out, NULL) == f) break;
    }
    if (!strpbrk(out, ".e")) strcat(out, ".0");
}

const char *text_json_number(const json_t *value)
{
    if (!json_is_object(value) || json_object_size(value) != 1) return NULL;
    return json_string_value(json_object_get(value, number_key));
}

static size_t digits_at(const char *text, size_t size, size_t at)
{
    size_t n = 0;
    while (at + n < size && text[at + n] >= '0' && text[at + n] <= '9') n++;
    return n;
}

size_t text_json_number_size(const char *text, size_t size)
{
    size_t at = size > 0 && text[0] == '-', n = digits_at(text, size, at);
    if (n == 0 || (n > 1 && text[at] == '0')) return 0;
    at += n;
    if (at < size && text[at] == '.') {
        if ((n = digits_at(text, size, at + 1)) == 0) return 0;
        at += 1 + n;
    }
    if (at < size && (text[at] | 0x20) == 'e') {
        const size_t sign = at + 1 < size && (text[at + 1] == '+' || text[at + 1] == '-');
        if ((n = digits_at(text, size, at + 1 + sign)) == 0) return 0;
        at += 1 + sign + n;
    }
    return at;
}

/* How a number is held. */
enum form { WHOLE, REAL, KEPT };

static enum form form_of(const char *text, size_t size, json_int_t *whole, double *real)
{
    char own[REAL_SIZE], again[REAL_SIZE];
    if (size >= sizeof own) return KEPT;
    memcpy(own, text, size);
    own[size] = '\0';
    if (!strpbrk(own, ".eE")) {
        errno = 0;
        *whole = strtoll(own, NULL, 10);
        return errno || strcmp(own, "-0") == 0 ? KEPT : WHOLE;
    }
    *real = strtod(own, NULL);
    if (!isfinite(*real)) return KEPT;
    print_real(*real, again);
    return strcmp(own, again) == 0 ? REAL : KEPT;
}

bool text_json_number_is_plain(const char *text, size_t size)
{
    json_int_t whole;
    double real;
    return form_of(text, size, &whole, &real) != KEPT;
}

json_t *text_json_number_new(const char *text, size_t size)
{
    json_int_t whole = 0;
    double real = 0;
    const enum form form = form_of(text, size, &whole, &real);
    if (form != KEPT) return form == WHOLE ? json_integer(whole) : json_real(real);
    json_t *number = json_object();
    if (number &&
        json_object_set_new_nocheck(number, number_key, json_stringn_nocheck(text, size)) == 0)
        return number;
    json_decref(number);
    return NULL;
}

/* ---- Writing ---- */

static void write_member(struct base_buffer *out, void *member, bool sorted, const char *separator)
{
    base_buffer_add_text(out, separator);
    base_buffer_add_json(out, json_object_iter_key(member), json_object_iter_key_len(member));
    base_buffer_add_text(out, ":");
    text_json_write(out, json_object_iter_value(member), sorted);
}

static int compare_members(const void *a, const void *b)
{
    void *const x = *(void *const *)a, *const y = *(void *const *)b;
    const size_t n = json_object_iter_key_len(x), m = json_object_iter_key_len(y);
    const int order = memcmp(json_object_iter_key(x), json_object_iter_key(y), n < m ? n : m);
    return order ? order : n < m ? -1 : n > m;
}

static void write_object(struct base_buffer *out, const json_t *value, bool sorted)
{
    /* The iteration functions need a pointer that is not const, but change nothing. */
    json_t *object = (json_t *)(uintptr_t)value;
    void **member = calloc(json_object_size(object) + 1, sizeof *member);
    size_t n = 0;
    if (!member) {
        out->failed = true;
        return;
    }
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
        member[n++] = it;
    if (sorted) qsort(member, n, sizeof *member, compare_members);
    base_buffer_add_text(out, "{");
    for (size_t i = 0; i < n; i++) write_member(out, member[i], sorted, i ? "," : "");
    base_buffer_add_text(out, "}");
    free(member);
}

void text_json_write(struct base_buffer *out, const json_t *value, bool sorted)
{
    const char *number = text_json_number(value);
    char real[REAL_SIZE];
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        if (number)
            base_buffer_add_text(out, number);
        else
            write_object(out, value, sorted);
        break;
    case JSON_ARRAY:
        base_buffer_add_text(out, "[");
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i) base_buffer_add_text(out, ",");
            text_json_write(out, json_array_get(value, i), sorted);
        }
        base_buffer_add_text(out, "]");
        break;
    case JSON_STRING:
        base_buffer_add_json(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        base_buffer_add_format(out, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        print_real(json_real_value(value), real);
        base_buffer_add_text(out, real);
        break;
    default:
        base_buffer_add_text(out, json_is_null(value)   ? "null"
                                  : json_is_true(value) ? "true"
                                                        : "false");
    }
}
