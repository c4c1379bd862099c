/* text/jinja/jinja_value.c: the pool, limits, sequences, dicts, truth, equality and order of
 * values. See text/jinja/jinja_value.h. */
#include "base/interrupt.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/jinja/jinja_ast.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

enum { CHUNK = 64 << 10, ALIGN = 16 };

/* A block of pool memory. Chunks grow with the pool, so that the search for an address visits
 * few. */
struct jinja_chunk {
    struct jinja_chunk *older;
    size_t size, used;
    char *mark; /* [size] or NULL */
    _Alignas(ALIGN) char bytes[];
};

static struct jinja_chunk *new_chunk(struct jinja_pool *pool, size_t bytes)
{
    size_t room = pool->taken > CHUNK ? pool->taken : CHUNK;
    if (room < bytes) room = bytes;
    struct jinja_chunk *chunk = malloc(sizeof *chunk + room);
    char *mark = pool->marked ? calloc(room, 1) : NULL;
    if (!chunk || (pool->marked && !mark)) {
        free(chunk);
        free(mark);
        return NULL;
    }
    *chunk = (struct jinja_chunk){.older = pool->chunk, .size = room, .mark = mark};
    return pool->chunk = chunk;
}

void *jinja_alloc(struct jinja_pool *pool, size_t size, struct base_error *err)
{
    uint64_t bytes, taken;
    struct jinja_chunk *chunk = pool->chunk;
    if (!base_align_up(size ? size : 1, ALIGN, &bytes) || !base_add(pool->taken, bytes, &taken) ||
        taken > pool->limit) {
        pool->exhausted = true;
        return base_null(base_fail(err, BASE_USAGE,
                                   "the template needs more than %llu bytes of memory",
                                   (unsigned long long)pool->limit));
    }
    if (!chunk || chunk->size - chunk->used < bytes) {
        chunk = new_chunk(pool, bytes);
        if (!chunk)
            return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for a template's values"));
    }
    char *p = chunk->bytes + chunk->used;
    chunk->used += bytes;
    pool->taken = taken;
    memset(p, 0, bytes);
    return p;
}

void *jinja_grow(struct jinja_pool *pool, void *p, size_t old_size, size_t size,
                 struct base_error *err)
{
    struct jinja_chunk *chunk = pool->chunk;
    uint64_t old_bytes = 0, bytes = 0, taken;
    if (p && base_align_up(old_size ? old_size : 1, ALIGN, &old_bytes) &&
        base_align_up(size, ALIGN, &bytes) && bytes >= old_bytes &&
        (char *)p + old_bytes == chunk->bytes + chunk->used &&
        chunk->size - chunk->used >= bytes - old_bytes &&
        base_add(pool->taken, bytes - old_bytes, &taken) && taken <= pool->limit) {
        memset((char *)p + old_bytes, 0, bytes - old_bytes);
        chunk->used += bytes - old_bytes;
        pool->taken = taken;
        return p;
    }
    void *more = jinja_alloc(pool, size, err);
    if (more && p) memcpy(more, p, old_size);
    return more;
}

bool jinja_list_grow(struct jinja_pool *pool, void *list, size_t *room, size_t item_size,
                     struct base_error *err)
{
    void *items;
    const size_t more = *room ? *room * 2 : 4;
    memcpy(&items, list, sizeof items);
    items = jinja_grow(pool, items, *room * item_size, more * item_size, err);
    if (!items) return false;
    memcpy(list, &items, sizeof items);
    *room = more;
    return true;
}

void jinja_pool_free(struct jinja_pool *pool)
{
    while (pool->chunk) {
        struct jinja_chunk *older = pool->chunk->older;
        free(pool->chunk->mark);
        free(pool->chunk);
        pool->chunk = older;
    }
}

static const struct jinja_chunk *find_chunk(const struct jinja_pool *pool, const char *p)
{
    const struct jinja_chunk *c = pool->chunk;
    const uintptr_t at = (uintptr_t)p;
    while (c && (at < (uintptr_t)c->bytes || at >= (uintptr_t)c->bytes + c->used)) c = c->older;
    return c;
}

