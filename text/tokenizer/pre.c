/* text/tokenizer/pre.c: compiles and runs the pre-tokenizer patterns. See text/tokenizer/pre.h.
 *
 * PCRE2 runs in UTF mode with Unicode properties, with its JIT if available. Every match has
 * limits. Any result of PCRE2 other than "no match" is an error, so that a pattern that failed
 * never cuts a text. */
#include "text/tokenizer/pre.h"
#include "base/interrupt.h"
#include "base/list.h"
#include "base/utf8.h"
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    MATCH_LIMIT = 200 * 1000 * 1000, /* backtracking; the patterns need about one step per byte */
    HEAP_LIMIT_KIB = 256 * 1024,     /* per match, without JIT */
    JIT_STACK_FIRST = 64 * 1024,
    JIT_STACK_MAX = 8 * 1024 * 1024 /* address space, which takes memory only as far as it is
                                     * used */
};

struct text_splitter {
    const struct text_step *steps;
    pcre2_code *code[TEXT_PRE_MAX_STEPS]; /* NULL if the step is not a pattern */
    bool by_code[TEXT_PRE_MAX_STEPS];     /* the pattern lists characters, without classes */
};

/* ---- Compiling ---- */

/* Writes the pattern with the members of White_Space in place of \s to out[room]: PCRE2's \s also
 * contains U+180E, which is not white space since Unicode 6.3. */
static bool expand_spaces(const char *pattern, char *out, size_t room)
{
    static const char members[] = "\\t-\\r\\x{85}\\p{Z}";
    bool in_class = false;
    size_t n = 0;
    for (const char *p = pattern; *p; p++) {
        char text[40] = {*p};
        if (*p == '\\' && (p[1] == 's' || p[1] == 'S')) {
            const char *open = in_class ? "" : p[1] == 's' ? "[" : "[^";
            snprintf(text, sizeof text, "%s%s%s", open, members, in_class ? "" : "]");
            p++;
        } else if (*p == '\\') {
            text[1] = *++p;
        } else if (*p == '[' && !in_class) {
            in_class = true;
        } else if (*p == ']') {
            in_class = false;
        }
        size_t size = strlen(text);
        if (size >= room - n) return false;
        memcpy(out + n, text, size + 1);
        n += size;
    }
    return true;
}

static bool fail_pcre2(int code, const char *doing, struct base_error *err)
{
    char text[128];
    if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %s a pre-tokenizer pattern", doing);
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text) < 0) text[0] = 0;
    return base_fail(err, BASE_FAILED, "%s a pre-tokenizer pattern: %s (PCRE2 error %d)", doing,
                     text, code);
}

static pcre2_code *compile(const char *pattern, struct base_error *err)
{
    char text[4096];
    if (!expand_spaces(pattern, text, sizeof text))
        return base_null(base_fail(
            err, BASE_FAILED, "a pre-tokenizer pattern is longer than %zu bytes", sizeof text));
    int code;
    PCRE2_SIZE at;
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL | PCRE2_NO_AUTO_CAPTURE;
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (!compiled) {
        fail_pcre2(code, "compiling", err);
        return NULL;
    }
    /* If the JIT fails, the interpreter finds the same matches. */
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    return compiled;
}

struct text_splitter *text_splitter_open(const struct text_step *steps, struct base_error *err)
{
    struct text_splitter *s = calloc(1, sizeof *s);
    if (!s) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for the pre-tokenizer"));
    s->steps = steps;
    for (int i = 0; i < TEXT_PRE_MAX_STEPS && steps[i].kind != TEXT_STEP_END; i++) {
        if (steps[i].kind != TEXT_STEP_REGEX) continue;
        s->code[i] = compile(steps[i].pattern, err);
        s->by_code[i] = !strstr(steps[i].pattern, "\\p{");
        if (!s->code[i]) {
            text_splitter_close(s);
            return NULL;
        }
    }
    return s;
}

void text_splitter_close(struct text_splitter *s)
{
    if (!s) return;
    for (int i = 0; i < TEXT_PRE_MAX_STEPS; i++) pcre2_code_free(s->code[i]);
    free(s);
}

/* ---- Cuts ---- */

struct text_matcher {
    pcre2_match_context *context;
    pcre2_match_data *match;
    pcre2_jit_stack *jit_stack;
};

/* Created only once, because creating the stack takes two system calls, more time than matching a
 * short text. */
