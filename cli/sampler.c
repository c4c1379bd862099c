/* cli/sampler.c: sets a sampler's options. See cli/sampler.h. */
#include "cli/sampler.h"
#include "base/list.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_sampler_parts_free(struct cli_sampler_parts *p)
{
    free(p->breaker);
    free(p->bias);
}

/* ---- DRY's sequence breakers ---- */

static bool read_breakers(const struct chat_request *r, struct cli_sampler_parts *p,
                          struct sample_options *o, struct base_error *err)
{
    static const struct sample_text standard[] = {{"\n", 1}, {":", 1}, {"\"", 1}, {"*", 1}};
    const struct base_texts *list = &r->generate.dry_breaker;
    o->dry_breaker = standard;
    o->n_dry_breakers = sizeof standard / sizeof standard[0];
    if (list->count == 0) return true;
    o->dry_breaker = p->breaker = calloc(list->count, sizeof *p->breaker);
    o->n_dry_breakers = list->count;
    if (list->count == 1 && strcmp(list->item[0], "none") == 0) o->n_dry_breakers = 0;
    for (size_t i = 0; p->breaker && i < list->count; i++)
        p->breaker[i] = (struct sample_text){list->item[i], strlen(list->item[i])};
    return p->breaker || base_fail(err, BASE_NO_MEMORY, "not enough memory for breakers");
}

/* ---- Biases ---- */

/* TOKEN+BIAS or TOKEN-BIAS, split at the first sign after which the rest is a number. */
struct bias_text {
    const char *token;
    size_t size;
    int64_t id; /* -1: `token` is its text */
    float bias;
};

static bool is_number(const char *text, double *out)
{
    char *end;
    if (strcasecmp(text, "inf") == 0) {
        *out = INFINITY;
        return true;
    }
    if (strspn(text, ".0123456789") == 0 || strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && *out <= 1e6;
}

static bool parse_bias(const char *text, struct bias_text *b, struct base_error *err)
{
    double number = 0.0;
    const char *sign = text;
    do sign += strcspn(sign + 1, "+-") + 1;
    while (*sign != '\0' && !is_number(sign + 1, &number));
    *b = (struct bias_text){.token = text, .size = (size_t)(sign - text), .id = -1};
    if (*text == '\0' || *sign == '\0' || (*sign == '+' && number > 1e6))
        return base_fail_at(err, BASE_USAGE, "--logit-bias", -1,
                            "'%s' is not ID+BIAS, ID-BIAS or TEXT+BIAS (a number up to 1e6, or "
                            "-inf to forbid the token)",
                            text);
    b->bias = (float)(*sign == '-' ? -number : number);
    if (strspn(text, "0123456789") == b->size) {
        b->id = strtoll(text, NULL, 10);
    } else if (b->size > 2 && text[0] == '"' && sign[-1] == '"') {
        b->token++;
        b->size -= 2;
    }
    return true;
}

static bool add_bias(struct cli_sampler_parts *p, int64_t id, float bias, struct base_error *err)
{
    if (!BASE_LIST_ROOM(p->bias, p->n_biases, p->max_biases))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for biases");
    const int32_t narrow = id > INT32_MAX ? INT32_MAX : (int32_t)id; /* sample/ reports the error */
    p->bias[p->n_biases++] = (struct sample_bias){narrow, bias};
    return true;
}

/* Adds a bias for every token with exactly this text: a byte may have a token of its own besides
 * the token of the text. */
static bool add_text_bias(const struct text_tokenizer *t, const struct bias_text *b,
                          struct cli_sampler_parts *p, struct base_error *err)
{
    BASE_LOCAL_BUFFER own = BASE_BUFFER_INIT;
    const size_t before = p->n_biases;
    bool ok = true;
    for (uint32_t id = 0; ok && id < text_vocab_size(t); id++) {
        base_buffer_clear(&own);
        text_token_bytes(t, (int32_t)id, true, &own);
        if (own.size == b->size && own.size > 0 && memcmp(own.data, b->token, own.size) == 0)
            ok = add_bias(p, id, b->bias, err);
    }
    if (ok && p->n_biases == before)
        ok = base_fail_at(err, BASE_USAGE, "--logit-bias", -1,
                          "no single token of this model reads '%.*s': give ids (infer tokenize "
                          "prints them)",
                          (int)(b->size < 60 ? b->size : 60), b->token);
    return ok && (!own.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory for biases"));
}

/* Reads the biases; without a tokenizer only checks their form. */
static bool read_biases(const struct chat_request *r, const struct text_tokenizer *t,
                        struct cli_sampler_parts *p, struct base_error *err)
{
    for (size_t i = 0; i < r->generate.bias.count; i++) {
        struct bias_text b;
        if (!parse_bias(r->generate.bias.item[i], &b, err)) return false;
        if (!t) continue;
        if (b.id >= 0 ? !add_bias(p, b.id, b.bias, err) : !add_text_bias(t, &b, p, err))
            return false;
    }
    return true;
}

/* ---- Options ---- */

/* Writes the name of the option that sets a parameter of the sampler. */
static void option_of(const char *parameter, struct sample_name *out)
{
    size_t i = 0;
    while (i + 1 < cli_option_count && (!cli_option_table[i].parameter ||
                                        strcmp(cli_option_table[i].parameter, parameter) != 0))
        i++;
    const struct cli_option *o = &cli_option_table[i];
    snprintf(out->text, sizeof out->text, "%s%s", o->parameter ? "--" : "",
             o->parameter ? o->name : parameter);
}

bool cli_sampler_prepare(const struct chat_request *r, struct cli_sampler_parts *p,
                         struct sample_options *o, struct base_error *err)
{
    *o = r->generate.sample;
    o->name_of = option_of;
    return read_biases(r, NULL, p, err) && read_breakers(r, p, o, err) &&
           sample_options_check(o, err);
}

bool cli_sampler_finish(const struct chat_request *r, const struct cli_model *m,
                        struct cli_sampler_parts *p, struct sample_options *o,
                        struct base_error *err)
{
    if (!read_biases(r, m->tokenizer, p, err)) return false;
    o->bias = p->bias;
    o->n_biases = p->n_biases;
    o->level = m->engine->options.level;
    return true;
}