char *jinja_pool_marks(const struct jinja_pool *pool, const char *p)
{
    const struct jinja_chunk *c = pool->marked ? find_chunk(pool, p) : NULL;
    return c ? c->mark + (p - c->bytes) : NULL;
}

bool jinja_pool_holds(const struct jinja_pool *pool, const char *p)
{
    return find_chunk(pool, p) != NULL;
}

/* ---- Limits and errors ---- */

bool jinja_fail(struct jinja_run *r, const char *format, ...)
{
    char text[340];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return base_fail(r->err, BASE_USAGE, "line %d: %s", r->line, text);
}

bool jinja_step(struct jinja_run *r, uint64_t count)
{
    if (!base_goes_on(r->err)) return false;
    if (r->limit.max_steps - r->steps >= count) {
        r->steps += count;
        return true;
    }
    r->pool.exhausted = true;
    return jinja_fail(r, "the template needs more than %llu steps",
                      (unsigned long long)r->limit.max_steps);
}

bool jinja_enter(struct jinja_run *r)
{
    if (r->depth < r->limit.max_depth) {
        r->depth++;
        return true;
    }
    return jinja_fail(r, "the template is nested deeper than %u levels", r->limit.max_depth);
}

void jinja_leave(struct jinja_run *r)
{
    r->depth--;
}

bool jinja_fail_undefined(struct jinja_run *r, const struct jinja_value *v)
{
    const int n = (int)(v->s.n > 200 ? 200 : v->s.n);
    const struct jinja_value of = {.kind = v->of};
    switch (v->why) {
    case JINJA_ATTRIBUTE:
        return jinja_fail(r, "'%s' has no attribute '%.*s'", jinja_type(&of), n, v->s.s);
    case JINJA_UNSAFE:
        return jinja_fail(r, "'%.*s' of '%s' is not allowed: it would change the object", n, v->s.s,
                          jinja_type(&of));
    case JINJA_PARAMETER:
        return jinja_fail(r, "parameter '%.*s' was not provided", n, v->s.s);
    case JINJA_EMPTY:
        return jinja_fail(r, "%.*s", n, v->s.s);
    default:
        return jinja_fail(r, "'%.*s' is undefined", n, v->s.s);
    }
}

const char *jinja_type(const struct jinja_value *v)
{
    static const char *const names[] = {
        [JINJA_MISSING] = "missing", [JINJA_UNDEFINED] = "Undefined",
        [JINJA_NONE] = "None",       [JINJA_BOOL] = "bool",
        [JINJA_INT] = "int",         [JINJA_FLOAT] = "float",
        [JINJA_STR] = "str",         [JINJA_LIST] = "list",
        [JINJA_TUPLE] = "tuple",     [JINJA_DICT] = "dict",
        [JINJA_VIEW] = "dict view",  [JINJA_ITER] = "generator",
        [JINJA_RANGE] = "range",     [JINJA_NAMESPACE] = "Namespace",
        [JINJA_MACRO] = "Macro",     [JINJA_FUNC] = "function",
        [JINJA_METHOD] = "method",   [JINJA_LOOP] = "LoopContext"};
    return names[v->kind];
}

/* ---- Strings under construction ---- */

size_t jinja_count(struct jinja_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += ((unsigned char)s.s[i] & 0xc0) != 0x80;
    return n;
}

size_t jinja_bytes(struct jinja_str s, size_t count)
{
    size_t i = 0;
    while (i < s.n) {
        if (((unsigned char)s.s[i] & 0xc0) != 0x80 && count-- == 0) break;
        i++;
    }
    return i;
}

