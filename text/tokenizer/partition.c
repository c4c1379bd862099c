/* text/tokenizer/partition.c: cutting special tokens out of a text. See text/tokenizer/vocab.h.
 *
 * The rule (that of llama.cpp and of the files made for it): the longest token first, each token
 * leftmost first, in what the ones before it have left. One walk over the text finds out which
 * tokens occur at all; most texts hold none, and the cutting is left out. */
#include "text/tokenizer/vocab.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which tokens ---- */

static bool is_special(enum text_token_kind kind)
{
    return kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_USER || kind == TEXT_TOKEN_UNKNOWN;
}

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* A string value in lower case, cut to out[room]. */
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

static bool equals(struct gguf_str text, const char *word)
{
    return text.size == strlen(word) && !memcmp(text.data, word, text.size);
}

/* GGUF files do not say which special tokens take white space with them; these model families are
 * known by their names, as in llama.cpp. */
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
    for (uint32_t i = 0; i < t->specials.index.count; i++) {
        struct gguf_str text = text_token(t, (uint32_t)t->specials.index.id[i]);
        if (left && equals(text, left)) t->specials.strip[i] = TEXT_STRIP_LEFT;
        if (phi3 && !equals(text, "<unk>") && !equals(text, "<s>") &&
            !equals(text, "<|endoftext|>"))
            t->specials.strip[i] = TEXT_STRIP_RIGHT;
    }
    return true;
}

static int compare_length(const void *a, const void *b, void *tokenizer)
{
    const struct text_tokenizer *t = tokenizer;
    int32_t left = t->specials.index.id[*(const uint32_t *)a];
    int32_t right = t->specials.index.id[*(const uint32_t *)b];
    uint64_t x = text_token(t, (uint32_t)left).size, y = text_token(t, (uint32_t)right).size;
    if (x != y) return x > y ? -1 : 1;
    return left < right ? -1 : left > right;
}

bool text_specials_init(struct text_tokenizer *t, struct base_error *err)
{
    struct text_specials *s = &t->specials;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++) count += is_special(t->kind[i]);
    int32_t *ids = malloc((count + 1) * sizeof *ids);
    s->order = malloc((count + 1) * sizeof *s->order);
    s->strip = calloc(count + 1, 1);
    if (!ids || !s->order || !s->strip) {
        free(ids);
        return base_fail(err, BASE_NO_MEMORY, "no memory for %u special tokens", count);
    }
    count = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++)
        if (is_special(t->kind[i])) ids[count++] = (int32_t)i;
    text_prefix_init(&s->index, t, ids, count);
    for (uint32_t i = 0; i < s->index.count; i++) s->order[i] = i;
    qsort_r(s->order, s->index.count, sizeof *s->order, compare_length, t);
    return set_strips(t, err);
}

void text_specials_free(struct text_specials *s)
{
    text_prefix_free(&s->index);
    free(s->order);
    free(s->strip);
}

/* ---- Cutting ---- */

void text_fragments_free(struct text_fragments *f)
{
    free(f->item);
    *f = (struct text_fragments){0};
}

/* Text of no bytes is no fragment. */
static bool add(struct text_fragments *f, size_t start, size_t size, int32_t id,
                struct base_error *err)
{
    if (size == 0 && id < 0) return true;
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 8;
        struct text_fragment *grown = realloc(f->item, room * sizeof *grown);
        if (!grown) return base_fail(err, BASE_NO_MEMORY, "no memory for %zu fragments", room);
        f->item = grown;
        f->room = room;
    }
    f->item[f->count++] = (struct text_fragment){start, size, id};
    return true;
}

/* What is known of the token at a place of the index. */
enum { PRESENT = 1, FRAME = 2, LONG = 4, LISTED = 8 };

/* Bytes that a walk goes down from each place of the text: what a token has beyond them is searched
 * for, token by token, so that the work is bounded by the text and not by text times token. */
enum { MAX_WALK = 64 };

static bool is_all_own(const char *own, size_t size)
{
    return !own || !memchr(own, 0, size);
}

static bool is_blank(struct gguf_str text)
{
    size_t i = 0;
    while (i < text.size && isspace((unsigned char)text.data[i])) i++;
    return i == text.size;
}

/* Whether the file itself calls it a control token: some that are shown count as user-defined. */
static bool is_control(const struct text_tokenizer *t, int32_t id)
{
    return t->kind[id] == TEXT_TOKEN_CONTROL || t->kind[id] == TEXT_TOKEN_UNKNOWN ||
           (t->kinds && gguf_array_int(t->kinds, (uint64_t)id) == TEXT_TOKEN_CONTROL);
}

/* A token found in own[size]: one that data may not make? */
static bool is_frame(const struct text_tokenizer *t, int32_t id, const char *own, size_t size)
{
    return is_control(t, id) || (is_all_own(own, size) && !is_blank(text_token(t, (uint32_t)id)));
}

/* The next place of the token in text[at..end) that may become it, or NULL. own NULL: any may. */
static const char *find_token(struct gguf_str token, const char *text, const char *own, size_t at,
                              size_t end)
{
    for (;;) {
        const char *found = memmem(text + at, end - at, token.data, token.size);
        if (!found || !own) return found;
        at = (size_t)(found - text);
        const char *data = memrchr(own + at, 0, token.size);
        if (!data) return found;
        at = (size_t)(data - own) + 1; /* a token that begins before it holds the same byte */
    }
}

