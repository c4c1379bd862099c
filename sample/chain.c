/* sample/chain.c: the table of stages, their order from the user's names, and what options may be.
 *
 * A stage whose option switches it off is not in the chain at all. */
#include "sample/chain.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- When a stage has work ---- */

static bool has_penalties(const struct sample_options *o)
{
    return o->repeat_last_n != 0 && (o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f ||
                                     o->presence_penalty != 0.0f);
}
static bool has_dry(const struct sample_options *o)
{
    return o->dry_multiplier > 0.0f && o->dry_last_n != 0;
}
static bool has_top_n_sigma(const struct sample_options *o)
{
    return o->top_n_sigma > 0.0f;
}
static bool has_top_k(const struct sample_options *o)
{
    return o->top_k > 0;
}
static bool has_typical(const struct sample_options *o)
{
    return o->typical_p < 1.0f;
}
static bool has_top_p(const struct sample_options *o)
{
    return o->top_p < 1.0f;
}
static bool has_min_p(const struct sample_options *o)
{
    return o->min_p > 0.0f;
}
static bool has_xtc(const struct sample_options *o)
{
    return o->xtc_probability > 0.0f && o->xtc_threshold <= 0.5f;
}
static bool has_temperature(const struct sample_options *o)
{
    return o->temp != 1.0f || o->dynatemp_range > 0.0f;
}
static bool has_infill(const struct sample_options *o)
{
    return o->samplers != NULL; /* being named is its switch */
}
static bool has_adaptive(const struct sample_options *o)
{
    return o->adaptive_target >= 0.0f;
}

/* In the order that acts when none is given. adaptive_p has no function: it takes the draw's place,
 * wherever it is named. */
static const struct sample_stage stages[] = {
    {"penalties", "a penalty", has_penalties, sample_apply_penalties, false, true, false},
    {"dry", "--dry-multiplier", has_dry, sample_apply_dry, false, true, false},
    {"top_n_sigma", "--top-n-sigma", has_top_n_sigma, sample_apply_top_n_sigma, true, true, false},
    {"top_k", "--top-k", has_top_k, sample_apply_top_k, true, true, true},
    {"typ_p", "--typical", has_typical, sample_apply_typical, true, true, false},
    {"top_p", "--top-p", has_top_p, sample_apply_top_p, true, true, true},
    {"min_p", "--min-p", has_min_p, sample_apply_min_p, true, true, true},
    {"xtc", "--xtc-probability", has_xtc, sample_apply_xtc, true, true, false},
    {"temperature", "--temp", has_temperature, sample_apply_temperature, false, true, true},
    {"adaptive_p", "--adaptive-target", has_adaptive, NULL, true, true, false},
    {"infill", "--samplers", has_infill, sample_apply_infill, true, false, true},
};
enum { N_STAGES = sizeof stages / sizeof stages[0] };

static const struct {
    const char *alias, *name;
} aliases[] = {{"temp", "temperature"}, {"typ", "typ_p"},     {"typical", "typ_p"},
               {"typical_p", "typ_p"},  {"nucleus", "top_p"}, {"top_sigma", "top_n_sigma"}};

/* ---- Order ---- */

/* Names are compared without case, - and _: "Top-K", "topk" and "top_k" are one. */
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
        if (same_name(word, n, stages[i].name)) return i;
    for (size_t a = 0; a < sizeof aliases / sizeof aliases[0]; a++)
        if (same_name(word, n, aliases[a].alias))
            return find_stage(aliases[a].name, strlen(aliases[a].name));
    return -1;
}

static bool fail_name(const char *word, size_t n, const char *what, struct base_error *err)
{
    char known[256] = "";
    for (int i = 0; i < N_STAGES; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, stages[i].name);
    }
    return base_fail_at(err, BASE_USAGE, "--samplers", -1, "'%.*s' %s: the samplers are %s",
                        (int)(n < 40 ? n : 40), word, what, known);
}

/* Reads the order into index[]; *n of them. */
static bool read_order(const char *names, int index[N_STAGES], int *n, struct base_error *err)
{
    *n = 0;
    for (int i = 0; !names && i < N_STAGES; i++)
        if (stages[i].on_default) index[(*n)++] = i;
    while (names) {
        names += strspn(names, " ");
        size_t size = strcspn(names, ";,"), used = size;
        while (used > 0 && names[used - 1] == ' ') used--;
        const int found = find_stage(names, used);
        if (found < 0) return fail_name(names, used, "is no sampler", err);
        for (int i = 0; i < *n; i++)
            if (index[i] == found) return fail_name(names, used, "is named twice", err);
        index[(*n)++] = found;
        names = names[size] != '\0' ? names + size + 1 : NULL;
    }
    return true;
}

