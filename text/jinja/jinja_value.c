/* text/jinja/jinja_value.c: the pool, limits, sequences, dicts, truth, equality and order of
 * values. See text/jinja/jinja_value.h. */
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

/* Chunks grow with the pool, so that there are few to search for an address. */
struct tpl_chunk {
    struct tpl_chunk *older;
    size_t size, used;
    char *mark; /* [size] or NULL */
    _Alignas(ALIGN) char bytes[];
};

static struct tpl_chunk *new_chunk(struct tpl_pool *pool, size_t bytes)
{
    size_t room = pool->taken > CHUNK ? pool->taken : CHUNK;
    if (room < bytes) room = bytes;
    struct tpl_chunk *chunk = malloc(sizeof *chunk + room);
    char *mark = pool->marked ? calloc(room, 1) : NULL;
    if (!chunk || (pool->marked && !mark)) {
        free(chunk);
        free(mark);
        return NULL;
    }
    *chunk = (struct tpl_chunk){.older = pool->chunk, .size = room, .mark = mark};
    return pool->chunk = chunk;
}

void *text_tpl_take(struct tpl_pool *pool, size_t size, struct base_error *err)
{
    uint64_t bytes, taken;
    struct tpl_chunk *chunk = pool->chunk;
    if (!base_align_up(size ? size : 1, ALIGN, &bytes) || !base_add(pool->taken, bytes, &taken) ||
        taken > pool->limit) {
        base_fail(err, BASE_USAGE, "the template needs more than %llu bytes of memory",
                  (unsigned long long)pool->limit);
        return NULL;
    }
    if (!chunk || chunk->size - chunk->used < bytes) {
        chunk = new_chunk(pool, bytes);
        if (!chunk) {
            base_fail(err, BASE_NO_MEMORY, "no memory for a template's values");
            return NULL;
        }
    }
    char *p = chunk->bytes + chunk->used;
    chunk->used += bytes;
    pool->taken = taken;
    memset(p, 0, bytes);
    return p;
}

void *text_tpl_grow(struct tpl_pool *pool, void *p, size_t old_size, size_t size,
                    struct base_error *err)
{
    struct tpl_chunk *chunk = pool->chunk;
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
    void *more = text_tpl_take(pool, size, err);
    if (more && p) memcpy(more, p, old_size);
    return more;
}

void text_tpl_pool_free(struct tpl_pool *pool)
{
    while (pool->chunk) {
        struct tpl_chunk *older = pool->chunk->older;
        free(pool->chunk->mark);
        free(pool->chunk);
        pool->chunk = older;
    }
}

static const struct tpl_chunk *find_chunk(const struct tpl_pool *pool, const char *p)
{
    const struct tpl_chunk *c = pool->chunk;
    const uintptr_t at = (uintptr_t)p;
    while (c && (at < (uintptr_t)c->bytes || at >= (uintptr_t)c->bytes + c->used)) c = c->older;
    return c;
}

char *text_tpl_pool_marks(const struct tpl_pool *pool, const char *p)
{
    const struct tpl_chunk *c = pool->marked ? find_chunk(pool, p) : NULL;
    return c ? c->mark + (p - c->bytes) : NULL;
}

bool text_tpl_pool_holds(const struct tpl_pool *pool, const char *p)
{
    return find_chunk(pool, p) != NULL;
}

/* ---- Limits and errors ---- */

bool text_tpl_fail(struct tpl_run *r, const char *format, ...)
{
    char text[340];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return base_fail(r->err, BASE_USAGE, "line %d: %s", r->line, text);
}

bool text_tpl_step(struct tpl_run *r, uint64_t count)
{
    if (r->limit.max_steps - r->steps >= count) {
        r->steps += count;
        return true;
    }
    return text_tpl_fail(r, "the template takes more than %llu steps",
                         (unsigned long long)r->limit.max_steps);
}

bool text_tpl_enter(struct tpl_run *r)
{
    if (r->depth < r->limit.max_depth) {
        r->depth++;
        return true;
    }
    return text_tpl_fail(r, "the template is nested deeper than %u levels", r->limit.max_depth);
}

