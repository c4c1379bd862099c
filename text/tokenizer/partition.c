/* text/tokenizer/partition.c: cuts special tokens out of a text. See text/tokenizer/vocab.h.
 *
 * The rule is that of llama.cpp and of the files made for it: the longest token first, each token
 * leftmost first, in the text that earlier tokens have left. One pass of an automaton over the text
 * finds the offsets where tokens end; a heap of these matches returns the tokens by rank. If a
 * match overlaps a chosen token, it returns to the heap with the next shorter token that ends
 * there. */
#include "base/list.h"
#include "base/os.h"
#include "text/tokenizer/vocab.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- The special tokens of a vocabulary ---- */

static bool is_special(enum text_token_kind kind)
{
    return kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_USER || kind == TEXT_TOKEN_UNKNOWN;
}

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Reads a string value into out[room], in lower case and truncated. */
static bool read_lower(const struct gguf_file *file, const char *key, char *out, size_t room,
                       struct base_error *err)
{
    struct gguf_str value = {"", 0};
    if (!gguf_get_str(file, key, &value, err)) return false;
    size_t size = value.size < room - 1 ? value.size : room - 1;
    for (size_t i = 0; i < size; i++) {
        char c = value.data[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    out[size] = 0;
    return true;
}

/* GGUF files do not specify which special tokens absorb white space. The names of the model
 * families decide, as in llama.cpp. */
static bool set_strips(struct text_tokenizer *t, struct base_error *err)
{
    char name[256], arch[64];
    if (!read_lower(t->file, "general.name", name, sizeof name, err) ||
        !read_lower(t->file, "general.architecture", arch, sizeof arch, err))
        return false;
    const char *pre = t->pre ? t->pre->name : "";
    const char *left = NULL;
    bool phi3 = false;
    if (contains(pre, "jina-v2-de") || contains(pre, "jina-v2-es") ||
        contains(pre, "jina-v2-code") || contains(arch, "nomic-bert-moe") ||
        contains(arch, "jina-bert-v3")) {
        left = "<mask>";
    } else if (contains(name, "phi-3") || contains(name, "phi3")) {
        phi3 = true;
    } else if (contains(name, "modern-bert")) {
        left = "[MASK]";
    }
    for (uint32_t i = 0; i < t->specials.count; i++) {
        struct gguf_str text = text_token(t, (uint32_t)t->specials.id[i]);
        if (left && gguf_str_is(text, left)) t->specials.strip[i] = TEXT_STRIP_LEFT;
        if (phi3 && !gguf_str_is(text, "<unk>") && !gguf_str_is(text, "<s>") &&
            !gguf_str_is(text, "<|endoftext|>"))
            t->specials.strip[i] = TEXT_STRIP_RIGHT;
    }
    return true;
}

/* Compares by rank: see struct text_specials. */
static int compare_ranks(const void *a, const void *b, void *tokenizer)
{
    const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    const uint64_t x = text_token(tokenizer, (uint32_t)left).size;
    const uint64_t y = text_token(tokenizer, (uint32_t)right).size;
    if (x != y) return x > y ? -1 : 1;
    return left < right ? -1 : left > right;
}

bool text_specials_init(struct text_tokenizer *t, struct base_error *err)
{
    struct text_specials *s = &t->specials;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++) count += is_special(t->kind[i]);
    struct text_key *keys = malloc((count + 1) * sizeof *keys);
    s->id = malloc((count + 1) * sizeof *s->id);
    s->strip = calloc(count + 1, 1);
    bool ok = (keys && s->id && s->strip) ||
              base_fail(err, BASE_NO_MEMORY, "no memory for %u special tokens", count);
    for (uint32_t i = 0; ok && i < t->n_tokens; i++)
        if (is_special(t->kind[i])) s->id[s->count++] = (int32_t)i;
    if (ok) base_os_sort(s->id, s->count, sizeof *s->id, compare_ranks, t);
    for (uint32_t rank = 0; ok && rank < s->count; rank++) {
        const struct gguf_str text = text_token(t, (uint32_t)s->id[rank]);
        keys[rank] = (struct text_key){text.data, (uint32_t)text.size, (int32_t)rank};
    }
    ok = ok && text_trie_init(&s->trie, keys, s->count, err) && text_trie_link(&s->trie, err) &&
         set_strips(t, err);
    free(keys);
    return ok;
}

void text_specials_free(struct text_specials *s)
{
    text_trie_free(&s->trie);
    free(s->id);
    free(s->strip);
}

/* ---- Cutting ---- */

void text_fragments_free(struct text_fragments *f)
{
    free(f->item);
    *f = (struct text_fragments){0};
}

/* Adds a fragment, unless it is empty. */
static bool add(struct text_fragments *f, size_t start, size_t size, int32_t id,
                struct base_error *err)
{
    if (size == 0 && id < 0) return true;
    if (!BASE_LIST_ROOM(f->item, f->count, f->room))
        return base_fail(err, BASE_NO_MEMORY, "no memory for %zu fragments", f->count + 1);
    f->item[f->count++] = (struct text_fragment){start, size, id};
    return true;
}

static bool is_blank(struct gguf_str text)
{
    size_t i = 0;
    while (i < text.size && isspace((unsigned char)text.data[i])) i++;
    return i == text.size;
}

/* Returns whether the file marks the token as a control token. In the tokenizer some of these are
 * user-defined tokens, because they are shown. */
static bool is_control(const struct text_tokenizer *t, int32_t id)
{
    return t->kind[id] == TEXT_TOKEN_CONTROL || t->kind[id] == TEXT_TOKEN_UNKNOWN ||
           (t->kinds && gguf_array_int(t->kinds, (uint64_t)id) == TEXT_TOKEN_CONTROL);
}

/* An offset of the text where at least one token ends; `node` is its longest remaining
 * candidate. */
struct match {
    uint32_t rank; /* that of node's token */
    uint32_t end;
    uint32_t node;     /* index in the trie */
    uint32_t data_end; /* offset past the last byte of data before `end`; 0: none */
};

struct partition {
    const struct text_tokenizer *t;
    const char *text, *own;
    size_t size;
    bool parse_special;
    struct match *match; /* a heap: the lowest rank first, the leftmost of equal ranks */
    size_t count, room;
    bool *is_frame; /* [specials.count]: tokens that data must not form; NULL: all is frame */
    uint8_t *taken; /* [size]: 1 if the byte is part of a chosen token */
    struct text_fragments *out;
    struct base_error *err;
};

/* ---- Finding: one walk of the automaton ---- */

/* Returns the first node, from `node` on along `out`, whose token may occur in this text; 0:
 * none. */
static uint32_t first_usable(const struct partition *p, uint32_t node)
{
    const struct text_specials *s = &p->t->specials;
    if (node && s->trie.node[node].value == TEXT_NO_VALUE) node = s->trie.out[node];
    if (p->parse_special) return node;
    while (node && p->t->kind[s->id[s->trie.node[node].value]] != TEXT_TOKEN_USER)
        node = s->trie.out[node];
    return node;
}

/* Marks the tokens that end here and consist only of the frame's bytes. With a token all its
 * shorter ones are marked, so the walk ends at a marked one and the time is linear. */
static void note_frame(const struct partition *p, const struct match *m)
{
    const struct text_specials *s = &p->t->specials;
    for (uint32_t node = m->node; node; node = first_usable(p, s->trie.out[node])) {
        const uint32_t rank = (uint32_t)s->trie.node[node].value;
        const struct gguf_str token = text_token(p->t, (uint32_t)s->id[rank]);
        if (m->end - token.size < m->data_end || is_control(p->t, s->id[rank])) continue;
        if (p->is_frame[rank]) break;
        p->is_frame[rank] = !is_blank(token);
    }
}

static bool goes_first(const struct match *a, const struct match *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->end < b->end;
}

/* Moves the match at index `at` down to its place in the heap. */
static void sink(struct partition *p, size_t at)
{
    const struct match m = p->match[at];
    for (size_t child; (child = 2 * at + 1) < p->count; at = child) {
        if (child + 1 < p->count && goes_first(&p->match[child + 1], &p->match[child])) child++;
        if (!goes_first(&p->match[child], &m)) break;
        p->match[at] = p->match[child];
    }
    p->match[at] = m;
}

static bool add_match(struct partition *p, const struct match *m)
{
    if (!BASE_LIST_ROOM(p->match, p->count, p->room))
        return base_fail(p->err, BASE_NO_MEMORY, "no memory for %zu matches", p->count + 1);
    p->match[p->count++] = *m;
    return true;
}

static bool find_matches(struct partition *p)
{
    const struct text_trie *trie = &p->t->specials.trie;
    uint32_t node = 0;
    struct match m = {0};
    for (size_t i = 0; i < p->size; i++) {
        const unsigned char byte = (unsigned char)p->text[i];
        uint32_t next;
        if (p->own && !p->own[i]) m.data_end = (uint32_t)i + 1;
        if (i % 4096 == 0 && !base_goes_on(p->err)) return false;
        if (!node && !trie->root[byte]) continue; /* true for most bytes of most texts */
        while (!(next = text_trie_step(trie, node, byte)) && node) node = trie->fail[node];
        node = next;
        m.node = first_usable(p, node);
        if (!m.node) continue;
        m.end = (uint32_t)i + 1;
        m.rank = (uint32_t)trie->node[m.node].value;
        if (p->is_frame) note_frame(p, &m);
        if (!add_match(p, &m)) return false;
    }
    return true;
}

/* ---- Choosing ---- */

/* Returns whether the `size` bytes that end at m->end are free and may become the token. Checking
 * both ends is enough: a chosen token is at least as long, so it covers an end if it covers any of
 * the bytes. */
static bool is_free(const struct partition *p, const struct match *m, uint32_t size)
{
    const int32_t id = p->t->specials.id[m->rank];
    if (p->taken[m->end - size]) return false;
    return !p->is_frame || m->data_end <= m->end - size ||
           !(p->is_frame[m->rank] || is_control(p->t, id));
}

static bool take(struct partition *p, const struct match *m, uint32_t size)
{
    const int32_t id = p->t->specials.id[m->rank];
    const uint8_t strip = p->t->specials.strip[m->rank];
    size_t before = m->end - size, after = m->end;
    if (strip & TEXT_STRIP_LEFT)
        while (before > 0 && !p->taken[before - 1] && isspace((unsigned char)p->text[before - 1]))
            before--;
    if (strip & TEXT_STRIP_RIGHT)
        while (after < p->size && !p->taken[after] && isspace((unsigned char)p->text[after]))
            after++;
    memset(p->taken + before, 1, after - before);
    return add(p->out, before, after - before, id, p->err);
}

static bool choose(struct partition *p)
{
    const struct text_specials *s = &p->t->specials;
    for (size_t i = p->count / 2; i-- > 0;) sink(p, i);
    for (size_t step = 0; p->count; step++) {
        struct match *m = &p->match[0];
        const uint32_t size = (uint32_t)text_token(p->t, (uint32_t)s->id[m->rank]).size;
        if (step % 4096 == 0 && !base_goes_on(p->err)) return false;
        const bool ends_free = !p->taken[m->end - 1];
        const bool taken = ends_free && is_free(p, m, size);
        if (taken && !take(p, m, size)) return false;
        m->node = taken || !ends_free ? 0 : first_usable(p, s->trie.out[m->node]);
        if (m->node) {
            m->rank = (uint32_t)s->trie.node[m->node].value; /* a shorter token that ends there */
        } else {
            *m = p->match[--p->count];
        }
        if (p->count) sink(p, 0);
    }
    return true;
}

static int compare_starts(const void *a, const void *b)
{
    const struct text_fragment *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Adds the text between the tokens. */
static bool fill_gaps(struct partition *p)
{
    const size_t n_tokens = p->out->count;
    struct text_fragments all = {0};
    size_t at = 0;
    bool ok = true;
    if (n_tokens) qsort(p->out->item, n_tokens, sizeof *p->out->item, compare_starts);
    for (size_t i = 0; ok && i < n_tokens; i++) {
        const struct text_fragment f = p->out->item[i];
        ok = add(&all, at, f.start - at, -1, p->err) && add(&all, f.start, f.size, f.id, p->err);
        at = f.start + f.size;
    }
    ok = ok && add(&all, at, p->size - at, -1, p->err);
    text_fragments_free(p->out);
    *p->out = all;
    return ok;
}

bool text_partition(const struct text_tokenizer *t, const char *text, const char *own, size_t size,
                    bool parse_special, struct text_fragments *out, struct base_error *err)
{
    struct partition p = {.t = t,
                          .text = text,
                          .own = own,
                          .size = size,
                          .parse_special = parse_special,
                          .out = out,
                          .err = err};
    out->count = 0;
    if (own) p.is_frame = calloc(t->specials.count + 1, sizeof *p.is_frame);
    bool ok = !own || p.is_frame ||
              base_fail(err, BASE_NO_MEMORY, "no memory for %u special tokens", t->specials.count);
    ok = ok && find_matches(&p);
    if (ok && p.count) {
        p.taken = calloc(size, 1);
        ok = p.taken || base_fail(err, BASE_NO_MEMORY, "no memory for %zu bytes", size);
        ok = ok && choose(&p);
    }
    ok = ok && fill_gaps(&p);
    free(p.match);
    free(p.is_frame);
    free(p.taken);
    return ok;
}