static bool reserve(struct jinja_run *r, struct jinja_text *text, size_t more)
{
    if (text->room - text->n >= more) return true;
    uint64_t need;
    if (!base_add(text->n, more, &need) || need > r->limit.max_memory) {
        r->pool.exhausted = true;
        return jinja_fail(r, "the template needs more than %llu bytes of memory",
                          (unsigned long long)r->limit.max_memory);
    }
    size_t room = text->room ? text->room * 2 : 32;
    if (room < need) room = need;
    char *s = jinja_grow(&r->pool, text->s, text->room, room, r->err);
    if (!s) return false;
    if (r->pool.marked && text->s && s != text->s)
        memcpy(jinja_pool_marks(&r->pool, s), jinja_pool_marks(&r->pool, text->s), text->n);
    text->s = s;
    text->room = room;
    return true;
}

/* Copies the marks of s[n] to the marks at `to`; all are 1 if s belongs to the parsed template. */
static void copy_marks(const struct jinja_run *r, char *to, const char *s, size_t n)
{
    const char *from = jinja_pool_marks(&r->pool, s);
    if (from)
        memcpy(to, from, n);
    else if (jinja_pool_holds(&r->t->pool, s))
        memset(to, 1, n);
}

bool jinja_add(struct jinja_run *r, struct jinja_text *text, const char *s, size_t n)
{
    if (!n) return true;
    if (!reserve(r, text, n)) return false;
    memcpy(text->s + text->n, s, n);
    if (r->pool.marked) copy_marks(r, jinja_pool_marks(&r->pool, text->s) + text->n, s, n);
    text->n += n;
    return true;
}

void jinja_mark_like(struct jinja_run *r, struct jinja_text *text, size_t from, const char *source)
{
    char own = 0;
    if (!r->pool.marked || text->n == from) return;
    copy_marks(r, &own, source, 1);
    memset(jinja_pool_marks(&r->pool, text->s) + from, own, text->n - from);
}

bool jinja_mark_own(struct jinja_run *r, struct jinja_value *string)
{
    struct jinja_text text = {0};
    if (!jinja_add(r, &text, string->s.s, string->s.n)) return false;
    *string = jinja_text_value(&text);
    if (r->pool.marked && text.n) memset(jinja_pool_marks(&r->pool, text.s), 1, text.n);
    return true;
}

bool jinja_add_char(struct jinja_run *r, struct jinja_text *text, char c, size_t count)
{
    if (!reserve(r, text, count)) return false;
    if (count) memset(text->s + text->n, c, count);
    text->n += count;
    return true;
}

bool jinja_add_code(struct jinja_run *r, struct jinja_text *text, int32_t code)
{
    char bytes[4];
    return jinja_add(r, text, bytes, base_utf8_encode(code, bytes));
}

bool jinja_add_word(struct jinja_run *r, struct jinja_text *text, const char *word)
{
    return jinja_add(r, text, word, strlen(word));
}

struct jinja_value jinja_text_value(const struct jinja_text *text)
{
    return jinja_string(text->s ? text->s : "", text->n);
}

/* ---- Sequences ---- */

struct jinja_seq *jinja_seq(struct jinja_run *r, size_t room)
{
    struct jinja_seq *seq = jinja_alloc(&r->pool, sizeof *seq, r->err);
    uint64_t bytes;
    if (!seq) return NULL;
    if (!base_mul(room, sizeof *seq->item, &bytes)) bytes = UINT64_MAX / 2;
    seq->room = room;
    seq->item = jinja_alloc(&r->pool, bytes, r->err);
    return seq->item ? seq : NULL;
}

bool jinja_push(struct jinja_run *r, struct jinja_seq *seq, struct jinja_value v)
{
    if (!JINJA_ROOM(&r->pool, seq->item, seq->n, seq->room, r->err)) return false;
    seq->item[seq->n++] = v;
    return true;
}

bool jinja_new(struct jinja_run *r, enum jinja_kind kind, struct jinja_value *out)
{
    *out = (struct jinja_value){.kind = (uint8_t)kind};
    if (kind == JINJA_DICT || kind == JINJA_NAMESPACE) return (out->dict = jinja_dict(r)) != NULL;
    return (out->seq = jinja_seq(r, 0)) != NULL;
}