void text_tpl_leave(struct tpl_run *r)
{
    r->depth--;
}

bool text_tpl_fail_undefined(struct tpl_run *r, const struct tpl_value *v)
{
    const int n = (int)(v->s.n > 200 ? 200 : v->s.n);
    const struct tpl_value of = {.kind = v->of};
    switch (v->why) {
    case TPL_ATTRIBUTE:
        return text_tpl_fail(r, "'%s' has no attribute '%.*s'", text_tpl_type(&of), n, v->s.s);
    case TPL_UNSAFE:
        return text_tpl_fail(r, "'%.*s' of '%s' is not allowed: it would change the object", n,
                             v->s.s, text_tpl_type(&of));
    case TPL_PARAMETER:
        return text_tpl_fail(r, "parameter '%.*s' was not provided", n, v->s.s);
    case TPL_EMPTY:
        return text_tpl_fail(r, "%.*s", n, v->s.s);
    default:
        return text_tpl_fail(r, "'%.*s' is undefined", n, v->s.s);
    }
}

const char *text_tpl_type(const struct tpl_value *v)
{
    static const char *const names[] = {[TPL_MISSING] = "missing", [TPL_UNDEFINED] = "Undefined",
                                        [TPL_NONE] = "None",       [TPL_BOOL] = "bool",
                                        [TPL_INT] = "int",         [TPL_FLOAT] = "float",
                                        [TPL_STR] = "str",         [TPL_LIST] = "list",
                                        [TPL_TUPLE] = "tuple",     [TPL_DICT] = "dict",
                                        [TPL_VIEW] = "dict view",  [TPL_ITER] = "generator",
                                        [TPL_RANGE] = "range",     [TPL_NAMESPACE] = "Namespace",
                                        [TPL_MACRO] = "Macro",     [TPL_FUNC] = "function",
                                        [TPL_METHOD] = "method",   [TPL_LOOP] = "LoopContext",
                                        [TPL_CYCLER] = "Cycler",   [TPL_JOINER] = "Joiner"};
    return names[v->kind];
}

/* ---- Strings under construction ---- */

static bool reserve(struct tpl_run *r, struct tpl_text *text, size_t more)
{
    if (text->room - text->n >= more) return true;
    uint64_t need;
    if (!base_add(text->n, more, &need) || need > r->limit.max_memory)
        return text_tpl_fail(r, "the template needs more than %llu bytes of memory",
                             (unsigned long long)r->limit.max_memory);
    size_t room = text->room ? text->room * 2 : 32;
    if (room < need) room = need;
    char *s = text_tpl_grow(&r->pool, text->s, text->room, room, r->err);
    if (!s) return false;
    if (r->pool.marked && text->s && s != text->s)
        memcpy(text_tpl_pool_marks(&r->pool, s), text_tpl_pool_marks(&r->pool, text->s), text->n);
    text->s = s;
    text->room = room;
    return true;
}

/* Copies the marks of s[n] to the marks at `to`: all 1 for what belongs to the parsed template. */
static void copy_marks(const struct tpl_run *r, char *to, const char *s, size_t n)
{
    const char *from = text_tpl_pool_marks(&r->pool, s);
    if (from)
        memcpy(to, from, n);
    else if (text_tpl_pool_holds(&r->t->pool, s))
        memset(to, 1, n);
}

bool text_tpl_add(struct tpl_run *r, struct tpl_text *text, const char *s, size_t n)
{
    if (!n) return true;
    if (!reserve(r, text, n)) return false;
    memcpy(text->s + text->n, s, n);
    if (r->pool.marked) copy_marks(r, text_tpl_pool_marks(&r->pool, text->s) + text->n, s, n);
    text->n += n;
    return true;
}

void text_tpl_mark_like(struct tpl_run *r, struct tpl_text *text, size_t from, const char *source)
{
    char own = 0;
    if (!r->pool.marked || text->n == from) return;
    copy_marks(r, &own, source, 1);
    memset(text_tpl_pool_marks(&r->pool, text->s) + from, own, text->n - from);
}

