/* cli/quantize_types.h: the types that `infer quantize` can write, and mixes of them, by name.
 * Help, manual, completion and the command use these tables.
 *
 * A mix is a row of rules. The first rule whose roles include that of the tensor and whose
 * conditions all hold determines its type; a tensor without a rule gets the mix's base. The rules
 * are those of llama-quantize for a file of that name, so that a name means the same size. */
#pragma once

#include "quant/quant.h"

/* The role of a matrix, by its name. */
enum cli_quantize_role {
    CLI_ROLE_OUTPUT = 1 << 0, /* output.weight; if missing, the embeddings */
    CLI_ROLE_EMBEDDING = 1 << 1,
    CLI_ROLE_QUERY = 1 << 2,
    CLI_ROLE_KEY = 1 << 3,
    CLI_ROLE_VALUE = 1 << 4, /* attn_v, fused QKV, MLA's kv_b */
    CLI_ROLE_ATTENTION_OUTPUT = 1 << 5,
    CLI_ROLE_UP = 1 << 6, /* also of experts, as are the next two */
    CLI_ROLE_GATE = 1 << 7,
    CLI_ROLE_DOWN = 1 << 8,
    CLI_ROLE_OTHER = 1 << 9,
    CLI_ROLE_ANY = (1 << 10) - 1
};
enum { CLI_ROLES = 10 };

/* Conditions of a rule. "Layer" N is the N-th tensor of the role, out of the model's number of
 * layers (VALUE: out of the number of tensors of the role). In a model with experts it is the
 * number of the layer, unless the role is VALUE or the mix is ranked. */
enum cli_quantize_condition {
    CLI_WHEN_FIRST_2 = 1 << 0, /* layers 0 and 1 */
    CLI_WHEN_FIRST_4 = 1 << 1,
    CLI_WHEN_FIRST_16TH = 1 << 2, /* the first sixteenth of the layers */
    CLI_WHEN_FIRST_8TH = 1 << 3,
    CLI_WHEN_MIDDLE = 1 << 4, /* neither the first eighth nor the last */
    CLI_WHEN_SPREAD = 1 << 5, /* the first eighth, the last, and every third between */
    CLI_WHEN_GQA_4 = 1 << 6,  /* four or more query heads per key head */
    CLI_WHEN_EXPERTS_4 = 1 << 7,
    CLI_WHEN_EXPERTS_8 = 1 << 8, /* exactly 8 */
    CLI_WHEN_LARGE = 1 << 9,     /* about 70 billion weights */
    CLI_WHEN_FALCON = 1 << 10,
    CLI_WHEN_NOT_FALCON = 1 << 11,
    CLI_WHEN_MATRIX = 1 << 12, /* there is an importance matrix */
    CLI_WHEN_NO_MATRIX = 1 << 13,
    CLI_WHEN_STACKED = 1 << 14, /* a stack of matrices: experts */
    CLI_WHEN_UNFIT = 1 << 15,   /* the base's block does not divide its rows */
    CLI_WHEN_NOT_BAILINGMOE3 = 1 << 16
};

struct cli_quantize_rule {
    unsigned roles; /* 0: end of the rules */
    unsigned when;
    enum quant_id type;
};

enum { CLI_QUANTIZE_RULES = 16 };

struct cli_quantize_mix {
    const char *name;
    const char *alias; /* a second name; NULL: none */
    enum quant_id base;
    uint32_t file_type; /* general.file_type */
    bool copies;        /* tensors are copied unchanged */
    bool ranked;        /* tensors are numbered in models with experts too */
    struct cli_quantize_rule rule[CLI_QUANTIZE_RULES];
};

/* Returns mix i; NULL past the last one. */
const struct cli_quantize_mix *cli_quantize_mix_at(size_t i);
/* Returns the mix with this name or alias (ignoring case); NULL if there is none. */
const struct cli_quantize_mix *cli_quantize_mix_find(const char *name);
/* Returns name i of all types that can be written, mixes before other types; NULL past the last
 * one. */
const char *cli_quantize_type_name(size_t i);