/* Which of the tokens longer than MAX_WALK occur, among those whose beginning does. */
static bool mark_long(const struct text_tokenizer *t, const char *text, const char *own,
                      size_t size, uint8_t *place_is, bool *any, struct base_error *err)
{
    const struct text_prefix_index *index = &t->specials.index;
    for (uint32_t place = 0; place < index->count; place++) {
        if (!(place_is[place] & LONG)) continue;
        const int32_t id = index->id[place];
        const struct gguf_str token = text_token(t, (uint32_t)id);
        if (!base_goes_on(err)) return false;
        if (!find_token(token, text, NULL, 0, size)) continue;
        place_is[place] |= PRESENT;
        *any = true;
        if (own &&
            (is_control(t, id) || (!is_blank(token) && find_token(token, text, own, 0, size))))
            place_is[place] |= FRAME;
    }
    return true;
}

/* Marks the places in the index of the tokens that occur in the text; *any: whether one does. */
static bool mark_present(const struct text_tokenizer *t, const char *text, const char *own,
                         size_t size, bool parse_special, uint8_t *place_is, bool *any,
                         struct base_error *err)
{
    const struct text_prefix_index *index = &t->specials.index;
    *any = false;
    for (size_t i = 0; i < size; i++) {
        struct text_prefix_walk walk;
        bool more = text_prefix_begin(index, text[i], &walk);
        for (size_t k = i + 1; more; k++) {
            int64_t place = text_prefix_found(index, &walk);
            const int32_t id = place >= 0 ? index->id[place] : -1;
            if (id >= 0 && (parse_special || t->kind[id] == TEXT_TOKEN_USER)) {
                place_is[place] |= PRESENT;
                if (own && is_frame(t, id, own + i, k - i)) place_is[place] |= FRAME;
                *any = true;
            }
            more = k < size && k - i < MAX_WALK && text_prefix_step(index, text[k], &walk);
        }
        if (walk.depth < MAX_WALK || walk.low >= walk.high || place_is[walk.low] & LISTED) continue;
        place_is[walk.low] |= LISTED; /* all that begin so are looked at once */
        for (uint32_t place = walk.low; place < walk.high; place++) {
            const int32_t id = index->id[place];
            if (text_token(t, (uint32_t)id).size > MAX_WALK &&
                (parse_special || t->kind[id] == TEXT_TOKEN_USER))
                place_is[place] |= LONG;
        }
    }
    return mark_long(t, text, own, size, place_is, any, err);
}

/* One text fragment, cut wherever the token at `place` of the index stands. */
static bool cut_fragment(const struct text_tokenizer *t, const char *text, const char *own,
                         uint32_t place, struct text_fragment from, struct text_fragments *out,
                         struct base_error *err)
{
    int32_t id = t->specials.index.id[place];
    uint8_t strip = t->specials.strip[place];
    struct gguf_str token = text_token(t, (uint32_t)id);
    size_t at = from.start, end = from.start + from.size;
    for (;;) {
        const char *found = find_token(token, text, own, at, end);
        if (!found) return add(out, at, end - at, -1, err);
        size_t before = (size_t)(found - text), after = before + token.size;
        if (strip & TEXT_STRIP_LEFT)
            while (before > at && isspace((unsigned char)text[before - 1])) before--;
        if (strip & TEXT_STRIP_RIGHT)
            while (after < end && isspace((unsigned char)text[after])) after++;
        if (!add(out, at, before - at, -1, err) || !add(out, before, after - before, id, err))
            return false;
        at = after;
    }
}

bool text_partition(const struct text_tokenizer *t, const char *text, const char *own, size_t size,
                    bool parse_special, struct text_fragments *out, struct base_error *err)
{
    const struct text_specials *s = &t->specials;
    struct text_fragments next = {0};
    uint8_t *place_is = calloc(s->index.count + 1, 1);
    bool ok = false;
    out->count = 0;
    if (!place_is) {
        base_fail(err, BASE_NO_MEMORY, "no memory for the special tokens");
        goto done;
    }
    if (!add(out, 0, size, -1, err)) goto done;
    bool any;
    if (!mark_present(t, text, own, size, parse_special, place_is, &any, err)) goto done;
    if (!any) {
        ok = true;
        goto done;
    }
    for (uint32_t i = 0; i < s->index.count; i++) {
        uint32_t place = s->order[i];
        if (!(place_is[place] & PRESENT)) continue;
        const char *marks = place_is[place] & FRAME ? own : NULL;
        next.count = 0;
        for (size_t k = 0; k < out->count; k++) {
            struct text_fragment from = out->item[k];
            ok = from.id >= 0 ? add(&next, from.start, from.size, from.id, err)
                              : cut_fragment(t, text, marks, place, from, &next, err);
            if (!ok) goto done;
        }
        struct text_fragments swap = *out;
        *out = next;
        next = swap;
    }
    ok = true;
done:
    text_fragments_free(&next);
    free(place_is);
    return ok;
}
