/* cli/cmd/quantize_target.c: types by measured errors. See cli/cmd/quantize_target.h; the reasons
 * are in docs/quantization.md. */
#include "cli/cmd/quantize_target.h"
#include "base/size.h"
#include "cli/cmd/quantize_error.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The choice ---- */

/* A better type for a unit whose type is the one before it in the unit's list. */
struct step {
    double gain; /* reduction of the error per byte */
    uint64_t bytes;
    uint32_t unit;
    uint8_t at; /* the index of its type in the unit's list */
};

/* A unit's candidates from the smallest one on, so that each reduces the error per byte less than
 * the one before it. */
struct type_steps {
    uint8_t type[CLI_TARGET_TYPES];
    int n;
};

struct type_choice {
    struct cli_target_unit *unit;
    size_t n, n_steps;
    struct type_steps *list; /* [n] */
    struct step *step;       /* [n_steps], the largest gain first */
    uint8_t *at;             /* [n]: indices in the lists */
    uint64_t limit;
};

static double gain_of(const struct cli_target_unit *u, int from, int to)
{
    return (u->error[from] - u->error[to]) / (double)(u->bytes[to] - u->bytes[from]);
}

static bool is_before(const struct cli_target_unit *u, int a, int b)
{
    if (u->bytes[a] != u->bytes[b]) return u->bytes[a] < u->bytes[b];
    return u->error[a] != u->error[b] ? u->error[a] < u->error[b] : a < b;
}

/* The lower convex hull of the unit's candidates. */
static void set_list(const struct cli_target_unit *u, struct type_steps *list)
{
    int sorted[CLI_TARGET_TYPES], n = 0;
    for (int t = 0; t < CLI_TARGET_TYPES; t++) {
        if (u->bytes[t] == 0) continue;
        int i = n++;
        for (; i > 0 && is_before(u, t, sorted[i - 1]); i--) sorted[i] = sorted[i - 1];
        sorted[i] = t;
    }
    for (int i = 0; i < n; i++) {
        const int t = sorted[i];
        uint8_t *type = list->type;
        if (list->n && u->error[t] >= u->error[type[list->n - 1]]) continue;
        while (list->n > 1 &&
               gain_of(u, type[list->n - 1], t) >= gain_of(u, type[list->n - 2], type[list->n - 1]))
            list->n--;
        type[list->n++] = (uint8_t)t;
    }
}

static int by_gain(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static void set_steps(struct type_choice *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct cli_target_unit *u = &c->unit[i];
        const uint8_t *type = c->list[i].type;
        for (int k = 1; k < c->list[i].n; k++)
            c->step[c->n_steps++] =
                (struct step){gain_of(u, type[k - 1], type[k]),
                              u->bytes[type[k]] - u->bytes[type[k - 1]], (uint32_t)i, (uint8_t)k};
    }
    qsort(c->step, c->n_steps, sizeof *c->step, by_gain);
}

/* Sets c->at: from the smallest types of all units but `fixed`, which has the type, every step in
 * order that fits. Returns the error; infinity if the smallest types do not fit. *bytes: their sum.
 */
static double fill(struct type_choice *c, size_t fixed, int type, uint64_t *bytes)
{
    double error = 0;
    *bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->at[i] = 0;
        *bytes += c->unit[i].bytes[i == fixed ? type : c->list[i].type[0]];
    }
    if (*bytes > c->limit) return INFINITY;
    for (size_t k = 0; k < c->n_steps; k++) {
        const struct step *s = &c->step[k];
        if (s->unit == fixed || c->at[s->unit] != s->at - 1 || s->bytes > c->limit - *bytes)
            continue;
        c->at[s->unit] = s->at;
        *bytes += s->bytes;
    }
    for (size_t i = 0; i < c->n; i++)
        error += c->unit[i].error[i == fixed ? type : c->list[i].type[c->at[i]]];
    return error;
}

/* Steps of the largest unit may leave out more bytes than all others need, so each of its types is
 * tried. */