bool text_tpl_own(struct tpl_run *r, struct tpl_value *string)
{
    struct tpl_text text = {0};
    if (!text_tpl_add(r, &text, string->s.s, string->s.n)) return false;
    *string = text_tpl_text_value(&text);
    if (r->pool.marked && text.n) memset(text_tpl_pool_marks(&r->pool, text.s), 1, text.n);
    return true;
}

bool text_tpl_add_char(struct tpl_run *r, struct tpl_text *text, char c, size_t count)
{
    if (!reserve(r, text, count)) return false;
    if (count) memset(text->s + text->n, c, count);
    text->n += count;
    return true;
}

bool text_tpl_add_code(struct tpl_run *r, struct tpl_text *text, int32_t code)
{
    char bytes[4];
    return text_tpl_add(r, text, bytes, base_utf8_encode(code, bytes));
}

bool text_tpl_add_word(struct tpl_run *r, struct tpl_text *text, const char *word)
{
    return text_tpl_add(r, text, word, strlen(word));
}

struct tpl_value text_tpl_text_value(const struct tpl_text *text)
{
    return tpl_string(text->s ? text->s : "", text->n);
}

/* ---- Sequences ---- */

struct tpl_seq *text_tpl_seq(struct tpl_run *r, size_t room)
{
    struct tpl_seq *seq = text_tpl_take(&r->pool, sizeof *seq, r->err);
    uint64_t bytes;
    if (!seq) return NULL;
    if (!base_mul(room, sizeof *seq->item, &bytes)) bytes = UINT64_MAX / 2;
    seq->room = room;
    seq->item = text_tpl_take(&r->pool, bytes, r->err);
    return seq->item ? seq : NULL;
}

bool text_tpl_push(struct tpl_run *r, struct tpl_seq *seq, struct tpl_value v)
{
    if (seq->n == seq->room) {
        const size_t room = seq->room ? seq->room * 2 : 4;
        struct tpl_value *item =
            text_tpl_grow(&r->pool, seq->item, seq->n * sizeof *item, room * sizeof *item, r->err);
        if (!item) return false;
        seq->item = item;
        seq->room = room;
    }
    seq->item[seq->n++] = v;
    return true;
}

bool text_tpl_new(struct tpl_run *r, enum tpl_kind kind, struct tpl_value *out)
{
    *out = (struct tpl_value){.kind = (uint8_t)kind};
    if (kind == TPL_DICT || kind == TPL_NAMESPACE) return (out->dict = text_tpl_dict(r)) != NULL;
    return (out->seq = text_tpl_seq(r, 0)) != NULL;
}

bool text_tpl_generator(struct tpl_run *r, struct tpl_seq *seq, const char *type,
                        struct tpl_value *out)
{
    struct tpl_iter *iter = text_tpl_take(&r->pool, sizeof *iter, r->err);
    if (!iter) return false;
    iter->seq = seq;
    *out = (struct tpl_value){.kind = TPL_ITER, .s = {type, strlen(type)}, .iter = iter};
    return true;
}

static bool code_points(struct tpl_run *r, struct tpl_str s, struct tpl_seq *seq)
{
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        if (!text_tpl_push(r, seq, tpl_string(s.s + at, used))) return false;
        at += used;
    }
    return true;
}

bool text_tpl_items(struct tpl_run *r, const struct tpl_value *v, struct tpl_seq **out)
{
    size_t n;
    switch (v->kind) {
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_RANGE:
    case TPL_VIEW:
        *out = v->seq;
        return text_tpl_step(r, v->seq->n);
    case TPL_UNDEFINED:
    case TPL_STR:
        n = v->kind == TPL_STR ? v->s.n : 0;
        if (!text_tpl_step(r, n)) return false;
        *out = text_tpl_seq(r, 0);
        return *out && (!n || code_points(r, v->s, *out));
    case TPL_DICT:
    case TPL_ITER:
        *out = text_tpl_seq(r, 0);
        if (!*out) return false;
        if (v->kind == TPL_DICT) {
            (*out)->item = v->dict->key;
            (*out)->n = (*out)->room = v->dict->n;
        } else {
            (*out)->item = v->iter->seq->item + v->iter->at;
            (*out)->n = (*out)->room = v->iter->seq->n - v->iter->at;
            v->iter->at = v->iter->seq->n;
        }
        return text_tpl_step(r, (*out)->n);
    default:
        return text_tpl_fail(r, "'%s' object is not iterable", text_tpl_type(v));
    }
}

