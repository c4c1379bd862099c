/* models/rows.c: the tensors around the blocks as rows of data. See models/params.h. */
#include "models/block/blocks.h"
#include <stdio.h>
#include <string.h>

#define END(member)   MODEL_AT(struct model_ends, member)
#define LAYER(member) MODEL_AT(struct model_layer, member)
#define MTP(member)   MODEL_AT(struct model_mtp, member)

/* clang-format off */
static const struct model_tensor_row end_rows[] = {
    {"token_embd",          MODEL_MATRIX, MODEL_OPTIONAL, END(token_embd), .inputs = END(n_embd), .outputs = END(n_vocab)},
    {"token_embd_norm",     MODEL_NORM,   MODEL_REQUIRED, END(embd_norm),  .inputs = END(n_embd_norm)},
    {"position_embd",       MODEL_MATRIX, MODEL_OPTIONAL, END(positions),  .inputs = END(n_embd), .outputs = END(n_positions)},
    {"position_embd",       MODEL_MATRIX, MODEL_REQUIRED, END(positions),  .inputs = END(n_embd), .outputs = END(n_positions_must)},
    {"token_types",         MODEL_NORM,   MODEL_OPTIONAL, END(types),      .inputs = END(n_embd), .outputs = END(n_types)},
    {"enc.output_norm",     MODEL_NORM,   MODEL_REQUIRED, END(source_norm), .inputs = END(n_source_norm)},
    {"output_norm",         MODEL_NORM,   MODEL_REQUIRED, END(output_norm), .inputs = END(n_output_norm), .end = MODEL_OUTPUT},
    {"output",              MODEL_LINEAR, MODEL_OPTIONAL, END(output),     .inputs = END(n_embd), .outputs = END(n_output), .end = MODEL_OUTPUT},
    {"output_hc_fn",        MODEL_MATRIX, MODEL_REQUIRED, END(hyper.fn),   .inputs = END(hyper.n_in), .outputs = END(hyper.n_mix), .end = MODEL_OUTPUT},
    {"output_hc_base",      MODEL_VECTOR, MODEL_REQUIRED, END(hyper.base), .inputs = END(hyper.n_mix), .end = MODEL_OUTPUT},
    {"output_hc_scale",     MODEL_VECTOR, MODEL_REQUIRED, END(hyper.scale), .inputs = END(hyper.n_scale), .end = MODEL_OUTPUT},
    {"output_hc_norm",      MODEL_NORM,   MODEL_REQUIRED, END(hyper.norm), .inputs = END(hyper.n_norm), .outputs = END(hyper.n_norm_rows), .end = MODEL_OUTPUT},
    {"output_hc_down",      MODEL_LINEAR, MODEL_REQUIRED, END(hyper.down), .inputs = END(hyper.n_in), .outputs = END(hyper.n_low), .end = MODEL_OUTPUT},
    {"output_hc_up",        MODEL_LINEAR, MODEL_REQUIRED, END(hyper.up),   .inputs = END(hyper.n_low), .outputs = END(hyper.n_in), .end = MODEL_OUTPUT},
    {"output_res_score",    MODEL_VECTOR, MODEL_REQUIRED, END(score),      .inputs = END(n_score), .end = MODEL_OUTPUT},
    {"per_layer_token_embd", MODEL_MATRIX, MODEL_REQUIRED, END(per_layer_embd), .inputs = END(n_per_layers), .outputs = END(n_vocab)},
    {"hrm.z_l_init",        MODEL_VECTOR, MODEL_REQUIRED, END(low), .inputs = END(n_start)},
    {"per_layer_token_embd", MODEL_MATRIX, MODEL_REQUIRED, END(ngram_embd), .inputs = END(n_ngram), .outputs = END(n_ngram_rows)},
    {"per_layer_model_proj", MODEL_LINEAR, MODEL_REQUIRED, END(per_layer_proj), .inputs = END(n_embd), .outputs = END(n_per_layers)},
    {"per_layer_proj_norm", MODEL_NORM,   MODEL_REQUIRED, END(per_layer_norm), .inputs = END(n_per_layer)},
    {"altup_proj",          MODEL_STACK,  MODEL_REQUIRED, END(streams_in), .inputs = END(n_embd), .outputs = END(n_embd), .depth = END(n_streams)},
    {"altup_unembd_proj",   MODEL_STACK,  MODEL_REQUIRED, END(streams_out), .inputs = END(n_embd), .outputs = END(n_embd), .depth = END(n_streams), .end = MODEL_OUTPUT},
    {"rope_freqs",          MODEL_VECTOR, MODEL_OPTIONAL, END(rope_freqs), .inputs = END(n_factors)},
    {"rope_factors_long",   MODEL_VECTOR, MODEL_OPTIONAL, END(rope_long),  .inputs = END(n_factors)},
    {"rope_factors_short",  MODEL_VECTOR, MODEL_OPTIONAL, END(rope_short), .inputs = END(n_factors)},
    {.name = NULL},
};
static const struct model_tensor_row layer_rows[] = {
    {"attn_norm",           MODEL_NORM, MODEL_REQUIRED, LAYER(mixer_norm),      .inputs = LAYER(n_mixer_norm)},
    {"attn_norm",           MODEL_NORM, MODEL_OPTIONAL, LAYER(mixer_norm),      .inputs = LAYER(n_mixer_norm_optional)},
    {"cross_attn_norm",     MODEL_NORM, MODEL_REQUIRED, LAYER(cross_norm),      .inputs = LAYER(n_cross_norm)},
    {"attn_norm_2",         MODEL_NORM, MODEL_OPTIONAL, LAYER(mixer_norm_2),    .inputs = LAYER(n_mixer_norm_2)},
    {"post_attention_norm", MODEL_NORM, MODEL_REQUIRED, LAYER(mixer_post_norm), .inputs = LAYER(n_mixer_post_norm)},
    {"ffn_norm",            MODEL_NORM, MODEL_REQUIRED, LAYER(ffn_norm),        .inputs = LAYER(n_ffn_norm)},
    {"ffn_norm",            MODEL_NORM, MODEL_OPTIONAL, LAYER(ffn_norm),        .inputs = LAYER(n_ffn_norm_optional)},
    {"hc_attn_fn",          MODEL_MATRIX, MODEL_REQUIRED, LAYER(mixer_hyper.fn),    .inputs = LAYER(mixer_hyper.n_in), .outputs = LAYER(mixer_hyper.n_mix)},
    {"hc_attn_base",        MODEL_VECTOR, MODEL_REQUIRED, LAYER(mixer_hyper.base),  .inputs = LAYER(mixer_hyper.n_mix)},
    {"hc_attn_scale",       MODEL_VECTOR, MODEL_REQUIRED, LAYER(mixer_hyper.scale), .inputs = LAYER(mixer_hyper.n_scale)},
    {"hc_ffn_fn",           MODEL_MATRIX, MODEL_REQUIRED, LAYER(ffn_hyper.fn),      .inputs = LAYER(ffn_hyper.n_in), .outputs = LAYER(ffn_hyper.n_mix)},
    {"hc_ffn_base",         MODEL_VECTOR, MODEL_REQUIRED, LAYER(ffn_hyper.base),    .inputs = LAYER(ffn_hyper.n_mix)},
    {"hc_ffn_scale",        MODEL_VECTOR, MODEL_REQUIRED, LAYER(ffn_hyper.scale),   .inputs = LAYER(ffn_hyper.n_scale)},
    {"hc_attn_norm",        MODEL_NORM,   MODEL_REQUIRED, LAYER(mixer_hyper.norm), .inputs = LAYER(mixer_hyper.n_norm), .outputs = LAYER(mixer_hyper.n_norm_rows)},
    {"hc_attn_down",        MODEL_LINEAR, MODEL_REQUIRED, LAYER(mixer_hyper.down), .inputs = LAYER(mixer_hyper.n_in), .outputs = LAYER(mixer_hyper.n_low)},
    {"hc_attn_up",          MODEL_LINEAR, MODEL_REQUIRED, LAYER(mixer_hyper.up),   .inputs = LAYER(mixer_hyper.n_low), .outputs = LAYER(mixer_hyper.n_in)},
    {"hc_attn_inject",      MODEL_LINEAR, MODEL_REQUIRED, LAYER(mixer_hyper.back), .inputs = LAYER(mixer_hyper.n_in), .outputs = LAYER(mixer_hyper.n_back)},
    {"hc_ffn_norm",         MODEL_NORM,   MODEL_REQUIRED, LAYER(ffn_hyper.norm), .inputs = LAYER(ffn_hyper.n_norm), .outputs = LAYER(ffn_hyper.n_norm_rows)},
    {"hc_ffn_down",         MODEL_LINEAR, MODEL_REQUIRED, LAYER(ffn_hyper.down), .inputs = LAYER(ffn_hyper.n_in), .outputs = LAYER(ffn_hyper.n_low)},
    {"hc_ffn_up",           MODEL_LINEAR, MODEL_REQUIRED, LAYER(ffn_hyper.up),   .inputs = LAYER(ffn_hyper.n_low), .outputs = LAYER(ffn_hyper.n_in)},
    {"hc_ffn_inject",       MODEL_LINEAR, MODEL_REQUIRED, LAYER(ffn_hyper.back), .inputs = LAYER(ffn_hyper.n_in), .outputs = LAYER(ffn_hyper.n_back)},
    {"attn_res_score",      MODEL_VECTOR, MODEL_REQUIRED, LAYER(mixer_score),   .inputs = LAYER(n_score)},
    {"ffn_res_score",       MODEL_VECTOR, MODEL_REQUIRED, LAYER(ffn_score),     .inputs = LAYER(n_score)},
    {"post_ffw_norm_1",     MODEL_NORM, MODEL_REQUIRED, LAYER(ffn_norm_1),      .inputs = LAYER(n_beside_norms)},
    {"pre_ffw_norm_2",      MODEL_NORM, MODEL_REQUIRED, LAYER(beside_norm),     .inputs = LAYER(n_beside_norms)},
    {"post_ffw_norm_2",     MODEL_NORM, MODEL_REQUIRED, LAYER(beside_post_norm), .inputs = LAYER(n_beside_norms)},
    {"layer_output_scale",  MODEL_VECTOR, MODEL_OPTIONAL, LAYER(out_scale),     .inputs = LAYER(n_scale)},
    {"ffn_norm_exps",       MODEL_NORM, MODEL_REQUIRED, LAYER(beside_norm),     .inputs = LAYER(n_beside_norm)},
    {"post_ffw_norm",       MODEL_NORM, MODEL_REQUIRED, LAYER(ffn_post_norm),   .inputs = LAYER(n_ffn_post_norm)},
    {"layer_output_scale",  MODEL_VECTOR, MODEL_REQUIRED, LAYER(skip),          .inputs = LAYER(n_skip)},
    {.name = NULL},
};
static const struct model_tensor_row mtp_rows[] = {
    {"nextn.enorm",            MODEL_NORM,   MODEL_REQUIRED, MTP(embd_norm),   .inputs = MTP(n_embd)},
    {"nextn.hnorm",            MODEL_NORM,   MODEL_REQUIRED, MTP(hidden_norm), .inputs = MTP(n_embd)},
    {"nextn.eh_proj",          MODEL_LINEAR, MODEL_REQUIRED, MTP(in),          .inputs = MTP(n_both), .outputs = MTP(n_embd)},
    {"nextn.embed_tokens",     MODEL_MATRIX, MODEL_OPTIONAL, MTP(token_embd),  .inputs = MTP(n_embd), .outputs = MTP(n_vocab), .end = MODEL_INPUT},
    {"nextn.shared_head_norm", MODEL_NORM,   MODEL_OPTIONAL, MTP(output_norm), .inputs = MTP(n_embd), .end = MODEL_OUTPUT},
    {"nextn.shared_head_head", MODEL_LINEAR, MODEL_OPTIONAL, MTP(output),      .inputs = MTP(n_embd), .outputs = MTP(n_vocab), .end = MODEL_OUTPUT},
    {.name = NULL},
};
/* clang-format on */