static uint64_t choose(struct type_choice *c)
{
    size_t largest = 0;
    uint64_t bytes, most = 0, sum = 0;
    double least = INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        const struct cli_target_unit *u = &c->unit[i];
        set_list(u, &c->list[i]);
        const uint64_t size = u->bytes[c->list[i].type[c->list[i].n - 1]];
        if (size > most) most = size, largest = i;
        sum += u->bytes[c->unit[i].chosen = c->list[i].type[0]];
    }
    set_steps(c);
    for (int t = 0; c->n && t < CLI_TARGET_TYPES; t++) {
        if (c->unit[largest].bytes[t] == 0) continue;
        const double error = fill(c, largest, t, &bytes);
        if (error > least || (error == least && bytes >= sum) || error == INFINITY) continue;
        least = error;
        sum = bytes;
        for (size_t i = 0; i < c->n; i++)
            c->unit[i].chosen = i == largest ? t : c->list[i].type[c->at[i]];
    }
    return sum;
}

uint64_t cli_target_choose(struct cli_target_unit *unit, size_t n, uint64_t limit,
                           struct base_error *err)
{
    struct type_choice c = {.unit = unit, .n = n, .limit = limit};
    uint64_t sum = 0;
    c.list = calloc(n + 1, sizeof *c.list);
    c.step = calloc(n * CLI_TARGET_TYPES + 1, sizeof *c.step);
    c.at = calloc(n + 1, sizeof *c.at);
    if (c.list && c.step && c.at)
        sum = choose(&c);
    else
        base_fail(err, BASE_NO_MEMORY, "not enough memory to choose types");
    free(c.list);
    free(c.step);
    free(c.at);
    return sum;
}

/* ---- Candidates of a model ---- */

/* Candidates besides the type that a tensor has: what llama.cpp reads, too, without those that
 * others of their size surpass. Products with grids take longer, so that their errors count more.
 */
static const struct {
    enum quant_id id;
    double factor;
} candidates[CLI_TARGET_TYPES] = {
    [1] = {QUANT_F16, 1}, {QUANT_Q8_0, 1},    {QUANT_Q6_K, 1},    {QUANT_Q5_1, 1},
    {QUANT_Q5_K, 1},      {QUANT_Q5_0, 1},    {QUANT_Q4_1, 1},    {QUANT_Q4_K, 1},
    {QUANT_IQ4_NL, 1},    {QUANT_IQ4_XS, 1},  {QUANT_Q3_K, 1},    {QUANT_IQ3_S, 1.1},
    {QUANT_IQ3_XXS, 1.1}, {QUANT_Q2_K, 1},    {QUANT_IQ2_S, 1.1}, {QUANT_IQ2_XS, 1.1},
    {QUANT_IQ2_XXS, 1.1}, {QUANT_IQ1_M, 1.1}, {QUANT_IQ1_S, 1.1}, {QUANT_TQ2_0, 1},
    {QUANT_TQ1_0, 1},
};

/* The KL divergence that a relative error of all matrices of a role causes, one of each layer
 * together, as measured on two models (docs/quantization.md): of errors that are weighted by
 * importance, and of those that are not, because the matrix has no entry or there is none. */
static const struct {
    double weighted, plain;
} sensitivity[CLI_ROLES] = {
    {10, 10},   /* OUTPUT */
    {0.6, 0.6}, /* EMBEDDING */
    {0.7, 1.8}, /* QUERY */
    {0.7, 1.5}, /* KEY */
    {2.6, 7},   /* VALUE */
    {2, 2.5},   /* ATTENTION_OUTPUT */
    {3.2, 4.5}, /* UP */
    {2, 2.8},   /* GATE */
    {4, 9.5},   /* DOWN */
    {3, 5},     /* OTHER */
};

/* Activations are rounded, too, with the codes of 32 or 256 elements in one scale: the relative
 * error of their squares. */
static double error_of_activations(const struct quant_type *type)
{
    const int len = type->act ? type->act->block_len : 0;
    return len == 256 ? 2e-4 : len == 32 ? 5e-5 : 0;
}

/* Returns what a relative error of tensor i adds to that of the model, and so does the rounding of
 * its input. */
static double error_in_model(const struct cli_target *target, uint64_t i, double error,
                             const struct quant_type *type)
{
    const struct cli_quantize_plan *plan = target->plan;
    const unsigned role = cli_quantize_plan_role(plan, i);
    const bool is_weighted =
        cli_imatrix_find(target->imatrix, gguf_tensor_at(plan->file, i)->name) != NULL;
    const double weighted = sensitivity[__builtin_ctz(role)].weighted,
                 plain = sensitivity[__builtin_ctz(role)].plain,
                 sum = (is_weighted ? weighted : plain) * error +
                       weighted * error_of_activations(type);
    return role & (CLI_ROLE_OUTPUT | CLI_ROLE_EMBEDDING) || plan->n_layer == 0
               ? sum
               : sum / (double)plan->n_layer;
}