bool text_tpl_has_length(const struct tpl_value *v)
{
    switch (v->kind) {
    case TPL_STR:
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_RANGE:
    case TPL_VIEW:
    case TPL_DICT:
    case TPL_UNDEFINED:
        return true;
    default:
        return false;
    }
}

bool text_tpl_length(struct tpl_run *r, const struct tpl_value *v, size_t *out)
{
    *out = 0;
    switch (v->kind) {
    case TPL_UNDEFINED:
        return true;
    case TPL_STR:
        *out = text_tpl_count(v->s);
        return text_tpl_step(r, v->s.n / 64);
    case TPL_DICT:
        *out = v->dict->n;
        return true;
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_RANGE:
    case TPL_VIEW:
        *out = v->seq->n;
        return true;
    default:
        return text_tpl_fail(r, "object of type '%s' has no length", text_tpl_type(v));
    }
}

/* ---- Dicts ---- */

enum { MAX_KEY_ITEMS = 16 };

/* Equal keys have equal hashes: 1, 1.0 and true are one key. False for what has no hash. */
static bool hash_of(const struct tpl_value *v, uint64_t *out)
{
    uint64_t h = 1469598103934665603u;
    double number;
    if (tpl_as_number(v, &number)) {
        uint64_t bits;
        if (number == 0) number = 0; /* minus zero */
        memcpy(&bits, &number, sizeof bits);
        *out = bits * 0x9e3779b97f4a7c15u;
        return true;
    }
    switch (v->kind) {
    case TPL_NONE:
    case TPL_UNDEFINED:
        *out = v->kind;
        return true;
    case TPL_STR:
        for (size_t i = 0; i < v->s.n; i++) h = (h ^ (unsigned char)v->s.s[i]) * 1099511628211u;
        break;
    case TPL_TUPLE: /* small and flat, so that the work on a key is bounded */
        if (v->seq->n > MAX_KEY_ITEMS) return false;
        for (size_t i = 0; i < v->seq->n; i++) {
            uint64_t item;
            if (v->seq->item[i].kind == TPL_TUPLE || !hash_of(&v->seq->item[i], &item))
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

struct tpl_dict *text_tpl_dict(struct tpl_run *r)
{
    return text_tpl_take(&r->pool, sizeof(struct tpl_dict), r->err);
}

/* The order of an integer and a float, exact where the integer has more bits than a double. */
static int order_mixed(int64_t i, double f)
{
    if (f >= 9223372036854775808.0) return -1;
    if (f < -9223372036854775808.0) return 1;
    const int64_t whole = (int64_t)f;
    if (i != whole) return i < whole ? -1 : 1;
    const double rest = f - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

/* *order < 0, 0 or > 0 of two numbers; false when one is none, or not a number. */
static bool order_numbers(const struct tpl_value *a, const struct tpl_value *b, int *order)
{
    int64_t i, j;
    double x, y;
    if (!tpl_as_number(a, &x) || !tpl_as_number(b, &y) || isnan(x) || isnan(y)) return false;
    const bool whole_a = tpl_as_int(a, &i), whole_b = tpl_as_int(b, &j);
    *order = whole_a && whole_b ? (i > j) - (i < j)
             : whole_a          ? order_mixed(i, y)
             : whole_b          ? -order_mixed(j, x)
                                : (x > y) - (x < y);
    return true;
}

static bool same_key(const struct tpl_value *a, const struct tpl_value *b)
{
    double x;
    int order;
    if (tpl_as_number(a, &x)) return order_numbers(a, b, &order) && order == 0;
    if (a->kind != b->kind) return false;
    if (a->kind == TPL_STR) return a->s.n == b->s.n && memcmp(a->s.s, b->s.s, a->s.n) == 0;
    if (a->kind != TPL_TUPLE) return true;
    if (a->seq->n != b->seq->n) return false;
    for (size_t i = 0; i < a->seq->n; i++) /* one level: keys are flat */
        if (!same_key(&a->seq->item[i], &b->seq->item[i])) return false;
    return true;
}

static uint32_t find_slot(const struct tpl_dict *d, const struct tpl_value *key, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (d->n_slots - 1);
    for (; d->slot[at]; at = (at + 1) & (d->n_slots - 1)) {
        const uint32_t i = d->slot[at] - 1;
        if (d->hash[i] == hash && same_key(&d->key[i], key)) break;
    }
    return at;
}

static bool make_room(struct tpl_run *r, struct tpl_dict *d)
{
    const uint32_t room = d->room ? d->room * 2 : 4, n_slots = room * 2;
    if (d->room > UINT32_MAX / 8) return text_tpl_fail(r, "a mapping is too large");
    d->key = text_tpl_grow(&r->pool, d->key, d->n * sizeof *d->key, room * sizeof *d->key, r->err);
    if (!d->key) return false;
    d->value =
        text_tpl_grow(&r->pool, d->value, d->n * sizeof *d->value, room * sizeof *d->value, r->err);
    if (!d->value) return false;
    d->hash =
        text_tpl_grow(&r->pool, d->hash, d->n * sizeof *d->hash, room * sizeof *d->hash, r->err);
    d->slot = text_tpl_take(&r->pool, n_slots * sizeof *d->slot, r->err);
    if (!d->hash || !d->slot) return false;
    d->room = room;
    d->n_slots = n_slots;
    for (uint32_t i = 0; i < d->n; i++) d->slot[find_slot(d, &d->key[i], d->hash[i])] = i + 1;
    return true;
}

bool text_tpl_dict_set(struct tpl_run *r, struct tpl_dict *d, struct tpl_value key,
                       struct tpl_value value)
{
    uint64_t hash;
    if (!hash_of(&key, &hash))
        return text_tpl_fail(r, "unhashable type: '%s'", text_tpl_type(&key));
    if (d->n == d->room && !make_room(r, d)) return false;
    const uint32_t at = find_slot(d, &key, hash);
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

struct tpl_value *text_tpl_dict_find(const struct tpl_dict *d, const struct tpl_value *key,
                                     bool *ok)
{
    uint64_t hash;
    *ok = hash_of(key, &hash);
    if (!*ok || !d->n) return NULL;
    const uint32_t i = d->slot[find_slot(d, key, hash)];
    return i ? &d->value[i - 1] : NULL;
}

struct tpl_value *text_tpl_dict_word(const struct tpl_dict *d, struct tpl_str key)
{
    const struct tpl_value v = tpl_string(key.s, key.n);
    bool ok;
    return text_tpl_dict_find(d, &v, &ok);
}

/* ---- Truth, equality, order ---- */

bool text_tpl_truth(struct tpl_run *r, const struct tpl_value *v, bool *out)
{
    size_t n;
    (void)r;
    switch (v->kind) {
    case TPL_MISSING:
    case TPL_UNDEFINED:
    case TPL_NONE:
        *out = false;
        return true;
    case TPL_BOOL:
        *out = v->b;
        return true;
    case TPL_INT:
        *out = v->i != 0;
        return true;
    case TPL_FLOAT:
        *out = v->f != 0;
        return true;
    case TPL_STR:
        *out = v->s.n != 0;
        return true;
    default:
        *out = true;
        if (!text_tpl_has_length(v)) return true;
        n = v->kind == TPL_DICT ? v->dict->n : v->seq->n;
        *out = n != 0;
        return true;
    }
}

static bool equal_items(struct tpl_run *r, const struct tpl_seq *a, const struct tpl_seq *b,
                        bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++)
        if (!text_tpl_equal(r, &a->item[i], &b->item[i], out)) return false;
    return true;
}

static bool equal_dicts(struct tpl_run *r, const struct tpl_dict *a, const struct tpl_dict *b,
                        bool *out)
{
    *out = a->n == b->n;
    for (uint32_t i = 0; *out && i < a->n; i++) {
        bool ok;
        const struct tpl_value *other = text_tpl_dict_find(b, &a->key[i], &ok);
        *out = other != NULL;
        if (other && !text_tpl_equal(r, &a->value[i], other, out)) return false;
    }
    return true;
}

bool text_tpl_equal(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                    bool *out)
{
    double x;
    int order;
    *out = false;
    if (tpl_as_number(a, &x)) {
        *out = order_numbers(a, b, &order) && order == 0;
        return true;
    }
    if (a->kind != b->kind) return true;
    if (!text_tpl_step(r, a->kind == TPL_STR ? 1 + a->s.n / 64 : 1) || !text_tpl_enter(r))
        return false;
    bool ok = true;
    switch (a->kind) {
    case TPL_UNDEFINED:
    case TPL_NONE:
        *out = true;
        break;
    case TPL_STR:
        *out = a->s.n == b->s.n && memcmp(a->s.s, b->s.s, a->s.n) == 0;
        break;
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_RANGE:
        ok = equal_items(r, a->seq, b->seq, out);
        break;
    case TPL_DICT:
        ok = equal_dicts(r, a->dict, b->dict, out);
        break;
    case TPL_VIEW:
        *out = a->seq == b->seq;
        break;
    default:
        *out = a->dict == b->dict;
        break; /* the same object */
    }
    text_tpl_leave(r);
    return ok;
}

static int order_bytes(struct tpl_str a, struct tpl_str b)
{
    const int first = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return first ? first : (a.n > b.n) - (a.n < b.n);
}

bool text_tpl_order(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                    int *out)
{
    double x, y;
    *out = 0;
    if (order_numbers(a, b, out)) return true;
    if (tpl_as_number(a, &x) && tpl_as_number(b, &y)) return true; /* one is not a number */
    if (a->kind == TPL_STR && b->kind == TPL_STR) {
        *out = order_bytes(a->s, b->s);
        return true;
    }
    if (a->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, a);
    if (b->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, b);
    if (a->kind != b->kind || (a->kind != TPL_LIST && a->kind != TPL_TUPLE))
        return text_tpl_fail(r, "'%s' and '%s' have no order", text_tpl_type(a), text_tpl_type(b));
    if (!text_tpl_enter(r)) return false;
    for (size_t i = 0; i < a->seq->n && i < b->seq->n; i++) {
        bool same;
        if (!text_tpl_equal(r, &a->seq->item[i], &b->seq->item[i], &same)) return false;
        if (same) continue;
        if (!text_tpl_order(r, &a->seq->item[i], &b->seq->item[i], out)) return false;
        text_tpl_leave(r);
        return true;
    }
    text_tpl_leave(r);
    *out = (a->seq->n > b->seq->n) - (a->seq->n < b->seq->n);
    return true;
}

bool text_tpl_contains(struct tpl_run *r, const struct tpl_value *whole,
                       const struct tpl_value *part, bool *out)
{
    struct tpl_seq *items;
    bool ok;
    *out = false;
    switch (whole->kind) {
    case TPL_STR:
        if (part->kind != TPL_STR)
            return text_tpl_fail(r, "'in <string>' needs a string, not '%s'", text_tpl_type(part));
        *out = !part->s.n || memmem(whole->s.s, whole->s.n, part->s.s, part->s.n) != NULL;
        return text_tpl_step(r, whole->s.n / 64);
    case TPL_DICT:
        *out = text_tpl_dict_find(whole->dict, part, &ok) != NULL;
        return ok || text_tpl_fail(r, "unhashable type: '%s'", text_tpl_type(part));
    case TPL_ITER: /* reads up to the item */
        for (struct tpl_iter *it = whole->iter; !*out && it->at < it->seq->n; it->at++)
            if (!text_tpl_equal(r, &it->seq->item[it->at], part, out)) return false;
        return true;
    default:
        if (!text_tpl_items(r, whole, &items)) return false;
        for (size_t i = 0; !*out && i < items->n; i++)
            if (!text_tpl_equal(r, &items->item[i], part, out)) return false;
        return true;
    }
}
