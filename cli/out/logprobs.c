/* cli/out/logprobs.c: log-probabilities as JSON. See cli/out/logprobs.h. */
#include "cli/out/logprobs.h"
#include <math.h>
#include <stdlib.h>

bool cli_logprobs_open(struct cli_logprobs *l, const struct cli_model *model, int64_t n,
                       struct base_error *err)
{
    *l = (struct cli_logprobs){.model = model};
    if (n <= 0) return true;
    l->n = (uint32_t)n;
    l->top = calloc(l->n, sizeof *l->top);
    return l->top || base_fail(err, BASE_NO_MEMORY, "not enough memory for --logprobs");
}

void cli_logprobs_close(struct cli_logprobs *l)
{
    base_buffer_free(&l->items);
    base_buffer_free(&l->token);
    free(l->top);
    *l = (struct cli_logprobs){0};
}

static void read_token(struct cli_logprobs *l, int32_t id)
{
    base_buffer_clear(&l->token);
    text_token_bytes(l->model->tokenizer, id, true, &l->token);
}

/* Appends {"id":..,"text":.., of one token, without the closing brace. */
static void add_token(struct cli_logprobs *l, struct base_buffer *out, int32_t id)
{
    read_token(l, id);
    base_buffer_add_format(out, "{\"id\":%d,", id);
    base_buffer_add_member(out, "text", l->token.size ? l->token.data : "", l->token.size);
    base_buffer_add_text(out, ",");
    out->failed |= l->token.failed;
}

/* Appends the members "logprob" and "bytes" of the token that was read last. */
static void add_values(const struct cli_logprobs *l, struct base_buffer *out, double logprob)
{
    base_buffer_add_format(out, isfinite(logprob) ? "\"logprob\":%.6f" : "\"logprob\":null",
                           logprob);
    base_buffer_add_text(out, ",\"bytes\":[");
    for (size_t i = 0; i < l->token.size; i++)
        base_buffer_add_format(out, "%s%u", i ? "," : "", (unsigned char)l->token.data[i]);
    base_buffer_add_text(out, "]");
}

void cli_logprobs_add_latest(struct cli_logprobs *l, struct base_buffer *out)
{
    read_token(l, l->id);
    add_values(l, out, l->own);
    if (l->n == 0) return;
    base_buffer_add_text(out, ",\"top\":[");
    for (uint32_t i = 0; i < l->n_top; i++) {
        if (i) base_buffer_add_text(out, ",");
        add_token(l, out, l->top[i].id);
        add_values(l, out, l->top[i].logprob);
        base_buffer_add_text(out, "}");
    }
    base_buffer_add_text(out, "]");
}

void cli_logprobs_take(struct cli_logprobs *l, const struct generate_piece *piece)
{
    l->n_top =
        sample_logprobs(l->model->engine->options.level, piece->logits,
                        model_facts(l->model->model)->n_vocab, l->n, l->top, piece->id, &l->own);
    l->id = piece->id;
    if (l->items.size) base_buffer_add_text(&l->items, ",");
    add_token(l, &l->items, piece->id);
    cli_logprobs_add_latest(l, &l->items);
    base_buffer_add_text(&l->items, "}");
}