static bool size_as(const struct cli_target *target, const struct gguf_tensor *t,
                    const struct quant_type *type, uint64_t *bytes)
{
    return quant_row_bytes(type, t->ne[0], bytes) &&
           base_mul(*bytes, t->ne[1] * t->ne[2] * t->ne[3], bytes) &&
           base_align_up(*bytes, target->alignment, bytes);
}

bool cli_target_size(const struct cli_target *target, const struct quant_type *const *to,
                     uint64_t *bytes)
{
    const struct gguf_file *file = target->plan->file;
    *bytes = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        uint64_t one;
        if (cli_quantize_is_copy(t)) continue;
        if (!size_as(target, t, to && to[i] ? to[i] : cli_quantize_own_type(t), &one) ||
            !base_add(*bytes, one, bytes))
            return false;
    }
    return true;
}

/* ---- Units of a model ---- */

struct units {
    const struct cli_target *target;
    uint64_t n_tensors;
    uint32_t *of; /* [n_tensors]: number of a tensor's unit, from 1; 0: its type is given */
    struct cli_target_unit *unit; /* [n] */
    size_t n, n_trials;
    struct cli_quantize_trial *trial; /* [n_trials], by tensor */
    uint64_t fixed;                   /* bytes of the other tensors */
};

static const struct gguf_tensor *tensor_at(const struct units *u, uint64_t i)
{
    return gguf_tensor_at(u->target->plan->file, i);
}

static bool is_open(const struct units *u, uint64_t i)
{
    bool fell_back;
    return !cli_quantize_plan_type(u->target->plan, i, &fell_back);
}

/* Returns the number of the up projection that is one product with gate i if both have the same
 * type; i if there is none. */
static uint64_t partner_of(const struct units *u, uint64_t i)
{
    static const char gate[] = "ffn_gate", up[] = "ffn_up";
    const struct gguf_tensor *t = tensor_at(u, i), *other;
    const char *at = memmem(t->name.data, t->name.size, gate, sizeof gate - 1);
    char name[128]; /* a tensor's name has at most 64 bytes */
    if (!at) return i;
    const int before = (int)(at - t->name.data), gate_size = sizeof gate - 1;
    snprintf(name, sizeof name, "%.*s%s%.*s", before, t->name.data, up,
             (int)t->name.size - before - gate_size, at + gate_size);
    other = gguf_tensor_find(u->target->plan->file, name);
    const uint64_t n = other ? (uint64_t)(other - tensor_at(u, 0)) : i;
    return other && cli_quantize_own_type(other) == cli_quantize_own_type(t) && is_open(u, n) &&
                   memcmp(other->ne, t->ne, sizeof t->ne) == 0
               ? n
               : i;
}

/* Returns whether a candidate's blocks divide the rows of a tensor, and its rows have fewer bytes
 * than those of the type that the tensor has. */
static bool is_candidate(const struct gguf_tensor *t, int candidate)
{
    uint64_t bytes, own;
    return quant_row_bytes(quant_type_by_id(candidates[candidate].id), t->ne[0], &bytes) &&
           quant_row_bytes(cli_quantize_own_type(t), t->ne[0], &own) && bytes < own;
}

/* Numbers the units, and makes the trials of their tensors. */
static void set_trials(struct units *u)
{
    for (uint64_t i = 0; i < u->n_tensors; i++) {
        const struct gguf_tensor *t = tensor_at(u, i);
        if (!is_open(u, i)) continue;
        const uint64_t other = partner_of(u, i);
        const uint32_t known = u->of[i] ? u->of[i] : u->of[other];
        u->of[i] = u->of[other] = known ? known : (uint32_t)++u->n;
        for (int c = 1; c < CLI_TARGET_TYPES; c++)
            if (is_candidate(t, c))
                u->trial[u->n_trials++] =
                    (struct cli_quantize_trial){t, quant_type_by_id(candidates[c].id),
                                                cli_imatrix_find(u->target->imatrix, t->name), 0};
    }
}