static bool open_matcher(struct text_cuts *cuts, struct base_error *err)
{
    if (cuts->matcher) return true;
    struct text_matcher *m = cuts->matcher = calloc(1, sizeof *m);
    if (!m) return base_fail(err, BASE_NO_MEMORY, "no memory to match");
    m->match = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (!m->match || !m->context) {
        text_cuts_free(cuts);
        return base_fail(err, BASE_NO_MEMORY, "no memory to match");
    }
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    /* Without a stack of its own the JIT uses 32 KiB of the caller's, so a failure is not an
     * error. */
    m->jit_stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MAX, NULL);
    if (m->jit_stack) pcre2_jit_stack_assign(m->context, NULL, m->jit_stack);
    return true;
}

void text_cuts_free(struct text_cuts *cuts)
{
    struct text_matcher *m = cuts->matcher;
    if (m) {
        pcre2_match_data_free(m->match);
        pcre2_match_context_free(m->context);
        pcre2_jit_stack_free(m->jit_stack);
    }
    free(m);
    free(cuts->end);
    *cuts = (struct text_cuts){0};
}

/* Adds a cut; one at the previous cut, or at the start, is ignored. */
static bool cut(struct text_cuts *cuts, size_t end, struct base_error *err)
{
    if (end == (cuts->count ? cuts->end[cuts->count - 1] : 0)) return true;
    if (!BASE_LIST_ROOM(cuts->end, cuts->count, cuts->room))
        return base_fail(err, BASE_NO_MEMORY, "no memory for %zu words", cuts->count + 1);
    cuts->end[cuts->count++] = (uint32_t)end;
    return true;
}

/* ---- Steps ---- */

/* The state of one call of text_split. */
struct split_state {
    const struct text_splitter *splitter;
    const char *text;    /* valid UTF-8 */
    const char *classes; /* of the same length, each character replaced by text_pin_unicode */
    struct text_cuts *out;
    struct base_error *err;
};

static bool split_by_regex(struct split_state *r, int step, size_t start, size_t end)
{
    const pcre2_code *code = r->splitter->code[step];
    const struct text_matcher *m = r->out->matcher;
    const char *piece = (r->splitter->by_code[step] ? r->text : r->classes) + start;
    size_t size = end - start, at = 0, jit_size = 0;
    pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &jit_size);
    /* pcre2_jit_match has no options: the text is checked already. */
    const uint32_t options = jit_size ? 0 : PCRE2_NO_UTF_CHECK;
    int (*const match)(const pcre2_code *, PCRE2_SPTR, PCRE2_SIZE, PCRE2_SIZE, uint32_t,
                       pcre2_match_data *, pcre2_match_context *) =
        jit_size ? pcre2_jit_match : pcre2_match;
    while (at < size) {
        if (!base_goes_on(r->err)) return false;
        int found = match(code, (PCRE2_SPTR)piece, size, at, options, m->match, m->context);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) return fail_pcre2(found, "matching", r->err);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->match);
        if (span[1] <= span[0])
            return base_fail(r->err, BASE_FAILED, "a pre-tokenizer pattern matched nothing");
        if (!cut(r->out, start + span[0], r->err) || !cut(r->out, start + span[1], r->err))
            return false;
        at = span[1];
    }
    return cut(r->out, end, r->err);
}

static bool is_digit(enum text_step_kind kind, utf8proc_category_t category)
{
    if (category == UTF8PROC_CATEGORY_ND) return true;
    return kind == TEXT_STEP_DIGITS_LED &&
           (category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO);
}

/* Returns whether \w matches a character: alphabetic ones, marks, decimal digits, connectors, and,
 * as in Oniguruma, the superscripts and fractions of Latin-1. */
