/* sample/chain.c: the list of stages, their order as the user names it, and the ranges of options.
 *
 * The chain contains only the stages that their options switch on. */
#include "sample/chain.h"
#include <errno.h>
#include <float.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* in the default order */
static const struct sample_stage *const stages[] = {
    &sample_stage_penalties, &sample_stage_dry,     &sample_stage_top_n_sigma,
    &sample_stage_top_k,     &sample_stage_typical, &sample_stage_top_p,
    &sample_stage_min_p,     &sample_stage_xtc,     &sample_stage_temperature,
    &sample_stage_adaptive,  &sample_stage_infill};
enum { N_STAGES = sizeof stages / sizeof stages[0] };

static const struct {
    const char *alias, *name;
} aliases[] = {{"temp", "temperature"}, {"typ", "typ_p"},     {"typical", "typ_p"},
               {"typical_p", "typ_p"},  {"nucleus", "top_p"}, {"top_sigma", "top_n_sigma"}};

struct sample_name sample_name(const struct sample_options *o, const char *parameter)
{
    struct sample_name name;
    if (o->name_of)
        o->name_of(parameter, &name);
    else
        snprintf(name.text, sizeof name.text, "%s", parameter);
    return name;
}

/* ---- Order ---- */

/* Compares names without case, - and _: "Top-K", "topk" and "top_k" are one name. */
static bool same_name(const char *word, size_t n, const char *name)
{
    size_t i = 0;
    for (;;) {
        while (i < n && (word[i] == '-' || word[i] == '_')) i++;
        while (*name == '_') name++;
        if (i == n || *name == '\0') return i == n && *name == '\0';
        if ((word[i] | 0x20) != *name) return false;
        i++;
        name++;
    }
}

static int find_stage(const char *word, size_t n)
{
    for (int i = 0; i < N_STAGES; i++)
        if (same_name(word, n, stages[i]->name)) return i;
    for (size_t a = 0; a < sizeof aliases / sizeof aliases[0]; a++)
        if (same_name(word, n, aliases[a].alias))
            return find_stage(aliases[a].name, strlen(aliases[a].name));
    return -1;
}

static bool fail_name(const struct sample_options *o, const char *word, size_t n, const char *what,
                      struct base_error *err)
{
    char known[256] = "";
    for (int i = 0; i < N_STAGES; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, stages[i]->name);
    }
    return base_fail_at(err, BASE_USAGE, sample_name(o, "samplers").text, -1,
                        "'%.*s' %s: the samplers are %s", (int)(n < 40 ? n : 40), word, what,
                        known);
}

/* Reads the *n indices of the user's order into index[]. */
static bool read_order(const struct sample_options *o, int index[N_STAGES], int *n,
                       struct base_error *err)
{
    const char *names = o->samplers;
    *n = 0;
    for (int i = 0; !names && i < N_STAGES; i++)
        if (!stages[i]->only_named) index[(*n)++] = i;
    while (names) {
        names += strspn(names, " ");
        size_t size = strcspn(names, ";,"), used = size;
        while (used > 0 && names[used - 1] == ' ') used--;
        const int found = find_stage(names, used);
        if (found < 0) return fail_name(o, names, used, "is not a sampler", err);
        for (int i = 0; i < *n; i++)
            if (index[i] == found) return fail_name(o, names, used, "is named twice", err);
        index[(*n)++] = found;
        names = names[size] != '\0' ? names + size + 1 : NULL;
    }
    return true;
}

/* Checks that the order contains every stage that an option switches on. */
static bool order_check(const struct sample_options *o, const int *index, int n,
                        struct base_error *err)
{
    bool listed[N_STAGES] = {false}, bounded = false;
    for (int i = 0; i < n; i++) {
        const struct sample_stage *stage = stages[index[i]];
        listed[index[i]] = true;
        if (stage == &sample_stage_top_k && o->top_k > 0 && o->top_k <= 1000) bounded = true;
        if (stage == &sample_stage_infill && !bounded)
            return base_fail_at(err, BASE_USAGE, sample_name(o, "samplers").text, -1,
                                "infill compares candidates pairwise: it needs top_k before it, "
                                "and %s from 1 to 1000",
                                sample_name(o, "top_k").text);
    }
    for (int i = 0; i < N_STAGES; i++) {
        if (stages[i]->usually_on || !stages[i]->active(o)) continue;
        if (!listed[i])
            return base_fail_at(err, BASE_USAGE, sample_name(o, "samplers").text, -1,
                                "does not name %s, which %s switches on", stages[i]->name,
                                sample_name(o, stages[i]->parameter).text);
        if (o->mirostat != 0 && stages[i]->truncates)
            return base_fail_at(err, BASE_USAGE, sample_name(o, "mirostat").text, -1,
                                "replaces %s, which %s switches on", stages[i]->name,
                                sample_name(o, stages[i]->parameter).text);
    }
    return true;
}

bool sample_chain_init(struct sampler *s, uint32_t n_ctx, struct base_error *err)
{
    const struct sample_options *o = &s->options;
    int index[N_STAGES], n;
    if (!read_order(o, index, &n, err)) return false;
    s->n_stages = 0;
    for (int i = 0; i < n; i++) {
        const struct sample_stage *stage = stages[index[i]];
        if (!stage->active(o) || (o->mirostat != 0 && stage->truncates)) continue;
        if (stage == &sample_stage_temperature && o->temp == 0.0f && !(o->dynatemp_range > 0.0f))
            while (s->n_stages > 0 && s->stage[s->n_stages - 1]->keeps_best) s->n_stages--;
        s->stage[s->n_stages++] = stage;
    }
    for (int i = 0; i < s->n_stages; i++)
        if (s->stage[i]->init && !s->stage[i]->init(s, n_ctx))
            return base_fail(err, BASE_NO_MEMORY, "no memory for the sampler %s",
                             s->stage[i]->name);
    return true;
}

