/* generate/stop.c: stop strings, with one Knuth-Morris-Pratt automaton each.
 *
 * The bytes that are held back are always the longest prefix of a stop string that the text ends
 * with, so that string is their buffer. */
#include "generate/stop.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    char *text;     /* [size] */
    uint32_t *fall; /* [size + 1] fall[n]: size of the longest proper prefix ending text[0..n) */
    size_t size;
    size_t at; /* length of the longest prefix of the string that the text ends with */
};

struct generate_stop {
    struct pattern *pattern; /* [count] */
    size_t count;
    size_t holder; /* index of the pattern with the largest `at`, whose prefix is held back */
    int matched;   /* index, or -1 */
};

static bool pattern_init(struct pattern *p, const char *text, struct base_error *err)
{
    p->size = strlen(text);
    if (p->size == 0) return base_fail(err, BASE_USAGE, "a stop text is empty");
    if (p->size >= UINT32_MAX) return base_fail(err, BASE_USAGE, "a stop text is too long");
    p->text = malloc(p->size);
    p->fall = malloc((p->size + 1) * sizeof *p->fall);
    if (!p->text || !p->fall) return base_fail(err, BASE_NO_MEMORY, "no memory for stop strings");
    memcpy(p->text, text, p->size);
    p->fall[0] = p->fall[1] = 0;
    uint32_t n = 0;
    for (size_t i = 1; i < p->size; i++) {
        while (n > 0 && text[i] != text[n]) n = p->fall[n];
        if (text[i] == text[n]) n++;
        p->fall[i + 1] = n;
    }
    return true;
}

struct generate_stop *generate_stop_new(const char *const *strings, size_t count,
                                        struct base_error *err)
{
    struct generate_stop *s = calloc(1, sizeof *s);
    if (!s) goto no_memory;
    s->matched = -1;
    s->pattern = calloc(count ? count : 1, sizeof *s->pattern);
    if (!s->pattern) goto no_memory;
    for (; s->count < count; s->count++) {
        struct pattern *p = &s->pattern[s->count];
        if (pattern_init(p, strings[s->count], err)) continue;
        free(p->text);
        free(p->fall);
        generate_stop_free(s);
        return NULL;
    }
    return s;

no_memory:
    generate_stop_free(s);
    return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for stop strings"));
}

void generate_stop_free(struct generate_stop *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->count; i++) {
        free(s->pattern[i].text);
        free(s->pattern[i].fall);
    }
    free(s->pattern);
    free(s);
}

void generate_stop_reset(struct generate_stop *s)
{
    for (size_t i = 0; i < s->count; i++) s->pattern[i].at = 0;
    s->holder = 0;
    s->matched = -1;
}

static void pattern_step(struct pattern *p, char byte)
{
    while (p->at > 0 && p->text[p->at] != byte) p->at = p->fall[p->at];
    if (p->text[p->at] == byte) p->at++;
}

/* Reads one byte; true if a string is complete. Releases all bytes that were held back except the
 * new longest prefix (or the match). */
static bool step(struct generate_stop *s, char byte, struct base_buffer *out)
{
    const struct pattern *holder = &s->pattern[s->holder];
    size_t held = holder->at, keep = 0;
    size_t complete = 0; /* length of the longest match */
    for (size_t i = 0; i < s->count; i++) {
        struct pattern *p = &s->pattern[i];
        pattern_step(p, byte);
        if (p->at > keep) {
            keep = p->at;
            s->holder = i;
        }
        if (p->at == p->size && p->size > complete) {
            complete = p->size;
            s->matched = (int)i;
        }
    }
    if (complete > 0) keep = complete;
    size_t release = held + 1 - keep;
    base_buffer_add(out, holder->text, release < held ? release : held);
    if (release > held) base_buffer_add(out, &byte, 1);
    return complete > 0;
}

int generate_stop_feed(struct generate_stop *s, const char *bytes, size_t size,
                       struct base_buffer *out)
{
    if (s->matched >= 0) return s->matched;
    if (s->count == 0) {
        base_buffer_add(out, bytes, size);
        return -1;
    }
    for (size_t i = 0; i < size; i++)
        if (step(s, bytes[i], out)) return s->matched;
    return -1;
}

void generate_stop_end(struct generate_stop *s, struct base_buffer *out)
{
    if (s->matched >= 0 || s->count == 0) return;
    struct pattern *holder = &s->pattern[s->holder];
    base_buffer_add(out, holder->text, holder->at);
    for (size_t i = 0; i < s->count; i++) s->pattern[i].at = 0;
}