bool jinja_generator(struct jinja_run *r, struct jinja_seq *seq, const char *type,
                     struct jinja_value *out)
{
    struct jinja_iter *iter = jinja_alloc(&r->pool, sizeof *iter, r->err);
    if (!iter) return false;
    iter->seq = seq;
    *out = (struct jinja_value){.kind = JINJA_ITER, .s = {type, strlen(type)}, .iter = iter};
    return true;
}

static bool code_points(struct jinja_run *r, struct jinja_str s, struct jinja_seq *seq)
{
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        if (!jinja_push(r, seq, jinja_string(s.s + at, used))) return false;
        at += used;
    }
    return true;
}

bool jinja_items(struct jinja_run *r, const struct jinja_value *v, struct jinja_seq **out)
{
    size_t n;
    switch (v->kind) {
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
    case JINJA_VIEW:
        *out = v->seq;
        return jinja_step(r, v->seq->n);
    case JINJA_UNDEFINED:
    case JINJA_STR:
        n = v->kind == JINJA_STR ? v->s.n : 0;
        if (!jinja_step(r, n)) return false;
        *out = jinja_seq(r, 0);
        return *out && (!n || code_points(r, v->s, *out));
    case JINJA_DICT:
    case JINJA_ITER:
        *out = jinja_seq(r, 0);
        if (!*out) return false;
        if (v->kind == JINJA_DICT) {
            (*out)->item = v->dict->key;
            (*out)->n = (*out)->room = v->dict->n;
        } else {
            (*out)->item = v->iter->seq->item + v->iter->at;
            (*out)->n = (*out)->room = v->iter->seq->n - v->iter->at;
            v->iter->at = v->iter->seq->n;
        }
        return jinja_step(r, (*out)->n);
    default:
        return jinja_fail(r, "'%s' object is not iterable", jinja_type(v));
    }
}

bool jinja_has_length(const struct jinja_value *v)
{
    return v->kind == JINJA_STR || v->kind == JINJA_LIST || v->kind == JINJA_TUPLE ||
           v->kind == JINJA_RANGE || v->kind == JINJA_VIEW || v->kind == JINJA_DICT ||
           v->kind == JINJA_UNDEFINED;
}

bool jinja_length(struct jinja_run *r, const struct jinja_value *v, size_t *out)
{
    *out = 0;
    if (!jinja_has_length(v))
        return jinja_fail(r, "object of type '%s' has no length", jinja_type(v));
    if (v->kind == JINJA_UNDEFINED) return true;
    if (v->kind == JINJA_STR) {
        *out = jinja_count(v->s);
        return jinja_step(r, v->s.n / JINJA_MOVED);
    }
    *out = v->kind == JINJA_DICT ? v->dict->n : v->seq->n;
    return true;
}

/* ---- Dicts ---- */

enum { MAX_KEY_ITEMS = 16 };

/* Computes a hash that is equal for equal keys: 1, 1.0 and true are one key. false for values
 * without a hash. */
static bool hash_of(const struct jinja_value *v, uint64_t *out)
{
    uint64_t h = 1469598103934665603u;
    double number;
    if (jinja_as_number(v, &number)) {
        uint64_t bits;
        if (number == 0) number = 0; /* minus zero becomes zero */
        memcpy(&bits, &number, sizeof bits);
        bits = (bits ^ bits >> 32) * 0x9e3779b97f4a7c15u; /* small integers differ in high bits */
        *out = bits ^ bits >> 32;
        return true;
    }
    switch (v->kind) {
    case JINJA_NONE:
    case JINJA_UNDEFINED:
        *out = v->kind;
        return true;
    case JINJA_STR:
        for (size_t i = 0; i < v->s.n; i++) h = (h ^ (unsigned char)v->s.s[i]) * 1099511628211u;
        break;
    case JINJA_TUPLE: /* small and not nested, so that the work on a key is bounded */
        if (v->seq->n > MAX_KEY_ITEMS) return false;
        for (size_t i = 0; i < v->seq->n; i++) {
            uint64_t item;
            if (v->seq->item[i].kind == JINJA_TUPLE || !hash_of(&v->seq->item[i], &item))
                return false;
            h = (h ^ item) * 1099511628211u;
        }
        break;
    default:
        return false;
    }
    *out = h ^ h >> 29;
    return true;
}