void sample_chain_free(struct sampler *s)
{
    for (int i = 0; i < N_STAGES; i++)
        if (stages[i]->free) stages[i]->free(s);
}

/* ---- Parameters ---- */

static const struct parameter {
    const char *name;
    size_t at; /* offset in struct sample_options */
    bool whole;
    double low, high, standard;
} parameters[] = {
/* clang-format off */
#define ROW(m, whole, ...) {#m, offsetof(struct sample_options, m), whole, __VA_ARGS__}
/* clang-format on */
#define WHOLE(member) ROW(member, true, SAMPLE_RANGE_##member)
#define REAL(member)  ROW(member, false, SAMPLE_RANGE_##member)
    REAL(temp),
    REAL(dynatemp_range),
    REAL(dynatemp_exponent),
    WHOLE(top_k),
    REAL(top_p),
    REAL(min_p),
    REAL(typical_p),
    REAL(top_n_sigma),
    REAL(xtc_probability),
    REAL(xtc_threshold),
    REAL(repeat_penalty),
    REAL(frequency_penalty),
    REAL(presence_penalty),
    WHOLE(repeat_last_n),
    REAL(dry_multiplier),
    REAL(dry_base),
    WHOLE(dry_allowed_length),
    WHOLE(dry_last_n),
    WHOLE(mirostat),
    REAL(mirostat_tau),
    REAL(mirostat_eta),
    REAL(adaptive_target),
    REAL(adaptive_decay),
};
enum { N_PARAMETERS = sizeof parameters / sizeof parameters[0] };

struct sample_options sample_options_default(void)
{
    struct sample_options o = {.level = cpu_level_best()};
    for (int i = 0; i < N_PARAMETERS; i++) {
        void *to = (char *)&o + parameters[i].at;
        if (parameters[i].whole)
            *(int64_t *)to = (int64_t)parameters[i].standard;
        else
            *(float *)to = (float)parameters[i].standard;
    }
    return o;
}

/* This form of the comparison is false for NaN. */
/* Returns the row of a name, also of the seed, which has no range. */
static const struct parameter *parameter_of(const char *name, size_t size)
{
    static const struct parameter seed = {
        .name = "seed", .at = offsetof(struct sample_options, seed), .whole = true};
    if (size == strlen(seed.name) && memcmp(name, seed.name, size) == 0) return &seed;
    for (int i = 0; i < N_PARAMETERS; i++)
        if (size == strlen(parameters[i].name) && memcmp(name, parameters[i].name, size) == 0)
            return &parameters[i];
    return NULL;
}

bool sample_options_set(struct sample_options *o, const char *text, size_t size,
                        struct base_error *err)
{
    const char *equals = memchr(text, '=', size);
    const struct parameter *p = equals ? parameter_of(text, (size_t)(equals - text)) : NULL;
    const int shown = (int)(size < 60 ? size : 60);
    char *end;
    if (!p)
        return base_fail(err, BASE_USAGE, "settings: '%.*s' is not NAME=NUMBER of a sampler", shown,
                         text);
    void *member = (char *)o + p->at;
    errno = 0;
    if (p->whole)
        *(int64_t *)member = strtoll(equals + 1, &end, 10);
    else
        *(float *)member = strtof(equals + 1, &end);
    if (end == equals + 1 || end != text + size || errno != 0)
        return base_fail(err, BASE_USAGE, "settings: '%.*s': not such a number", shown, text);
    return true;
}

static bool ranges_check(const struct sample_options *o, struct base_error *err)
{
    for (int i = 0; i < N_PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];
        const void *at = (const char *)o + p->at;
        const bool fits =
            p->whole
                ? (double)*(const int64_t *)at >= p->low && (double)*(const int64_t *)at <= p->high
                : *(const float *)at >= (float)p->low && *(const float *)at <= (float)p->high;
        if (!fits)
            return base_fail_at(err, BASE_USAGE, sample_name(o, p->name).text, -1,
                                "must be a number from %.10g to %.10g", p->low, p->high);
    }
    return true;
}

bool sample_options_check(const struct sample_options *o, struct base_error *err)
{
    int index[N_STAGES], n;
    if (!ranges_check(o, err)) return false;
    for (size_t i = 0; i < o->n_biases; i++)
        if (!(o->bias[i].bias <= FLT_MAX))
            return base_fail_at(err, BASE_USAGE, sample_name(o, "bias").text, -1,
                                "the bias of token %d is not a number", (int)o->bias[i].id);
    for (size_t i = 0; i < o->n_dry_breakers; i++)
        if (o->dry_breaker[i].size == 0 || o->dry_breaker[i].size > SAMPLE_MAX_BREAKER)
            return base_fail_at(err, BASE_USAGE, sample_name(o, "dry_breaker").text, -1,
                                "must have from 1 to %d bytes", (int)SAMPLE_MAX_BREAKER);
    return read_order(o, index, &n, err) && order_check(o, index, n, err);
}