static bool is_word(int32_t code, utf8proc_category_t category)
{
    if (category == UTF8PROC_CATEGORY_NO) return code <= 0xff;
    if (category == UTF8PROC_CATEGORY_SO) /* circled and squared letters */
        return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
               (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
           category == UTF8PROC_CATEGORY_PC;
}

/* Cuts the run of `count` digits in text[start..end). `word_follows`: no word boundary is at its
 * end. */
static bool cut_digits(struct split_state *r, enum text_step_kind kind, size_t start, size_t end,
                       size_t count, bool word_follows)
{
    if (kind == TEXT_STEP_DIGITS_WORD && word_follows) return true;
    bool cuts_start = kind == TEXT_STEP_DIGITS_WORD;
    bool cuts_end = kind != TEXT_STEP_DIGITS_AHEAD;
    if (cuts_start && !cut(r->out, start, r->err)) return false;
    for (size_t at = start, left = count; left > 0; left--) {
        bool at_start = left == count;
        bool led = at_start && kind != TEXT_STEP_DIGITS_AHEAD;
        if (left % 3 == 0 && !led && !cut(r->out, at, r->err)) return false;
        int32_t code;
        at += base_utf8_decode(r->classes + at, end - at, &code);
    }
    return !cuts_end || cut(r->out, end, r->err);
}

static bool split_by_digits(struct split_state *r, enum text_step_kind kind, size_t start,
                            size_t end)
{
    size_t run_start = start, count = 0;
    for (size_t at = start; at < end;) {
        int32_t code;
        size_t used = base_utf8_decode(r->classes + at, end - at, &code);
        utf8proc_category_t category = utf8proc_category(code);
        if (is_digit(kind, category)) {
            if (count++ == 0) run_start = at;
        } else {
            if (count && !cut_digits(r, kind, run_start, at, count, is_word(code, category)))
                return false;
            count = 0;
        }
        at += used;
    }
    if (count && !cut_digits(r, kind, run_start, end, count, false)) return false;
    return cut(r->out, end, r->err);
}

/* Applies every step to the valid text r->text[0..size). */
static bool run_steps(struct split_state *r, size_t size, struct text_cuts *cuts)
{
    struct text_cuts next = {.matcher = cuts->matcher}; /* both lists use it */
    cuts->count = 0;
    bool ok = cut(cuts, size, r->err);
    r->out = &next;
    for (int i = 0; ok && i < TEXT_PRE_MAX_STEPS && r->splitter->steps[i].kind != TEXT_STEP_END;
         i++) {
        next.count = 0;
        for (size_t k = 0, start = 0; ok && k < cuts->count; start = cuts->end[k++])
            ok = r->splitter->code[i]
                     ? split_by_regex(r, i, start, cuts->end[k])
                     : split_by_digits(r, r->splitter->steps[i].kind, start, cuts->end[k]);
        struct text_cuts swap = *cuts;
        *cuts = next;
        next = swap;
    }
    free(next.end);
    return ok;
}

/* ---- Invalid bytes, and characters of other versions of Unicode ---- */

/* Returns the number of invalid bytes; *pinned: text_pin_unicode changes the text. */
static size_t count_invalid(const char *text, size_t size, bool *pinned)
{
    size_t count = 0;
    *pinned = false;
    for (size_t at = 0; at < size;) {
        int32_t code;
        at += base_utf8_decode(text + at, size - at, &code);
        count += code < 0;
        *pinned |= code >= 0x800 && text_pin_unicode(code) != code;
    }
    return count;
}

/* Returns a copy of valid_size bytes with U+FFFD for every invalid byte; `pin`: with the characters
 * of text_pin_unicode. The caller frees it; NULL is an error. */
static char *replace_characters(const char *text, size_t size, size_t valid_size, bool pin,
                                struct base_error *err)
{
    char *const copy = malloc(valid_size), *out = copy;
    if (!copy) base_fail(err, BASE_NO_MEMORY, "no memory for a text of %zu bytes", size);
    for (size_t at = 0; copy && at < size;) {
        int32_t code;
        at += base_utf8_decode(text + at, size - at, &code);
        if (code < 0) code = 0xfffd;
        out += base_utf8_encode(pin ? text_pin_unicode(code) : code, out);
    }
    return copy;
}

/* Converts the cuts of the replaced text to offsets in the original text. */
static void restore_cuts(const char *text, size_t size, struct text_cuts *cuts)
{
    size_t replaced = 0, k = 0;
    for (size_t at = 0; at < size;) {
        int32_t code;
        size_t used = base_utf8_decode(text + at, size - at, &code);
        replaced += code < 0 ? 3 : used;
        at += used;
        if (k < cuts->count && cuts->end[k] == replaced) cuts->end[k++] = (uint32_t)at;
    }
}

bool text_split(const struct text_splitter *s, const char *text, size_t size,
                struct text_cuts *cuts, struct base_error *err)
{
    struct split_state r = {.splitter = s, .text = text, .classes = text, .err = err};
    bool pinned;
    const size_t invalid = count_invalid(text, size, &pinned), valid_size = size + 2 * invalid;
    char *valid = NULL, *classes = NULL;
    bool ok = false;
    if (valid_size > UINT32_MAX) {
        base_fail(err, BASE_TOO_LONG, "a text of %zu bytes is too long to cut into words", size);
        goto done;
    }
    if (invalid) {
        r.text = r.classes = valid = replace_characters(text, size, valid_size, false, err);
        if (!valid) goto done;
    }
    if (pinned) {
        r.classes = classes = replace_characters(text, size, valid_size, true, err);
        if (!classes) goto done;
    }
    ok = open_matcher(cuts, err) && run_steps(&r, valid_size, cuts);
    if (ok && invalid) restore_cuts(text, size, cuts);
done:
    free(valid);
    free(classes);
    return ok;
}