bool jinja_is_key(const struct jinja_value *v)
{
    uint64_t hash;
    return hash_of(v, &hash);
}

struct jinja_dict *jinja_dict(struct jinja_run *r)
{
    return jinja_alloc(&r->pool, sizeof(struct jinja_dict), r->err);
}

/* Compares an integer and a float, exactly even if the integer has more bits than a double. */
static int order_mixed(int64_t i, double f)
{
    if (f >= 9223372036854775808.0) return -1;
    if (f < -9223372036854775808.0) return 1;
    const int64_t whole = (int64_t)f;
    if (i != whole) return i < whole ? -1 : 1;
    const double rest = f - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

/* Compares two numbers: *order is < 0, 0 or > 0. false if one is not a number, or NaN. */
static bool order_numbers(const struct jinja_value *a, const struct jinja_value *b, int *order)
{
    int64_t i, j;
    double x, y;
    if (!jinja_as_number(a, &x) || !jinja_as_number(b, &y) || isnan(x) || isnan(y)) return false;
    const bool whole_a = jinja_as_int(a, &i), whole_b = jinja_as_int(b, &j);
    *order = whole_a && whole_b ? (i > j) - (i < j)
             : whole_a          ? order_mixed(i, y)
             : whole_b          ? -order_mixed(j, x)
                                : (x > y) - (x < y);
    return true;
}

static bool same_key(const struct jinja_value *a, const struct jinja_value *b)
{
    double x;
    int order;
    if (jinja_as_number(a, &x)) return order_numbers(a, b, &order) && order == 0;
    if (a->kind != b->kind) return false;
    if (a->kind == JINJA_STR) return a->s.n == b->s.n && memcmp(a->s.s, b->s.s, a->s.n) == 0;
    if (a->kind != JINJA_TUPLE) return true;
    if (a->seq->n != b->seq->n) return false;
    for (size_t i = 0; i < a->seq->n; i++) /* one level, because keys are not nested */
        if (!same_key(&a->seq->item[i], &b->seq->item[i])) return false;
    return true;
}

/* Returns the slot of the key, or the free slot for it; *probes is the number of slots visited. */
static uint32_t find_slot(const struct jinja_dict *d, const struct jinja_value *key, uint64_t hash,
                          uint64_t *probes)
{
    uint32_t at = (uint32_t)hash & (d->n_slots - 1);
    for (; d->slot[at]; at = (at + 1) & (d->n_slots - 1)) {
        ++*probes;
        const uint32_t i = d->slot[at] - 1;
        if (d->hash[i] == hash && same_key(&d->key[i], key)) break;
    }
    return at;
}

static bool make_room(struct jinja_run *r, struct jinja_dict *d)
{
    const uint32_t room = d->room ? d->room * 2 : 4, n_slots = room * 2;
    if (d->room > UINT32_MAX / 8) return jinja_fail(r, "a mapping is too large");
    d->key = jinja_grow(&r->pool, d->key, d->n * sizeof *d->key, room * sizeof *d->key, r->err);
    if (!d->key) return false;
    d->value =
        jinja_grow(&r->pool, d->value, d->n * sizeof *d->value, room * sizeof *d->value, r->err);
    if (!d->value) return false;
    d->hash = jinja_grow(&r->pool, d->hash, d->n * sizeof *d->hash, room * sizeof *d->hash, r->err);
    d->slot = jinja_alloc(&r->pool, n_slots * sizeof *d->slot, r->err);
    if (!d->hash || !d->slot) return false;
    d->room = room;
    d->n_slots = n_slots;
    uint64_t probes = d->n;
    for (uint32_t i = 0; i < d->n; i++)
        d->slot[find_slot(d, &d->key[i], d->hash[i], &probes)] = i + 1;
    return jinja_step(r, probes);
}

/* Returns the steps for the hash of a key and its comparison with one equal key. */
static uint64_t key_work(const struct jinja_value *key)
{
    uint64_t bytes = key->kind == JINJA_STR ? key->s.n : 0;
    for (size_t i = 0; key->kind == JINJA_TUPLE && i < key->seq->n && i < MAX_KEY_ITEMS; i++)
        if (key->seq->item[i].kind == JINJA_STR) bytes += key->seq->item[i].s.n;
    return bytes / 8;
}

bool jinja_dict_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_value key,
                    struct jinja_value value)
{
    uint64_t hash, probes = key_work(&key);
    if (!hash_of(&key, &hash)) return jinja_fail(r, "unhashable type: '%s'", jinja_type(&key));
    if (d->n == d->room && !make_room(r, d)) return false;
    const uint32_t at = find_slot(d, &key, hash, &probes);
    if (!jinja_step(r, probes)) return false;
    if (d->slot[at]) {
        d->value[d->slot[at] - 1] = value;
        return true;
    }
    d->key[d->n] = key;
    d->value[d->n] = value;
    d->hash[d->n] = hash;
    d->slot[at] = ++d->n;
    return true;
}