/* What is switched on by its option must be able to act. */
static bool order_check(const struct sample_options *o, const int *index, int n,
                        struct base_error *err)
{
    bool listed[N_STAGES] = {false}, bounded = false;
    for (int i = 0; i < n; i++) {
        const struct sample_stage *stage = &stages[index[i]];
        listed[index[i]] = true;
        if (stage->apply == sample_apply_top_k && has_top_k(o) && o->top_k <= 1000) bounded = true;
        if (stage->apply != sample_apply_infill) continue;
        if (!bounded)
            return base_fail_at(err, BASE_USAGE, "--samplers", -1,
                                "infill compares candidates pairwise: it needs top_k before it, "
                                "and --top-k from 1 to 1000");
    }
    for (int i = 0; i < N_STAGES; i++) {
        if (stages[i].usually_on || !stages[i].active(o)) continue;
        if (!listed[i])
            return base_fail_at(err, BASE_USAGE, "--samplers", -1,
                                "does not name %s, which %s switches on", stages[i].name,
                                stages[i].option);
        if (o->mirostat != 0 && stages[i].truncates)
            return base_fail_at(err, BASE_USAGE, "--mirostat", -1,
                                "takes the place of %s, which %s switches on", stages[i].name,
                                stages[i].option);
    }
    return true;
}

/* Temperature 0 takes the best candidate, which these rules keep. */
static void skip_before_greedy(struct sampler *s)
{
    while (s->n_stages > 0) {
        const struct sample_stage *stage = s->stage[s->n_stages - 1];
        if (stage->apply != sample_apply_top_k && stage->apply != sample_apply_top_p &&
            stage->apply != sample_apply_min_p && stage->apply != sample_apply_top_n_sigma)
            return;
        s->n_stages--;
    }
}

bool sample_chain_init(struct sampler *s, struct base_error *err)
{
    int index[N_STAGES], n;
    if (!read_order(s->options.samplers, index, &n, err)) return false;
    s->n_stages = 0;
    for (int i = 0; i < n; i++) {
        const struct sample_stage *stage = &stages[index[i]];
        if (!stage->apply || !stage->active(&s->options)) continue;
        if (s->options.mirostat != 0 && stage->truncates) continue;
        if (stage->apply == sample_apply_temperature && s->options.temp == 0.0f &&
            !(s->options.dynatemp_range > 0.0f))
            skip_before_greedy(s);
        s->stage[s->n_stages++] = stage;
    }
    return true;
}

/* ---- Ranges ---- */

struct range {
    const char *option;
    float value, low, high;
};

/* Written so that NaN fails. */
static bool ranges_check(const struct sample_options *o, struct base_error *err)
{
    const struct range ranges[] = {
        {"--temp", o->temp, 0, FLT_MAX},
        {"--dynatemp-range", o->dynatemp_range, 0, FLT_MAX},
        {"--dynatemp-exp", o->dynatemp_exponent, 0, 1000},
        {"--top-k", (float)o->top_k, 0, FLT_MAX},
        {"--top-p", o->top_p, 0, 1},
        {"--min-p", o->min_p, 0, 1},
        {"--typical", o->typical_p, 0, 1},
        {"--top-n-sigma", o->top_n_sigma, -1, FLT_MAX},
        {"--xtc-probability", o->xtc_probability, 0, 1},
        {"--xtc-threshold", o->xtc_threshold, 0, 1},
        {"--repeat-penalty", o->repeat_penalty, 1e-3f, 1e3f},
        {"--frequency-penalty", o->frequency_penalty, -1e6f, 1e6f},
        {"--presence-penalty", o->presence_penalty, -1e6f, 1e6f},
        {"--repeat-last-n", (float)o->repeat_last_n, -1, FLT_MAX},
        {"--dry-multiplier", o->dry_multiplier, 0, FLT_MAX},
        {"--dry-base", o->dry_base, 1, FLT_MAX},
        {"--dry-allowed-length", (float)o->dry_allowed_length, 1, FLT_MAX},
        {"--dry-penalty-last-n", (float)o->dry_last_n, -1, FLT_MAX},
        {"--mirostat", (float)o->mirostat, 0, 2},
        {"--mirostat-ent", o->mirostat_tau, 0, 1000},
        {"--mirostat-lr", o->mirostat_eta, 0, 1000},
        {"--adaptive-target", o->adaptive_target, -1, 1},
        {"--adaptive-decay", o->adaptive_decay, 0, 0.99f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const struct range *r = &ranges[i];
        if (r->value >= r->low && r->value <= r->high) continue;
        if (r->high == FLT_MAX)
            return base_fail_at(err, BASE_USAGE, r->option, -1, "must be a number from %g on",
                                (double)r->low);
        return base_fail_at(err, BASE_USAGE, r->option, -1, "must be a number from %g to %g",
                            (double)r->low, (double)r->high);
    }
    return true;
}

bool sample_options_check(const struct sample_options *o, struct base_error *err)
{
    int index[N_STAGES], n;
    if (!ranges_check(o, err)) return false;
    for (size_t i = 0; i < o->n_biases; i++)
        if (!(o->bias[i].bias <= FLT_MAX))
            return base_fail_at(err, BASE_USAGE, "--logit-bias", -1,
                                "the bias of token %d is not a number", (int)o->bias[i].id);
    for (size_t i = 0; i < o->n_dry_breakers; i++)
        if (o->dry_breaker[i].size == 0 || o->dry_breaker[i].size > SAMPLE_MAX_BREAKER)
            return base_fail_at(err, BASE_USAGE, "--dry-sequence-breaker", -1,
                                "must have from 1 to %d bytes", (int)SAMPLE_MAX_BREAKER);
    return read_order(o->samplers, index, &n, err) && order_check(o, index, n, err);
}