uint32_t model_row_size(const void *self, uint16_t offset)
{
    uint32_t size = 1;
    if (offset) memcpy(&size, (const char *)self + offset - 1, sizeof size);
    return size;
}

static bool visit_rows(const struct model_tensor_row *row, const char *prefix, void *self,
                       model_row_visit visit, void *user)
{
    for (; row->name; row++) {
        const bool exists = model_row_size(self, row->inputs) &&
                            model_row_size(self, row->outputs) && model_row_size(self, row->depth);
        if (exists && !visit(user, row, prefix, self)) return false;
    }
    return true;
}

static bool visit_layer(struct model_layer *l, const char *prefix, model_row_visit visit,
                        void *user)
{
    const struct model_part *const parts[] = {&l->front, &l->mixer,  &l->cross, &l->mixer_2,
                                              &l->ffn,   &l->beside, &l->tail};
    if (!visit_rows(layer_rows, prefix, l, visit, user)) return false;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (parts[k]->block &&
            !visit_rows(parts[k]->block->tensors, prefix, parts[k]->self, visit, user))
            return false;
    return true;
}

bool model_rows_visit(struct model_params *p, model_row_visit visit, void *user)
{
    char prefix[32];
    if (!visit_rows(end_rows, "", &p->ends, visit, user) ||
        !visit_rows(p->pool.block->tensors, "", p->pool.self, visit, user) ||
        (p->arch->drafter && !visit_rows(model_drafter_rows, "", &p->drafter, visit, user)))
        return false;
    for (uint32_t i = 0; i < p->n_layer + p->n_mtp; i++) {
        snprintf(prefix, sizeof prefix, "%sblk.%u.", p->arch->prefix ? p->arch->prefix : "", i);
        if (i >= p->n_layer && !visit_rows(mtp_rows, prefix, &p->mtp, visit, user)) return false;
        if (!visit_layer(&p->layer[i], prefix, visit, user)) return false;
    }
    for (uint32_t i = 0; i < p->n_source; i++) {
        snprintf(prefix, sizeof prefix, MODEL_SOURCE_PREFIX "blk.%u.", i);
        if (!visit_layer(&p->source[i], prefix, visit, user)) return false;
    }
    return true;
}
