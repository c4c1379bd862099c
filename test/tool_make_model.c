/* test/tool_make_model.c: writes a model with random weights, for tests and benches without a
 * download. Options are support_model's fields as name=value. */
#include "test/support_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tool_make_model OUT.gguf [arch=NAME] [preset=1b] [type=Q4_K]\n"
    "    [finer=Q6_K] [expert_type=MXFP4] [tokens=bpe|spm|none] [with='TENSOR.bias ...'] "
    "[keys='KEY=VALUE ...']\n"
    "    [shift='[blk.N.]TENSOR.bias=NUMBER ...']\n"
    "    [beside='TENSOR ...'] [experts_as=one|reversed]\n"
    "    [seed layers embd heads kv_heads head_dim ff vocab ctx window experts experts_used rows\n"
    "    tied fused biases]=NUMBER\n"
    "arch and preset come first: they set everything else.\n";

/* Shapes of a Llama with about 1.5e9 weights (embedding and output are not shared). */
static void set_1b(struct support_model *m)
{
    m->n_layer = 16;
    m->n_embd = 2048;
    m->n_head = 32;
    m->n_head_kv = 8;
    m->head_dim = 64;
    m->n_ff = 8192;
    m->n_vocab = 128256;
    m->n_ctx = 131072;
    m->distinct_rows = 256;
    m->type = quant_type_by_id(QUANT_Q4_K);
    m->finer = quant_type_by_id(QUANT_Q6_K);
}

static bool set_text(struct support_model *m, const char *name, const char *value)
{
    if (strcmp(name, "arch") == 0) {
        *m = support_model_default(value);
    } else if (strcmp(name, "preset") == 0) {
        if (strcmp(value, "1b") != 0) return false;
        set_1b(m);
    } else if (strcmp(name, "type") == 0) {
        m->finer = NULL;
        return (m->type = quant_type_by_name(value)) != NULL;
    } else if (strcmp(name, "with") == 0) {
        m->with = value;
    } else if (strcmp(name, "shift") == 0) {
        m->shift = value;
    } else if (strcmp(name, "keys") == 0) {
        m->keys = value;
    } else if (strcmp(name, "beside") == 0) {
        m->beside = value;
    } else if (strcmp(name, "finer") == 0) {
        return (m->finer = quant_type_by_name(value)) != NULL;
    } else if (strcmp(name, "expert_type") == 0) {
        return (m->expert_type = quant_type_by_name(value)) != NULL;
    } else if (strcmp(name, "experts_as") == 0) {
        m->experts = strcmp(value, "one") == 0 ? SUPPORT_ONE_BY_ONE : SUPPORT_REVERSED;
    } else if (strcmp(name, "tokens") == 0) {
        m->tokens = strcmp(value, "spm") == 0    ? SUPPORT_TOKENS_SPM
                    : strcmp(value, "none") == 0 ? SUPPORT_TOKENS_NONE
                                                 : SUPPORT_TOKENS_BPE;
    } else {
        return false;
    }
    return true;
}

static bool set_number(struct support_model *m, const char *name, uint32_t value)
{
    const struct {
        const char *name;
        uint32_t *field;
    } numbers[] = {
        {"layers", &m->n_layer},
        {"embd", &m->n_embd},
        {"heads", &m->n_head},
        {"kv_heads", &m->n_head_kv},
        {"head_dim", &m->head_dim},
        {"ff", &m->n_ff},
        {"vocab", &m->n_vocab},
        {"ctx", &m->n_ctx},
        {"window", &m->window},
        {"experts", &m->n_expert},
        {"experts_used", &m->n_expert_used},
        {"rows", &m->distinct_rows},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(numbers[i].name, name) != 0) continue;
        *numbers[i].field = value;
        return true;
    }
    if (strcmp(name, "seed") == 0) return m->seed = value, true;
    if (strcmp(name, "tied") == 0) return m->tied = value, true;
    if (strcmp(name, "fused") == 0) return m->fused_qkv = value, true;
    if (strcmp(name, "biases") == 0) return m->biases = value, true;
    return false;
}

static bool set_option(struct support_model *m, char *option)
{
    char *value = strchr(option, '='), *end;
    if (!value) return false;
    *value++ = '\0';
    if (set_text(m, option, value)) return true;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (errno || *end || end == value || number > UINT32_MAX) return false;
    return set_number(m, option, (uint32_t)number);
}

int main(int argc, char **argv)
{
    struct support_model m = support_model_default("llama");
    struct base_error err = BASE_ERROR_INIT;
    char line[800];
    if (argc < 2 || argv[1][0] == '-') {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (!set_option(&m, argv[i])) {
            fprintf(stderr, "tool_make_model: what is '%s'?\n%s", argv[i], usage);
            return 2;
        }
    }
    if (support_model_write(&m, argv[1], &err)) return 0;
    fprintf(stderr, "tool_make_model: %s\n", base_error_format(&err, line, sizeof line));
    return err.code;
}