bool jinja_dict_find(struct jinja_run *r, const struct jinja_dict *d, const struct jinja_value *key,
                     struct jinja_value **found)
{
    uint64_t hash, probes = key_work(key);
    *found = NULL;
    if (!hash_of(key, &hash)) return jinja_fail(r, "unhashable type: '%s'", jinja_type(key));
    if (!d->n) return true;
    const uint32_t i = d->slot[find_slot(d, key, hash, &probes)];
    if (i) *found = &d->value[i - 1];
    return jinja_step(r, probes);
}

struct jinja_value *jinja_dict_word(const struct jinja_dict *d, struct jinja_str key)
{
    const struct jinja_value v = jinja_string(key.s, key.n);
    uint64_t hash, probes = 0;
    if (!hash_of(&v, &hash) || !d->n) return NULL;
    const uint32_t i = d->slot[find_slot(d, &v, hash, &probes)];
    return i ? &d->value[i - 1] : NULL;
}

/* ---- Truth, equality, order ---- */

bool jinja_truth(struct jinja_run *r, const struct jinja_value *v, bool *out)
{
    (void)r;
    switch (v->kind) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        *out = false;
        break;
    case JINJA_BOOL:
        *out = v->b;
        break;
    case JINJA_INT:
        *out = v->i != 0;
        break;
    case JINJA_FLOAT:
        *out = v->f != 0;
        break;
    case JINJA_STR:
        *out = v->s.n != 0;
        break;
    default:
        *out = !jinja_has_length(v) || (v->kind == JINJA_DICT ? v->dict->n : v->seq->n) != 0;
    }
    return true;
}

static bool equal_items(struct jinja_run *r, const struct jinja_seq *a, const struct jinja_seq *b,
                        bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++)
        if (!jinja_step(r, 1) || !jinja_equal(r, &a->item[i], &b->item[i], out)) return false;
    return true;
}

static bool equal_dicts(struct jinja_run *r, const struct jinja_dict *a, const struct jinja_dict *b,
                        bool *out)
{
    *out = a->n == b->n;
    for (uint32_t i = 0; *out && i < a->n; i++) {
        struct jinja_value *other;
        if (!jinja_dict_find(r, b, &a->key[i], &other)) return false;
        *out = other != NULL;
        if (other && !jinja_equal(r, &a->value[i], other, out)) return false;
    }
    return true;
}

bool jinja_equal(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                 bool *out)
{
    double x;
    int order;
    *out = false;
    if (jinja_as_number(a, &x)) {
        *out = order_numbers(a, b, &order) && order == 0;
        return true;
    }
    if (a->kind != b->kind) return true;
    if (!jinja_step(r, a->kind == JINJA_STR ? 1 + a->s.n / JINJA_MOVED : 1) || !jinja_enter(r))
        return false;
    bool ok = true;
    switch (a->kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        *out = true;
        break;
    case JINJA_STR:
        *out = a->s.n == b->s.n && memcmp(a->s.s, b->s.s, a->s.n) == 0;
        break;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
        ok = equal_items(r, a->seq, b->seq, out);
        break;
    case JINJA_DICT:
        ok = equal_dicts(r, a->dict, b->dict, out);
        break;
    case JINJA_VIEW:
        *out = a->seq == b->seq;
        break;
    default:
        *out = a->dict == b->dict;
        break; /* the same object */
    }
    jinja_leave(r);
    return ok;
}

