/* sample/constrain/token_trie.c: builds the tries of a vocabulary. See
 * sample/constrain/token_trie.h. */
#include "sample/constrain/token_trie.h"
#include "base/os.h"
#include "base/size.h"
#include "base/utf8.h"
#include <stdlib.h>
#include <string.h>

struct sorted_token {
    uint64_t head; /* the first bytes as a number: most comparisons need nothing else */
    size_t at;
    uint32_t size;
    int32_t id;
};

static int compare_tokens(const void *a, const void *b, void *bytes)
{
    const struct sorted_token *x = a, *y = b;
    uint32_t n = x->size < y->size ? x->size : y->size;
    if (x->head != y->head) return x->head < y->head ? -1 : 1;
    int order = memcmp((char *)bytes + x->at, (char *)bytes + y->at, n);
    if (order) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static uint64_t head_of(const char *bytes, size_t size)
{
    uint64_t head = 0;
    for (size_t i = 0; i < 8; i++) head = head << 8 | (i < size ? (uint8_t)bytes[i] : 0);
    return head;
}

static bool add_node(struct constrain_trie *v, uint32_t *room, uint32_t token, size_t depth,
                     uint8_t byte, struct base_error *err)
{
    if (!constrain_grow(&v->node, room, v->n_node + 1, sizeof *v->node, err)) return false;
    v->node[v->n_node++] = (struct constrain_trie_node){0, token, (uint16_t)depth, byte};
    return true;
}

uint32_t constrain_byte_kind(uint8_t byte)
{
    enum { SINGLE = 8 };
    static const char single[] = " \t\n\r_-.,:;'()[]{}+*/=";
    if (byte >= 'a' && byte <= 'z') return 1;
    if (byte >= 'A' && byte <= 'Z') return 2;
    if (byte >= '0' && byte <= '9') return 4;
    if (byte >= 0x80) return 8;
    if (byte >= '!' && byte <= '/' && !strchr(single, byte)) return 16;
    const char *at = byte ? strchr(single, byte) : NULL;
    if (at) return 1u << (SINGLE + (at - single));
    return byte > ' ' && byte < 0x7f ? 32 : 64; /* punctuation; control characters */
}

static bool find_below(struct constrain_trie *v, struct base_error *err)
{
    uint32_t kinds[CONSTRAIN_MAX_TOKEN + 2] = {
        0}; /* by depth: the following nodes, with their subtrees */
    v->below = malloc((size_t)v->n_node * sizeof *v->below);
    if (!v->below) return base_fail(err, BASE_NO_MEMORY, "no memory for a vocabulary's trie");
    for (uint32_t i = v->n_node; i-- > 0;) {
        const uint32_t depth = v->node[i].depth;
        v->below[i] = kinds[depth + 1];
        kinds[depth + 1] = 0;
        kinds[depth] |= v->below[i] | constrain_byte_kind(v->node[i].byte);
    }
    return true;
}

/* Adds sorted tokens: each shares the path of its common prefix with the token before it. */
static bool fill(struct constrain_trie *v, const struct sorted_token *t, uint32_t n,
                 const char *bytes, struct base_error *err)
{
    uint32_t path[CONSTRAIN_MAX_TOKEN + 1], room = 0;
    size_t depth = 0;
    v->order = calloc((size_t)n + 1, sizeof *v->order);
    if (!v->order) return base_fail(err, BASE_NO_MEMORY, "no memory for a vocabulary's trie");
    if (!add_node(v, &room, 0, 0, 0, err)) return false;
    path[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t same = 0;
        while (i && same < t[i].size && same < t[i - 1].size &&
               bytes[t[i].at + same] == bytes[t[i - 1].at + same])
            same++;
        for (; depth > same; depth--) v->node[path[depth]].next = v->n_node;
        while (depth < t[i].size) {
            path[++depth] = v->n_node;
            if (depth == 1) v->root[(uint8_t)bytes[t[i].at]] = v->n_node;
            if (!add_node(v, &room, i, depth, (uint8_t)bytes[t[i].at + depth - 1], err))
                return false;
        }
        v->order[i] = t[i].id;
    }
    for (size_t d = 0; d <= depth; d++) v->node[path[d]].next = v->n_node;
    v->node[v->n_node] = (struct constrain_trie_node){v->n_node + 1, n, 0, 0};
    /* The first token of a node without tokens of its own, inside the path of a longer token, is
     * that of the next node. */
    return find_below(v, err);
}

/* Returns the number of code points of a plain token; 0 if it is not plain. */
static uint32_t count_plain(const char *bytes, size_t size)
{
    uint32_t count = 0;
    for (size_t i = 0; i < size; count++) {
        int32_t code;
        i += base_utf8_decode(bytes + i, size - i, &code);
        if (code < 0x20 || code == '"' || code == '\\' || code == 0x7f) return 0;
    }
    return count <= CONSTRAIN_PLAIN ? count : 0;
}

/* Reads the tokens' bytes and stores plain tokens first. */
static bool read_tokens(struct constrain_token_trie *v, constrain_token_bytes_fn *bytes,
                        void *context, struct base_buffer *text, struct sorted_token *t,
                        uint32_t *n_plain, uint32_t *n_other, struct base_error *err)
{
    *n_plain = *n_other = 0;
    for (uint32_t id = 0; id < v->n_vocab; id++) {
        size_t at = text->size;
        bytes(context, (int32_t)id, text);
        size_t size = text->size - at;
        if (text->failed) return base_fail(err, BASE_NO_MEMORY, "no memory for a vocabulary");
        if (size == 0 || size > CONSTRAIN_MAX_TOKEN) continue;
        uint32_t plain = count_plain(text->data + at, size);
        struct sorted_token *to = plain ? &t[(*n_plain)++] : &t[v->n_vocab - ++*n_other];
        *to =
            (struct sorted_token){head_of(text->data + at, size), at, (uint32_t)size, (int32_t)id};
        if (!plain) continue;
        v->plain_mask[(size_t)plain * v->words + id / 64] |= 1ull << id % 64;
    }
    for (size_t i = v->words; i < (CONSTRAIN_PLAIN + 1) * (size_t)v->words; i++)
        v->plain_mask[i] |= v->plain_mask[i - v->words];
    return true;
}

struct constrain_token_trie *constrain_token_trie_new(uint32_t n_vocab,
                                                      constrain_token_bytes_fn *bytes,
                                                      void *context, struct base_error *err)
{
    struct constrain_token_trie *v = calloc(1, sizeof *v);
    struct sorted_token *t = calloc((size_t)n_vocab + 1, sizeof *t);
    struct base_buffer text = BASE_BUFFER_INIT;
    uint32_t n_plain, n_other, words = (uint32_t)(((uint64_t)n_vocab + 63) / 64);
    bool ok =
        v && t && (v->plain_mask = calloc(words + 1, (CONSTRAIN_PLAIN + 1) * sizeof(uint64_t)));
    if (!ok) base_fail(err, BASE_NO_MEMORY, "no memory for a vocabulary's trie");
    if (ok) {
        v->n_vocab = n_vocab;
        v->words = words;
        ok = read_tokens(v, bytes, context, &text, t, &n_plain, &n_other, err);
    }
    if (ok) {
        struct sorted_token *other = t + n_vocab - n_other;
        if (n_plain) base_os_sort(t, n_plain, sizeof *t, compare_tokens, text.data);
        if (n_other) base_os_sort(other, n_other, sizeof *t, compare_tokens, text.data);
        ok = fill(&v->plain, t, n_plain, text.data, err) &&
             fill(&v->other, other, n_other, text.data, err);
    }
    base_buffer_free(&text);
    free(t);
    if (ok) return v;
    constrain_token_trie_free(v);
    return NULL;
}

void constrain_token_trie_free(struct constrain_token_trie *v)
{
    if (!v) return;
    free(v->plain.node), free(v->plain.order), free(v->plain.below);
    free(v->other.node), free(v->other.order), free(v->other.below);
    free(v->plain_mask);
    free(v);
}

/* -- splitting a text into tokens -- */

struct split_step { /* the best way from a byte of the text to its end */
    uint32_t tokens, size;
    int32_t id;
};
struct constrain_retokenizer {
    const struct constrain_token_trie *vocab;
    struct split_step *step; /* [n + 1] for the latest text, by number of bytes left */
    uint8_t *byte;           /* [n + 1] by the same number */
    size_t n, room;
};

struct constrain_retokenizer *constrain_retokenizer_new(const struct constrain_token_trie *v,
                                                        struct base_error *err)
{
    struct constrain_retokenizer *p = calloc(1, sizeof *p);
    if (p)
        p->vocab = v;
    else
        base_fail(err, BASE_NO_MEMORY, "no memory for a text's tokens");
    return p;
}

void constrain_retokenizer_free(struct constrain_retokenizer *p)
{
    if (!p) return;
    free(p->step), free(p->byte);
    free(p);
}

static uint32_t child_of(const struct constrain_trie *v, uint32_t parent, uint8_t byte)
{
    for (uint32_t i = parent + 1; i < v->node[parent].next; i = v->node[i].next)
        if (v->node[i].byte == byte) return i;
    return 0;
}

/* Updates the best way from the place with `left` bytes left by the tokens of one trie. */
static void try_tokens(struct constrain_retokenizer *p, const struct constrain_trie *v, size_t left)
{
    struct split_step *best = &p->step[left];
    uint32_t i = v->root[p->byte[left]];
    for (size_t size = 1; i; size++) {
        const uint32_t tokens = p->step[left - size].tokens;
        if (v->node[i].token < v->node[i + 1].token && tokens < UINT32_MAX &&
            tokens + 1 < best->tokens)
            *best = (struct split_step){tokens + 1, (uint32_t)size, v->order[v->node[i].token]};
        i = size < left ? child_of(v, i, p->byte[left - size]) : 0;
    }
}

static bool retokenizer_grow(struct constrain_retokenizer *p, size_t size, struct base_error *err)
{
    if (size < p->room) return true;
    const size_t room = 2 * size + 64;
    struct split_step *step = base_resize(p->step, room, sizeof *step);
    if (step) p->step = step;
    uint8_t *byte = realloc(p->byte, room);
    if (byte) p->byte = byte;
    if (!step || !byte) return base_fail(err, BASE_NO_MEMORY, "no memory for a text's tokens");
    p->room = room;
    return true;
}

bool constrain_retokenize(struct constrain_retokenizer *p, const char *bytes, size_t size,
                          int32_t *ids, size_t *count, struct base_error *err)
{
    *count = 0;
    if (!retokenizer_grow(p, size, err)) return false;
    size_t left = 1;
    while (left <= size && left <= p->n && p->byte[left] == (uint8_t)bytes[size - left]) left++;
    for (p->step[0] = (struct split_step){0, 0, 0}; left <= size; left++) {
        p->byte[left] = (uint8_t)bytes[size - left];
        p->step[left] = (struct split_step){UINT32_MAX, 1, -1};
        try_tokens(p, &p->vocab->plain, left);
        try_tokens(p, &p->vocab->other, left);
    }
    p->n = size;
    if (p->step[size].tokens != UINT32_MAX)
        for (left = size; left > 0; left -= p->step[left].size) ids[(*count)++] = p->step[left].id;
    return true;
}

/* -- plain strings in automata -- */

/* The position inside a UTF-8 sequence: between code points, or which bytes must follow. */
enum { BETWEEN, NEED_1, NEED_2, NEED_3, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4, UNKNOWN };
static const struct {
    uint8_t from, lo, hi, to;
} utf8_move[] = {{BETWEEN, 0x20, 0x21, BETWEEN},
                 {BETWEEN, 0x23, 0x5b, BETWEEN},
                 {BETWEEN, 0x5d, 0x7e, BETWEEN},
                 {BETWEEN, 0xc2, 0xdf, NEED_1},
                 {BETWEEN, 0xe0, 0xe0, AFTER_E0},
                 {BETWEEN, 0xe1, 0xec, NEED_2},
                 {BETWEEN, 0xee, 0xef, NEED_2},
                 {BETWEEN, 0xed, 0xed, AFTER_ED},
                 {BETWEEN, 0xf0, 0xf0, AFTER_F0},
                 {BETWEEN, 0xf1, 0xf3, NEED_3},
                 {BETWEEN, 0xf4, 0xf4, AFTER_F4},
                 {NEED_1, 0x80, 0xbf, BETWEEN},
                 {NEED_2, 0x80, 0xbf, NEED_1},
                 {NEED_3, 0x80, 0xbf, NEED_2},
                 {AFTER_E0, 0xa0, 0xbf, NEED_1},
                 {AFTER_ED, 0x80, 0x9f, NEED_1},
                 {AFTER_F0, 0x90, 0xbf, NEED_2},
                 {AFTER_F4, 0x80, 0x8f, NEED_2},
                 /* bytes that are not plain, for the positions of states */
                 {BETWEEN, 0x00, 0x1f, BETWEEN},
                 {BETWEEN, 0x22, 0x22, BETWEEN},
                 {BETWEEN, 0x5c, 0x5c, BETWEEN},
                 {BETWEEN, 0x7f, 0x7f, BETWEEN}};
enum { N_MOVE = sizeof utf8_move / sizeof utf8_move[0], N_PLAIN_MOVE = 18 };

/* The classes of the bytes of each move. */
struct utf8_moves {
    uint8_t class[N_MOVE][256];
    uint32_t n_class[N_MOVE];
};

static void list_moves(const struct constrain_dfa *d, struct utf8_moves *w)
{
    for (uint32_t m = 0; m < N_MOVE; m++) {
        bool known[256] = {false};
        w->n_class[m] = 0;
        for (uint32_t b = utf8_move[m].lo; b <= utf8_move[m].hi; b++)
            if (!known[d->class_of[b]]) {
                known[d->class_of[b]] = true;
                w->class[m][w->n_class[m]++] = d->class_of[b];
            }
    }
}

/* Computes the position of each state inside UTF-8, from the start on; UNKNOWN if it is not
 * unique. */
static void find_places(const struct constrain_dfa *d, const struct utf8_moves *w, uint8_t *place,
                        uint32_t *todo)
{
    enum { UNSEEN = UNKNOWN + 1 };
    uint32_t n = 0;
    memset(place, UNSEEN, d->n_state);
    place[1] = BETWEEN;
    todo[n++] = 1;
    while (n) {
        uint32_t q = todo[--n];
        for (uint32_t m = 0; m < N_MOVE; m++)
            for (uint32_t c = 0; utf8_move[m].from == place[q] && c < w->n_class[m]; c++) {
                uint32_t to = d->next[(size_t)q * d->n_class + w->class[m][c]];
                if (!to || place[to] == utf8_move[m].to) continue;
                if (place[to] == UNSEEN) {
                    place[to] = utf8_move[m].to;
                    todo[n++] = to;
                } else {
                    place[to] = UNKNOWN;
                }
            }
        for (uint32_t c = d->call_at[q]; c < d->call_at[q + 1]; c++) {
            uint32_t to = d->call[c].back;
            if (!to || place[to] != UNSEEN) continue;
            place[to] = BETWEEN; /* a rule ends between code points */
            todo[n++] = to;
        }
    }
}

void constrain_plain_depths(const struct constrain_dfa *d, const uint8_t *good, uint8_t *min_depth,
                            uint8_t *max_depth, uint32_t *todo)
{
    struct utf8_moves w;
    list_moves(d, &w);
    uint8_t *place = (uint8_t *)(todo + d->n_state);
    find_places(d, &w, place, todo);
    memset(min_depth, CONSTRAIN_PLAIN, d->n_state);
    memset(max_depth, 0, d->n_state);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t q = d->n_state; q-- > 1;) {
            uint32_t low = CONSTRAIN_PLAIN, high = 0;
            for (uint32_t m = 0; m < N_PLAIN_MOVE; m++)
                for (uint32_t c = 0; utf8_move[m].from == place[q] && c < w.n_class[m]; c++) {
                    uint32_t to = d->next[(size_t)q * d->n_class + w.class[m][c]];
                    uint32_t one = utf8_move[m].to == BETWEEN, up = 0, down = 0;
                    if (to && good[to]) up = max_depth[to] + one, down = min_depth[to] + one;
                    if (to && good[to] && (good[to] > 1 || place[to] != utf8_move[m].to))
                        up = CONSTRAIN_PLAIN, down = 0; /* no statement about this state */
                    if (down < low) low = down;
                    if (up > high) high = up;
                }
            if (high > CONSTRAIN_PLAIN) high = CONSTRAIN_PLAIN;
            changed |= low != min_depth[q] || high != max_depth[q];
            min_depth[q] = (uint8_t)low;
            max_depth[q] = (uint8_t)high;
        }
    }
    for (uint32_t q = 0; q < d->n_state; q++)
        if (place[q] != BETWEEN) min_depth[q] = 1, max_depth[q] = 0;
}
