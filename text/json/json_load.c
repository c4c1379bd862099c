/* text/json/json_load.c: jansson with a memory reserve. See text/json/json_load.h. */
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 16,
    STEP = 256, /* bytes per read: the most that the scanner parses after a failure */
    /* The reserve, per byte of the text and in addition. A growing string becomes at most twice as
     * long as the input, a list or a hash table takes 8 bytes per byte of input, and the values in
     * STEP bytes take less than the rest. */
    SPARE_PER_BYTE = 12,
    SPARE = 1 << 16
};

/* Thread-local and global: jansson's allocator functions have no argument that could point to
 * it. */
static _Thread_local struct {
    char *spare; /* NULL: no text is being read */
    size_t used, room;
    bool failed;
} text_json_memory;

struct input {
    const char *text;
    size_t left;
};

static void *allocate(size_t size)
{
    void *p = malloc(size);
    if (p || !text_json_memory.spare) return p;
    text_json_memory.failed = true;
    if (size > text_json_memory.room - text_json_memory.used) return NULL;
    p = text_json_memory.spare + text_json_memory.used;
    const size_t left = text_json_memory.room - text_json_memory.used;
    const size_t whole = (size + ALIGN - 1) / ALIGN * ALIGN;
    text_json_memory.used += whole < left ? whole : left;
    return p;
}

static void release(void *p)
{
    const uintptr_t at = (uintptr_t)p, spare = (uintptr_t)text_json_memory.spare;
    if (!spare || at < spare || at >= spare + text_json_memory.room) free(p);
}

static size_t read_some(void *buffer, size_t size, void *user)
{
    struct input *in = user;
    size_t n = size < STEP ? size : STEP;
    if (text_json_memory.failed) return 0;
    if (n > in->left) n = in->left;
    memcpy(buffer, in->text, n);
    in->text += n;
    in->left -= n;
    return n;
}

static json_t *load(const char *text, size_t size, size_t flags, json_error_t *error)
{
    struct input in = {text, size};
    const size_t room =
        size < (SIZE_MAX - SPARE) / SPARE_PER_BYTE ? SPARE + SPARE_PER_BYTE * size : SIZE_MAX;
    char *spare = malloc(room);
    if (!spare) {
        errno = ENOMEM;
        return NULL;
    }
    text_json_memory.spare = spare;
    text_json_memory.room = room;
    text_json_memory.used = 0;
    text_json_memory.failed = false;
    json_set_alloc_funcs(allocate, release); /* malloc and free while no text is being read */
    json_t *value = json_load_callback(read_some, &in, flags, error);
    const bool failed = text_json_memory.failed;
    if (failed) json_decref(value);
    text_json_memory.spare = NULL;
    free(spare);
    errno = failed ? ENOMEM : 0;
    return failed ? NULL : value;
}

/* ---- Numbers as they are written ---- */

struct numbers { /* the numbers of a text, in order */
    const char *text;
    size_t size, at, n; /* the present number is text[at..at + n) */
};

/* Finds the next number outside strings; false at the end. */
static bool next_number(struct numbers *x)
{
    bool quoted = false;
    for (x->at += x->n; x->at < x->size; x->at++) {
        const char c = x->text[x->at];
        if (c == '"') quoted = !quoted;
        if (quoted && c == '\\') x->at++;
        if (quoted || (c != '-' && (c < '0' || c > '9'))) continue;
        x->n = text_json_number_size(x->text + x->at, x->size - x->at);
        if (x->n) return true;
    }
    return false;
}

/* Replaces the numbers of a value by those of the text, in the same order, where jansson would
 * write them in another way. Returns the value, or NULL without memory. */
static json_t *keep_numbers(json_t *value, struct numbers *x)
{
    json_t *kept = value, *child;
    bool ok = true;
    if (json_is_number(value)) {
        if (!next_number(x) || text_json_number_is_plain(x->text + x->at, x->n)) return value;
        kept = text_json_number_new(x->text + x->at, x->n);
        ok = kept != NULL;
    }
    for (size_t i = 0; ok && i < json_array_size(value); i++) {
        child = keep_numbers(json_incref(json_array_get(value, i)), x);
        ok = child && json_array_set_new(value, i, child) == 0;
    }
    for (void *it = json_object_iter(value); ok && it; it = json_object_iter_next(value, it)) {
        child = keep_numbers(json_incref(json_object_iter_value(it)), x);
        ok = child && json_object_iter_set_new(value, it, child) == 0;
    }
    if (kept != value || !ok) json_decref(value);
    if (!ok) errno = ENOMEM;
    return ok ? kept : NULL;
}

/* Replaces each number that jansson would change or refuse by zeros of its length, so that places
 * in messages are right; "-0" remains. */
static void blank_numbers(const char *text, size_t size, char *out)
{
    struct numbers x = {text, size, 0, 0};
    while (next_number(&x)) {
        if (x.n < 3 || text_json_number_is_plain(text + x.at, x.n)) continue;
        memset(out + x.at, '0', x.n);
        out[x.at + 1] = '.';
    }
}

json_t *text_json_load(const char *text, size_t size, size_t flags, json_error_t *error)
{
    struct numbers x = {text, size, 0, 0};
    json_error_t own;
    bool odd = false;
    while (!odd && next_number(&x)) odd = !text_json_number_is_plain(text + x.at, x.n);
    if (!odd) return load(text, size, flags, error);
    char *blank = malloc(size);
    if (!blank) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(blank, text, size);
    blank_numbers(text, size, blank);
    if (!error) error = &own;
    /* Without names that occur twice, the values have the order of the text. */
    json_t *value = load(blank, size, flags | JSON_REJECT_DUPLICATES, error);
    const bool again = !value && errno != ENOMEM && !(flags & JSON_REJECT_DUPLICATES) &&
                       json_error_code(error) == json_error_duplicate_key;
    free(blank);
    if (again) return load(text, size, flags, error);
    x = (struct numbers){text, size, 0, 0};
    return value ? keep_numbers(value, &x) : NULL;
}

/* ---- Copies ---- */

static json_t *whole_or_none(json_t *copy, const json_t *value)
{
    if (copy && json_equal(copy, value)) return copy;
    json_decref(copy);
    errno = ENOMEM;
    return NULL;
}

json_t *text_json_copy(const json_t *value)
{
    return whole_or_none(json_copy((json_t *)(uintptr_t)value), value);
}

json_t *text_json_copy_deep(const json_t *value)
{
    return whole_or_none(json_deep_copy(value), value);
}