static int order_bytes(struct jinja_str a, struct jinja_str b)
{
    const int first = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return first ? first : (a.n > b.n) - (a.n < b.n);
}

bool jinja_order(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                 int *out)
{
    double x, y;
    *out = 0;
    if (order_numbers(a, b, out)) return true;
    if (jinja_as_number(a, &x) && jinja_as_number(b, &y)) return true; /* one is not a number */
    if (a->kind == JINJA_STR && b->kind == JINJA_STR) {
        *out = order_bytes(a->s, b->s);
        return jinja_step(r, (a->s.n < b->s.n ? a->s.n : b->s.n) / JINJA_MOVED);
    }
    if (a->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, a);
    if (b->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, b);
    if (a->kind != b->kind || (a->kind != JINJA_LIST && a->kind != JINJA_TUPLE))
        return jinja_fail(r, "'%s' and '%s' have no order", jinja_type(a), jinja_type(b));
    if (!jinja_enter(r)) return false;
    for (size_t i = 0; i < a->seq->n && i < b->seq->n; i++) {
        bool same;
        if (!jinja_equal(r, &a->seq->item[i], &b->seq->item[i], &same)) return false;
        if (same) continue;
        if (!jinja_order(r, &a->seq->item[i], &b->seq->item[i], out)) return false;
        jinja_leave(r);
        return true;
    }
    jinja_leave(r);
    *out = (a->seq->n > b->seq->n) - (a->seq->n < b->seq->n);
    return true;
}

bool jinja_sort(struct jinja_run *r, struct jinja_entry *e, struct jinja_entry *spare, size_t n,
                bool reverse)
{
    if (n < 2) return true;
    const size_t half = n / 2;
    if (!jinja_sort(r, e, spare, half, reverse) ||
        !jinja_sort(r, e + half, spare, n - half, reverse))
        return false;
    memcpy(spare, e, half * sizeof *e);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        int order = 0;
        if (j < n && !jinja_order(r, &e[j].key, &spare[i].key, &order)) return false;
        e[k] = j < n && (reverse ? order > 0 : order < 0) ? e[j++] : spare[i++];
    }
    return jinja_step(r, 2 * (uint64_t)n);
}

bool jinja_contains(struct jinja_run *r, const struct jinja_value *whole,
                    const struct jinja_value *part, bool *out)
{
    struct jinja_seq *items;
    struct jinja_value *found;
    *out = false;
    switch (whole->kind) {
    case JINJA_STR:
        if (part->kind != JINJA_STR)
            return jinja_fail(r, "'in <string>' needs a string, not '%s'", jinja_type(part));
        if (!jinja_step(r, (whole->s.n + part->s.n) / JINJA_MOVED)) return false;
        *out = !part->s.n || memmem(whole->s.s, whole->s.n, part->s.s, part->s.n) != NULL;
        return true;
    case JINJA_DICT:
        if (!jinja_dict_find(r, whole->dict, part, &found)) return false;
        *out = found != NULL;
        return true;
    case JINJA_ITER: /* reads as far as the item */
        for (struct jinja_iter *it = whole->iter; !*out && it->at < it->seq->n; it->at++)
            if (!jinja_step(r, 1) || !jinja_equal(r, &it->seq->item[it->at], part, out))
                return false;
        return true;
    default:
        if (!jinja_items(r, whole, &items)) return false;
        for (size_t i = 0; !*out && i < items->n; i++)
            if (!jinja_equal(r, &items->item[i], part, out)) return false;
        return true;
    }
}