/* Sets candidate c of a unit to what it costs in tensor i, or adds that. */
static bool add_candidate(struct units *u, uint64_t i, int c, bool is_first, double error)
{
    struct cli_target_unit *unit = &u->unit[u->of[i] - 1];
    const struct gguf_tensor *t = tensor_at(u, i);
    const struct quant_type *type =
        c ? quant_type_by_id(candidates[c].id) : cli_quantize_own_type(t);
    uint64_t bytes = 0;
    if (error < INFINITY && !size_as(u->target, t, type, &bytes)) return false;
    if (is_first || bytes == 0)
        unit->bytes[c] = bytes;
    else if (unit->bytes[c] && !base_add(unit->bytes[c], bytes, &unit->bytes[c]))
        return false;
    unit->error[c] += error_in_model(u->target, i, error * (c ? candidates[c].factor : 1), type);
    return true;
}

/* Fills the units after the trials. */
static bool set_units(struct units *u)
{
    const struct cli_quantize_trial *trial = u->trial;
    uint32_t begun = 0;
    for (uint64_t i = 0; i < u->n_tensors; i++) {
        const bool is_first = u->of[i] > begun;
        if (!u->of[i]) continue;
        begun += is_first;
        for (int c = 0; c < CLI_TARGET_TYPES; c++) {
            const bool fits = c == 0 || is_candidate(tensor_at(u, i), c);
            const double error = c == 0 ? 0 : fits ? trial++->error : INFINITY;
            if (!add_candidate(u, i, c, is_first, error)) return false;
        }
    }
    return true;
}

/* Sets u->fixed, and checks that no sum of sizes is too large. */
static bool set_fixed(struct units *u, const struct quant_type *const *to)
{
    uint64_t all, own = 0, most = 0;
    if (!cli_target_size(u->target, to, &all)) return false;
    for (size_t i = 0; i < u->n; i++) {
        uint64_t largest = 0;
        for (int c = 0; c < CLI_TARGET_TYPES; c++)
            if (u->unit[i].bytes[c] > largest) largest = u->unit[i].bytes[c];
        own += u->unit[i].bytes[0];
        if (!base_add(most, largest, &most)) return false;
    }
    u->fixed = all - own;
    return base_add(most, u->fixed, &most);
}

/* Reads the choice. */
static double set_types(const struct units *u, const struct quant_type **to, double *error)
{
    const struct cli_quantize_trial *trial = u->trial;
    double sum = 0;
    for (uint64_t i = 0; i < u->n_tensors; i++) {
        if (!u->of[i]) continue;
        const int chosen = u->unit[u->of[i] - 1].chosen;
        to[i] = chosen ? quant_type_by_id(candidates[chosen].id)
                       : cli_quantize_own_type(tensor_at(u, i));
        error[i] = 0;
        for (int c = 1; c < CLI_TARGET_TYPES; c++) {
            if (!is_candidate(tensor_at(u, i), c)) continue;
            if (c == chosen) error[i] = trial->error;
            trial++;
        }
        sum += error_in_model(u->target, i, error[i], to[i]);
    }
    return sum;
}

bool cli_target_apply(const struct cli_target *target, uint64_t limit, const struct quant_type **to,
                      double *error, struct cli_target_result *result, struct base_error *err)
{
    struct units u = {.target = target, .n_tensors = gguf_tensor_count(target->plan->file)};
    u.of = calloc(u.n_tensors + 1, sizeof *u.of);
    u.unit = calloc(u.n_tensors + 1, sizeof *u.unit);
    u.trial = calloc(u.n_tensors * CLI_TARGET_TYPES + 1, sizeof *u.trial);
    bool ok = (u.of && u.unit && u.trial) ||
              base_fail(err, BASE_NO_MEMORY, "not enough memory to choose types");
    if (ok) set_trials(&u);
    ok = ok && cli_quantize_measure(target->cpu, u.trial, u.n_trials, err);
    if (ok && !(set_units(&u) && set_fixed(&u, to)))
        ok = base_fail(err, BASE_MODEL, "the tensors together are too large");
    const uint64_t open = limit > u.fixed ? limit - u.fixed : 0;
    result->bytes = ok ? u.fixed + cli_target_choose(u.unit, u.n, open, err) : 0;
    ok = ok && err->code == BASE_OK;
    if (ok) result->error = set_types(&u, to, error);
    free(u.of);
    free(u.unit);
    free(u.trial);
    return ok;
}
