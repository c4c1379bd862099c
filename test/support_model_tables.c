/* test/support_model_tables.c: a tiny model for each architecture. See test/support_model.h. */
#include "test/support_model.h"

/* A layer with experts, in architectures where the tensors of a layer determine that. */
#define ROUTER(layer) "blk." #layer ".ffn_gate_inp.weight "
/* The projection of an MTP layer: its presence marks the layer. */
#define NEXTN(layer) "blk." #layer ".nextn.eh_proj.weight "

/* The tensors of a layer in PowerInfer's files. */
#define PREDICTOR(layer) "blk." #layer ".ffn_down_t.weight=128 blk." #layer ".fc1.weight=24 "

#define QKV_BIAS  "attn_q.bias attn_k.bias attn_v.bias"
#define OUT_BIAS  " attn_output.bias"
#define FFN_BIAS  " ffn_up.bias ffn_down.bias"
#define NORM_BIAS " attn_norm.bias ffn_norm.bias output_norm.bias"
#define ALL_BIAS  QKV_BIAS OUT_BIAS FFN_BIAS NORM_BIAS
#define EXPERT_SCALES "ffn_gate_exps.scale ffn_up_exps.scale ffn_down_exps.scale"
#define SHARED_SCALES " ffn_gate_shexp.scale ffn_up_shexp.scale ffn_down_shexp.scale"
#define SSM(taps, inner, state, heads, groups)                                                     \
    "ssm.conv_kernel=" taps " ssm.inner_size=" inner " ssm.state_size=" state                      \
    " ssm.time_step_rank=" heads " ssm.group_count=" groups
#define MAMBA(taps, inner, state, rank)                                                            \
    "ssm.conv_kernel=" taps " ssm.inner_size=" inner " ssm.state_size=" state " ssm.time_step_rank=" rank
#define RWKV_BIAS "token_embd_norm.bias output_norm.bias attn_norm.bias ffn_norm.bias time_mix_ln.bias "
#define RWKV6     "attention.head_count=0 attention.head_count_kv=0 time_mix_extra_dim=8 time_decay_extra_dim=12"
#define RWKV7                                                                                      \
    "wkv.head_size=64 attention.head_count=0 attention.head_count_kv=0 attention.decay_lora_rank=8 attention.iclr_lora_rank=12"                      \
    " attention.value_residual_mix_lora_rank=6 attention.gate_lora_rank=10"
#define GATE(layer) "blk." #layer ".time_mix_g1.weight "
#define T5        "attention.relative_buckets_count=12 attention.key_length=24 attention.value_length=24 decoder_start_token_id=254"
#define FUSED     "attn_qkv.weight attn_qkv.bias" OUT_BIAS FFN_BIAS NORM_BIAS

/* Heads of latent attention: keys and values in one tensor, or separate. */
#define MLA_HEADS   "attention.key_length=64 attention.value_length=32 attention.head_count_kv=4 attention.kv_lora_rank=32 rope.dimension_count=32"
#define MLA         "attention.key_length=64 attention.value_length=32 attention.head_count_kv=1 attention.kv_lora_rank=32 attention.key_length_mla=56 attention.value_length_mla=24 rope.dimension_count=32"
#define MOE_KEYS    "expert_feed_forward_length=48 expert_shared_count=2 expert_weights_scale=2.5"
#define MLA_EXPERTS MOE_KEYS " leading_dense_block_count=1"
#define MLA_YARN    "rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=8 rope.scaling.yarn_log_multiplier=0.0707"

#define MLA_KIMI    "attention.key_length=64 attention.value_length=32 attention.kv_lora_rank=32 attention.key_length_mla=56 attention.value_length_mla=24 rope.dimension_count=32"
#define MLA_KIMI_UNROTATED "attention.key_length=32 attention.value_length=32 attention.kv_lora_rank=32 attention.key_length_mla=24 attention.value_length_mla=24 rope.dimension_count=0"
#define INDEXER     "attention.indexer.head_count=6 attention.indexer.key_length=64 attention.indexer.top_k=8"
/* DeepSeek-V4: 4 heads of 32 elements, of which the last 16 rotate. */
#define COMPRESSED  MOE_KEYS " attention.head_count=4 attention.head_count_kv=1 attention.key_length=32 attention.value_length=32 rope.dimension_count=16 attention.q_lora_rank=40 attention.output_group_count=2 attention.output_lora_rank=24 attention.compress_rope_freq_base=40000.0 hyper_connection.count=4 hyper_connection.sinkhorn_iterations=3 hyper_connection.epsilon=0.001 expert_gating_func=4 expert_weights_norm=true"
/* Embeddings of two and three ids together, two rows for each. */
#define NGRAMS      "ple.layers=2, ple.ngram_size=3 ple.heads_per_ngram=2 ple.conv_kernel=4 ple.eos_token_id=292 embedding_length_per_layer_input=16 ple.layer_multipliers=35184372088777,21990232555501,29313137222021u ple.head_offsets=0,97,198,287u ple.head_vocab_sizes=97,101,89,83u"
#define MLA_INDEXED "exp_probs_b.bias indexer.k_norm.bias"

#define BERT "token_types.weight=2 token_embd_norm.bias post_attention_norm.bias post_ffw_norm.bias " QKV_BIAS OUT_BIAS FFN_BIAS

/* Limits above the default: the other implementation computes GELU by a half-precision table
 * (1e-6), the gated delta rule in chunks (1e-9), and scans with its own exponential (1e-11).
 * Figures of the Gemmas with limits of 1e-10 (1e-8: 23 layers, sparse) are those of a build without
 * that table (GGML_GELU_FP16). glm4moe-mtp is compared with ik_llama.cpp, whose values are F16. */
const struct support_fixture support_fixtures[] = {
    {"llama", "llama", .with = QKV_BIAS},
    {"llama-fused", "llama", .tied = true, .with = "attn_qkv.weight"},
    {"llama-moe", "llama", .n_expert = 4, .n_expert_used = 2},
    {"llama-freqs", "llama", .with = "rope_freqs.weight", .keys = "rope.scaling.type=linear rope.scaling.factor=4.0"},
    {"llama-yarn", "llama", .keys = "rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=64"},
    {.name = "internlm2", .arch = "internlm2"},
    {.name = "xverse", .arch = "xverse"},
    {.name = "ernie4_5", .arch = "ernie4_5"},
    {.name = "arcee", .arch = "arcee"},
    {"smollm3", "smollm3", .n_layer = 5},
    {"deci", "deci", .n_layer = 5, .keys = "attention.head_count=4,0,4,4,4 attention.head_count_kv=2,0,0,2,2 feed_forward_length=128,128,128,0,128"},
    {"mistral3", "mistral3", .keys = "attention.temperature_scale=0.5 rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=8 rope.scaling.yarn_log_multiplier=0.7 rope.scaling.yarn_beta_fast=16.0"},
    {.name = "maincoder", .arch = "maincoder"},
    {"baichuan", "baichuan", .n_layer = 32},
    {"baichuan-alibi", "baichuan", .n_layer = 40},
    {"refact", "refact", .n_head = 6},
    {"granite", "granite", .keys = "embedding_scale=3.0 residual_scale=0.6 logit_scale=2.5 attention.scale=0.2"},
    {"granite-nope", "granite", .keys = "logit_scale=2.5 rope.scaling.finetuned=false"},
    {"graniteswitch", "graniteswitch", .with = "attn_qkv.weight", .keys = "logit_scale=3.0 embedding_scale=2.0 residual_scale=0.5 attention.scale=0.3 adapters.count=4 adapters.lora_rank=6 adapters.token_ids_activate=281,5,288,57 adapters.token_ids_substitute=11,12,13,14"},
    {"granitemoe", "granitemoe", .n_expert = 4, .n_expert_used = 2, .keys = "logit_scale=2.5"},
    {"minicpm", "minicpm", .keys = "embedding_scale=3.0 residual_scale=0.6 logit_scale=2.5"},
    {.name = "minicpm-default", .arch = "minicpm"},
    {"nanbeige", "nanbeige", .n_layer = 3, .with = "rope_freqs.weight", .keys = "num_loops=3"},
    {"nanbeige-scales", "nanbeige", .with = "ffn_gate.scale ffn_up.scale ffn_down.scale", .keys = "num_loops=1"},
    {"nanbeige-skip", "nanbeige", .n_layer = 2, .tied = true, .keys = "num_loops=2 skip_loop_final_norm=true"},
    {"hrm_text", "hrm_text", .n_layer = 18, .n_head_kv = 4, .keys = "hrm.layers_per_stack=3 hrm.h_cycles=2 hrm.l_cycles=2 embedding_scale=3.5 hrm.prefix_lm=true"},
    {"hrm_text-scales", "hrm_text", .n_layer = 12, .with = "blk.11.attn_output.scale attn_q.scale attn_k.scale attn_v.scale attn_output.scale ffn_down.scale", .keys = "hrm.layers_per_stack=2 hrm.h_cycles=2 hrm.l_cycles=2"},
    {"hrm_text-one", "hrm_text", .n_layer = 6, .tied = true, .keys = "hrm.layers_per_stack=1 hrm.h_cycles=3 hrm.l_cycles=1"},
    {"chatglm", "chatglm", .with = "attn_qkv.weight attn_qkv.bias", .keys = "rope.dimension_count=8"},
    {"glm4", "glm4", .keys = "rope.dimension_count=8"},
    {"glm4-sections", "glm4", .keys = "rope.dimension_count=12 rope.dimension_sections=2,1,1,2"},
    {"qwen2", "qwen2", .with = QKV_BIAS},
    {"qwen2vl", "qwen2vl", .with = QKV_BIAS " output.bias", .keys = "rope.dimension_sections=2,3,3,0 attention.layer_norm_rms_epsilon=0.0"},
    {.name = "exaone", .arch = "exaone"},
    {"pangu-embedded", "pangu-embedded", .with = QKV_BIAS OUT_BIAS},
    {"paddleocr", "paddleocr", .keys = "rope.dimension_sections=2,3,3,0"},
    {"bitnet", "bitnet", .tied = true, .with = "attn_sub_norm.weight ffn_sub_norm.weight attn_q.scale ffn_down.scale"},
    {"seed_oss", "seed_oss", .with = QKV_BIAS},
    {"qwen", "qwen", .n_head_kv = 4, .with = "attn_qkv.weight attn_qkv.bias"},
    {"cogvlm", "cogvlm", .n_head_kv = 4, .with = "attn_qkv.weight"},
    {"phi3", "phi3", .with = "attn_qkv.weight"},
    {"phi3-scales", "phi3", .with = "attn_qkv.weight ffn_up.scale ffn_down.scale"},
    {"phi3-long", "phi3", .with = "rope_factors_long.weight rope_factors_short.weight", .keys = "rope.scaling.original_context_length=64 rope.scaling.attn_factor=1.19"},
    {.name = "plamo", .arch = "plamo"},
    {"qwen3", "qwen3", .tied = true},
    {"openelm", "openelm", .tied = true, .with = "attn_qkv.weight", .keys = "attention.head_count=4,8 attention.head_count_kv=2,4 feed_forward_length=128,96"},
    {"qwen3vl", "qwen3vl", .keys = "rope.dimension_sections=2,3,3,0"},
    {.name = "hunyuan-dense", .arch = "hunyuan-dense"},
    {"hunyuan_vl", "hunyuan_vl", .keys = "rope.scaling.alpha=50.0"},
    {"hunyuan_vl-sections", "hunyuan_vl", .keys = "rope.scaling.alpha=50.0 rope.dimension_sections=2,2,2,2"},
    {.name = "exaone4", .arch = "exaone4"},
    {.name = "olmo2", .arch = "olmo2"},
    {"olmo2-window", "olmo2", .n_layer = 5, .window = 8},
    {"talkie", "talkie", .n_layer = 3, .n_head_kv = 4, .with = "ffn_down.scale", .keys = "logit_scale=0.7"},
    {"chameleon", "chameleon", .n_vocab = 8300, .with = "attn_q_norm.bias attn_k_norm.bias"},
    {"chameleon-swin", "chameleon", .n_vocab = 8300, .tied = true, .keys = "swin_norm=true"},
    {"apertus", "apertus", .keys = "!xielu.alpha_p=0.3 !xielu.alpha_n=0.4 !xielu.beta=0.5 !xielu.eps=-0.000001"},
    {"gemma", "gemma", .tied = true, .bar = 1e-6},
    {"gemma2", "gemma2", .n_layer = 3, .window = 8, .tied = true, .keys = "attn_logit_softcapping=5.0", .bar = 1e-6},
    {"gemma3", "gemma3", .n_layer = 7, .window = 8, .tied = true, .bar = 1e-6},
    {"gemma3n", "gemma3n", .n_layer = 23, .window = 8, .tied = true, .with = "attn_k.weight attn_v.weight attn_k_norm.weight", .bar = 1e-8},
    {"gemma4", "gemma4", .n_layer = 8, .window = 8, .tied = true, .with = "rope_freqs.weight layer_output_scale.weight attn_v.weight", .keys = "attention.sliding_window_pattern=1,0,1,1,0,1,1,0 attention.head_count_kv=2,1,2,2,1,2,2,1 attention.shared_kv_layers=3 attention.key_length=32 attention.value_length=32 attention.key_length_swa=16 attention.value_length_swa=16 rope.dimension_count=32 rope.dimension_count_swa=16 rope.freq_base_swa=10000.0 feed_forward_length=128,128,128,128,128,192,192,192 embedding_length_per_layer_input=24 final_logit_softcapping=30.0", .bar = 1e-10},
    {"gemma4-moe", "gemma4", .n_layer = 6, .window = 8, .n_expert = 8, .n_expert_used = 3, .tied = true, .with = "rope_freqs.weight layer_output_scale.weight ffn_gate_up_exps.weight ffn_down_exps.scale", .keys = "attention.sliding_window_pattern=1,1,0,1,1,0 attention.head_count_kv=2,2,1,2,2,1 attention.key_length=32 attention.value_length=32 attention.key_length_swa=16 attention.value_length_swa=16 rope.dimension_count=32 rope.dimension_count_swa=16 embedding_length_per_layer_input=0 expert_feed_forward_length=48", .bar = 1e-10},
    {"gpt2", "gpt2", .n_head_kv = 4, .with = FUSED " position_embd.weight", .bar = 1e-6},
    {"starcoder", "starcoder", .with = FUSED " position_embd.weight", .bar = 1e-6},
    {"bloom", "bloom", .n_head_kv = 4, .with = FUSED " token_embd_norm.bias", .bar = 1e-6},
    {"mpt", "mpt", .n_head_kv = 4, .with = "attn_qkv.weight", .keys = "attention.max_alibi_bias=8.0 attention.clamp_kqv=1.5", .bar = 1e-6},
    {"jais", "jais", .n_head_kv = 4, .with = FUSED " ffn_gate.bias", .keys = "attention.max_alibi_bias=8.0"},
    {"gptneox", "gptneox", .n_head_kv = 4, .with = FUSED " ffn_norm.weight", .keys = "use_parallel_residual=true rope.dimension_count=8", .bar = 1e-6},
    {"gptneox-serial", "gptneox", .n_head_kv = 4, .with = FUSED, .keys = "use_parallel_residual=false", .bar = 1e-6},
    {"falcon", "falcon", .with = "attn_qkv.weight attn_norm.bias output_norm.bias", .bar = 1e-6},
    {"falcon-40b", "falcon", .with = "attn_qkv.weight attn_norm.bias attn_norm_2.weight attn_norm_2.bias output_norm.bias", .bar = 1e-6},
    {"phi2", "phi2", .with = "attn_qkv.weight attn_qkv.bias attn_norm.bias output_norm.bias output.bias" OUT_BIAS FFN_BIAS, .bar = 1e-6},
    {"starcoder2", "starcoder2", .with = ALL_BIAS, .bar = 1e-6},
    {"codeshell", "codeshell", .with = FUSED, .bar = 1e-6},
    {"nemotron", "nemotron", .with = ALL_BIAS},
    {"jais2", "jais2", .n_head_kv = 4, .with = ALL_BIAS},
    {"stablelm", "stablelm", .with = "attn_norm.bias ffn_norm.weight ffn_norm.bias output_norm.bias", .keys = "rope.dimension_count=8"},
    {"stablelm-parallel", "stablelm", .with = "attn_norm.bias output_norm.bias attn_q_norm.weight attn_k_norm.weight"},
    {"orion", "orion", .with = NORM_BIAS},
    {"olmo", "olmo", .keys = "attention.clamp_kqv=1.5"},
    {"command-r", "command-r", .tied = true, .keys = "logit_scale=0.0625"},
    {"command-r-plus", "command-r", .n_layer = 64, .tied = true, .keys = "logit_scale=0.0625"},
    {"cohere2", "cohere2", .n_layer = 5, .window = 8, .tied = true, .keys = "logit_scale=0.0625"},
    {"afmoe", "afmoe", .n_layer = 6, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = "expert_feed_forward_length=48 expert_shared_count=2 leading_dense_block_count=1 expert_weights_norm=true expert_weights_scale=2.8 attention.sliding_window_pattern=3 rope.freq_base_swa=20000.0"},
    {"afmoe-groups", "afmoe", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .tied = true, .with = "exp_probs_b.bias", .keys = "expert_feed_forward_length=48 expert_shared_count=0 expert_group_count=4 expert_group_used_count=2"},
    {"cohere2moe", "cohere2moe", .n_layer = 6, .window = 8, .n_expert = 8, .n_expert_used = 3, .tied = true, .keys = "logit_scale=0.0625 expert_feed_forward_length=48 expert_shared_count=2 leading_dense_block_count=2 expert_weights_norm=true attention.sliding_window_pattern=3"},
    {"cohere2moe-layer", "cohere2moe", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "ffn_gate_up_exps.weight", .keys = "attention.layer_norm_rms_epsilon=0.0 logit_scale=0.5 expert_feed_forward_length=48 expert_shared_count=1 expert_shared_feed_forward_length=80 leading_dense_block_count=1 nextn_predict_layers=1 attention.sliding_window_pattern=1,0,1,1"},
    {"granite_swa", "granite_swa", .n_layer = 5, .window = 8, .with = "attn_sinks.weight rope_freqs.weight ffn_gate.bias" FFN_BIAS OUT_BIAS, .keys = "logit_scale=2.5 embedding_scale=3.0 residual_scale=0.6 attention.scale=0.2 attention.sliding_window_pattern=1,0,1,1,0 attention.rope_pattern=1,1,0,1,0"},
    {"granite_swa-moe", "granite_swa", .n_layer = 4, .window = 8, .n_expert = 8, .n_expert_used = 3, .tied = true, .with = "attn_sinks.weight", .keys = "logit_scale=2.5 expert_shared_feed_forward_length=80 attention.sliding_window_pattern=1,1,0,1"},
    {"mimo2", "mimo2", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) ROUTER(2) ROUTER(3) ROUTER(4) "attn_sinks.weight exp_probs_b.bias", .keys = "attention.value_length=32 attention.head_count=4,8,4,4,4 attention.head_count_kv=2,2,1,4,2 attention.sliding_window_pattern=0,1,1,0,1 attention.value_scale=0.7 rope.dimension_count=8 expert_feed_forward_length=48 rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=64"},
    {"mimo2-mtp", "mimo2", .n_layer = 4, .window = 8, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) NEXTN(3) "attn_qkv.weight attn_sinks.weight exp_probs_b.bias nextn.shared_head_norm.weight", .keys = "attention.head_count=4,8,4,4 attention.head_count_kv=2,2,1,2 attention.sliding_window_pattern=0,1,1,1 attention.value_scale=0.7 rope.dimension_count=8 expert_feed_forward_length=48 nextn_predict_layers=1"},
    {"step35", "step35", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) ROUTER(2) ROUTER(3) "blk.0.attn_gate.weight=4 blk.1.attn_gate.weight=8 blk.2.attn_gate.weight=4 blk.3.attn_gate.weight=8 attn_gate.weight attn_q_norm.weight attn_k_norm.weight rope_freqs.weight exp_probs_b.bias", .keys = "nextn_predict_layers=1 attention.head_count=4,8,4,8,4 attention.head_count_kv=2,4,1,2,2 attention.sliding_window_pattern=0,1,1,0,1 rope.dimension_count_swa=12 rope.freq_base_swa=20000.0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 expert_weights_norm=true expert_weights_scale=1.5 swiglu_clamp_exp=0.0,0.2,0.0,0.4,0.0 swiglu_clamp_shexp=0.3,0.0,0.2,0.4,0.0"},
    {"step35-plain", "step35", .n_layer = 3, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(0) ROUTER(1) ROUTER(2), .keys = "attention.sliding_window_pattern=1,0,1 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=64"},
    {"step35-mtp", "step35", .n_layer = 4, .window = 8, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) ROUTER(2) NEXTN(3) "attn_q_norm.weight attn_k_norm.weight exp_probs_b.bias nextn.shared_head_norm.weight", .keys = "nextn_predict_layers=1 attention.head_count=4,8,4,8 attention.head_count_kv=2,4,1,2 attention.sliding_window_pattern=0,1,1,1 rope.dimension_count_swa=12 rope.freq_base_swa=20000.0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 expert_weights_norm=true expert_weights_scale=1.5"},
    {"laguna", "laguna", .n_layer = 6, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "blk.0.attn_gate.weight=4 blk.1.attn_gate.weight=8 blk.2.attn_gate.weight=8 blk.3.attn_gate.weight=8 blk.4.attn_gate.weight=4 exp_probs_b.bias", .keys = "attention.head_count=4,8,8,8,4,8 rope.dimension_count=8 rope.dimension_count_swa=16 rope.freq_base_swa=10000.0 rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=64 leading_dense_block_count=1 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 expert_weights_norm=true expert_weights_scale=2.5", .bar = 1e-11},
    {"laguna-full", "laguna", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .tied = true, .with = "exp_probs_b.bias", .keys = "leading_dense_block_count=1 expert_feed_forward_length=48"},
    {"plamo3", "plamo3", .n_layer = 10, .window = 8, .with = "attn_qkv.weight", .keys = "rope.freq_base_swa=20000.0"},
    {"plamo3-full", "plamo3", .n_layer = 2, .with = "attn_qkv.weight", .keys = "attention.value_length=24"},
    {"muse-glimmer", "muse-glimmer", .n_layer = 6, .window = 8, .keys = "logit_scale=0.7 rope.freq_base_swa=20000.0 attention.sliding_window_pattern=4"},
    {"muse-glimmer-cap", "muse-glimmer", .n_layer = 3, .window = 8, .keys = "logit_scale=0.7 final_logit_softcapping=5.0 attention.sliding_window_pattern=1,0,1"},
    {"qwen2moe", "qwen2moe", .n_expert = 8, .n_expert_used = 3, .with = QKV_BIAS, .keys = "expert_feed_forward_length=48 expert_shared_feed_forward_length=80"},
    {"qwen3moe", "qwen3moe", .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48"},
    {"qwen3moe-scales", "qwen3moe", .n_expert = 8, .n_expert_used = 3, .with = EXPERT_SCALES, .keys = "expert_feed_forward_length=48"},
    {"grovemoe", "grovemoe", .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 expert_chunk_feed_forward_length=24 experts_per_group=2 expert_group_scale=0.05"},
    {"grovemoe-few", "grovemoe", .n_expert = 9, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 experts_per_group=3 expert_group_scale=0.5"},
    {"qwen3vlmoe", "qwen3vlmoe", .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 rope.dimension_sections=2,3,3,0"},
    {"olmoe", "olmoe", .n_head_kv = 4, .n_expert = 8, .n_expert_used = 3},
    {"phimoe", "phimoe", .n_expert = 8, .n_expert_used = 2, .with = "output.bias" OUT_BIAS NORM_BIAS " " QKV_BIAS},
    {"dbrx", "dbrx", .n_expert = 8, .n_expert_used = 3, .with = "attn_qkv.weight", .keys = "attention.clamp_kqv=1.5"},
    {"deepseek", "deepseek", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 expert_shared_count=2 leading_dense_block_count=1 expert_weights_scale=1.5"},
    {"dots1", "dots1", .n_layer = 3, .n_head_kv = 4, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = "expert_feed_forward_length=48 expert_shared_count=2 leading_dense_block_count=1 expert_weights_scale=2.5 expert_weights_norm=true expert_gating_func=2"},
    {"glm4moe", "glm4moe", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias attn_q_norm.weight attn_k_norm.weight", .keys = "expert_feed_forward_length=48 expert_shared_count=1 leading_dense_block_count=1 expert_weights_scale=2.5 expert_weights_norm=true rope.dimension_count=8"},
    {"glm4moe-mtp", "glm4moe", .n_layer = 4, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = NEXTN(3) ROUTER(3) QKV_BIAS " exp_probs_b.bias nextn.shared_head_norm.weight", .keys = "expert_feed_forward_length=48 expert_shared_count=1 leading_dense_block_count=1 expert_weights_scale=2.5 expert_weights_norm=true rope.dimension_count=8 expert_gating_func=2 nextn_predict_layers=1", .bar = 1e-6},
    {"bailingmoe", "bailingmoe", .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 expert_shared_count=2 expert_weights_norm=true expert_weights_scale=1.5"},
    {"bailingmoe2", "bailingmoe2", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = "attn_qkv.weight exp_probs_b.bias", .keys = "expert_feed_forward_length=48 expert_shared_count=1 leading_dense_block_count=1 expert_weights_norm=true expert_weights_scale=2.5 expert_gating_func=2 expert_group_count=4 expert_group_used_count=2"},
    {"ernie4_5-moe", "ernie4_5-moe", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = "expert_feed_forward_length=48 expert_shared_feed_forward_length=80 leading_dense_block_count=1 interleave_moe_layer_step=1"},
    {"hunyuan-moe", "hunyuan-moe", .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 expert_shared_feed_forward_length=80"},
    {"hy_v3", "hy_v3", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) ROUTER(2) "exp_probs_b.bias" SHARED_SCALES, .keys = "expert_feed_forward_length=48 expert_weights_norm=true expert_weights_scale=1.5"},
    {"hy_v3-mtp", "hy_v3", .n_layer = 4, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) ROUTER(2) NEXTN(3) ROUTER(3) "exp_probs_b.bias nextn.shared_head_norm.weight", .keys = "expert_feed_forward_length=48 expert_weights_norm=true expert_weights_scale=1.5 nextn_predict_layers=1"},
    {"gpt-oss", "gpt-oss", .n_layer = 3, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "attn_sinks.weight ffn_gate_inp.bias ffn_gate_exps.bias ffn_up_exps.bias ffn_down_exps.bias" OUT_BIAS " " QKV_BIAS, .keys = "expert_feed_forward_length=48"},
    {"minimax-m2", "minimax-m2", .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = "expert_feed_forward_length=128 expert_gating_func=2 rope.dimension_count=8"},
    {"minimax-m3", "minimax-m3", .n_layer = 4, .n_head = 8, .n_head_kv = 4, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = MOE_KEYS " expert_gating_func=2 expert_weights_norm=true rope.dimension_count=8 attention.indexer.head_count=4 attention.indexer.key_length=24 attention.indexer.top_k=3 attention.indexer.block_size=4 attention.indexer.local_blocks=1"},
    {"minimax-m3-leading", "minimax-m3", .n_layer = 3, .n_head = 4, .n_head_kv = 2, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true rope.dimension_count=8 attention.indexer.head_count=2 attention.indexer.key_length=24 attention.indexer.top_k=9 attention.indexer.block_size=4 attention.indexer.local_blocks=1"},
    {"exaone-moe", "exaone-moe", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = "expert_feed_forward_length=48 expert_shared_feed_forward_length=80 expert_shared_count=1 expert_gating_func=2 expert_weights_norm=true expert_weights_scale=1.5 leading_dense_block_count=1"},
    {"maple", "maple", .n_layer = 4, .window = 8, .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 attention.sliding_window_pattern=1,1,0,1 rope.freq_base_swa=20000.0 rope.dimension_count=8 swiglu_clamp_exp=0.3"},
    {"spark2_5", "spark2_5", .n_layer = 4, .window = 8, .tied = true, .with = "blk.0.attn_gate.weight=4 blk.1.attn_gate.weight=4 blk.2.attn_gate.weight=4 blk.3.attn_gate.weight=4", .keys = "attention.sliding_window_pattern=1,1,0,1 rope.scaling.type=linear rope.scaling.factor=4.0", .bar = 1e-6},
    {"mellum", "mellum", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "ffn_up_exps.scale", .keys = "expert_feed_forward_length=48 attention.sliding_window_pattern=4"},
    {"deepseek2", "deepseek2", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true expert_group_count=4 expert_group_used_count=2 " MLA_YARN, .bar = 1e-11},
    {"deepseek2-lite", "deepseek2", .n_layer = 26, .n_expert = 8, .n_expert_used = 3, .keys = MLA_HEADS " " MLA_EXPERTS " " MLA_YARN, .bar = 1e-11},
    {"deepseek2-split", "deepseek2", .n_layer = 2, .n_head = 6, .n_expert = 4, .n_expert_used = 2, .tied = true, .with = "ffn_gate_up_exps.weight", .keys = "attention.key_length=56 attention.value_length=48 attention.kv_lora_rank=48 attention.key_length_mla=28 attention.value_length_mla=20 attention.head_count_kv=1 attention.q_lora_rank=0 rope.dimension_count=8 expert_feed_forward_length=48 expert_shared_count=1 attention.temperature_scale=0.5 attention.temperature_length=8 rope.scaling.type=linear rope.scaling.factor=4.0", .bar = 1e-11},
    {"deepseek2-mtp", "deepseek2", .n_layer = 4, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = NEXTN(3) ROUTER(3) "exp_probs_b.bias nextn.shared_head_norm.weight", .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true nextn_predict_layers=1", .bar = 1e-11},
    {"deepseek32", "deepseek32", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = MLA_INDEXED, .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true expert_group_count=4 expert_group_used_count=2 " INDEXER " " MLA_YARN},
    {"deepseek32-mtp", "deepseek32", .n_layer = 4, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = NEXTN(3) ROUTER(3) MLA_INDEXED " indexer.attn_q_b.weight indexer.attn_k.weight indexer.proj.weight indexer.k_norm.weight nextn.shared_head_norm.weight", .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true nextn_predict_layers=1 " INDEXER},
    {"glm-dsa", "glm-dsa", .n_layer = 6, .n_expert = 8, .n_expert_used = 3, .with = MLA_INDEXED, .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " expert_weights_norm=true attention.indexer.types=1,1,0,1,0,0 " INDEXER},
    {"glm-dsa-all", "glm-dsa", .n_layer = 2, .n_expert = 8, .n_expert_used = 3, .tied = true, .with = MLA_INDEXED, .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true " INDEXER},
    {"dots3note", "dots3note", .n_layer = 5, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = MLA_INDEXED " blk.0.attn_gate.weight=4 blk.1.attn_gate.weight=6 blk.2.attn_gate.weight=4 blk.3.attn_gate.weight=6 blk.4.attn_gate.weight=4", .keys = MLA_KIMI " attention.q_lora_rank=40 attention.head_count=4,6,4,6,4 attention.head_count_kv=1 attention.sliding_window_pattern=0,1,1,0,1 attention.indexer.types=1,0,0,1,0 attention.kv_lora_rank_swa=24 attention.key_length_mla_swa=48 attention.value_length_mla_swa=16 rope.freq_base_swa=20000.0 attention.key_length_swa=56 attention.value_length_swa=24 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true " INDEXER, .bar = 1e-11},
    {"deepseek4", "deepseek4", .n_layer = 4, .window = 8, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = COMPRESSED " attention.compress_ratios=0,4,128,4 hash_layer_count=2 swiglu_clamp_exp=0.3 " INDEXER},
    {"deepseek4-yarn", "deepseek4", .n_layer = 3, .window = 5, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = COMPRESSED " attention.compress_ratios=4,128,0 hash_layer_count=3 swiglu_clamp_exp=0.3,0.2,0.0 swiglu_clamp_shexp=0.1,0.3,0.2 rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=8 attention.indexer.head_count=6 attention.indexer.key_length=64 attention.indexer.top_k=3"},
    {"hy_v4", "hy_v4", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .with = MLA_INDEXED " attn_sinks.weight", .keys = MLA_KIMI " attention.head_count_kv=1 attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true swiglu_clamp_exp=0.3 hyper_connection.count=4 hyper_connection.epsilon=0.01 hyper_connection.magnitude=1.5 attention.indexer.types=1,0,1,0 " INDEXER},
    {"hy_v4-all", "hy_v4", .n_layer = 2, .n_expert = 8, .n_expert_used = 3, .with = "attn_sinks.weight", .keys = MLA_KIMI " attention.head_count_kv=1 attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 hyper_connection.count=2 hyper_connection.epsilon=0.01 hyper_connection.magnitude=2.0"},
    {"mistral4", "mistral4", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .keys = MLA " attention.q_lora_rank=40 " MLA_EXPERTS " attention.temperature_scale=0.5 attention.temperature_length=8 " MLA_YARN, .bar = 1e-11},
    {"minicpm3", "minicpm3", .n_layer = 3, .with = "rope_factors_long.weight rope_factors_short.weight", .keys = MLA_HEADS " attention.q_lora_rank=40 rope.scaling.original_context_length=64"},
    {"plm", "plm", .tied = true, .keys = MLA_HEADS},
    {"deepseek2-ocr", "deepseek2-ocr", .n_layer = 3, .n_head_kv = 4, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = MLA_EXPERTS " expert_weights_norm=true expert_gating_func=2 rope.freq_base=10000.0"},
    {"grok", "grok", .n_expert = 8, .n_expert_used = 2, .with = "ffn_up.weight", .keys = "expert_feed_forward_length=48 final_logit_softcapping=20.0 rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=8 rope.scaling.yarn_beta_fast=16.0", .bar = 1e-6},
    {"grok-1", "grok", .n_expert = 8, .n_expert_used = 2, .keys = "logit_scale=0.7 embedding_scale=3.0 attention.output_scale=0.2 attn_logit_softcapping=5.0", .bar = 1e-6},
    {"arctic", "arctic", .n_expert = 8, .n_expert_used = 2},
    {"llama4", "llama4", .n_layer = 5, .n_expert = 8, .n_expert_used = 1, .with = "rope_freqs.weight", .keys = "expert_feed_forward_length=48 interleave_moe_layer_step=2"},
    {"llama4-maverick", "llama4", .n_layer = 4, .n_expert = 128, .n_expert_used = 3, .keys = "expert_feed_forward_length=16 interleave_moe_layer_step=2 rope.freq_base_swa=20000.0"},
    {"smallthinker", "smallthinker", .n_layer = 5, .window = 4096, .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 expert_gating_func=2 rope.freq_base_swa=20000.0"},
    {"smallthinker-full", "smallthinker", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48 expert_gating_func=1"},
    {"lfm2", "lfm2", .n_layer = 5, .tied = true, .keys = "attention.head_count_kv=0,2,0,2,0 shortconv.l_cache=4"},
    {"lfm2-window", "lfm2", .n_layer = 3, .window = 8, .tied = true, .keys = "attention.head_count_kv=0,1,2 shortconv.l_cache=3"},
    {"lfm2moe", "lfm2moe", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .tied = true, .with = "exp_probs_b.bias", .keys = "attention.head_count_kv=0,0,2,0 shortconv.l_cache=3 expert_feed_forward_length=48 expert_gating_func=2 leading_dense_block_count=2"},
    {"qwen35", "qwen35", .n_layer = 5, .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=3 rope.dimension_count=8 rope.dimension_sections=2,1,1,0", .bar = 1e-9},
    {"qwen35-sections", "qwen35", .n_layer = 2, .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=2 rope.dimension_count=8 rope.dimension_sections=2,1,0,0", .bar = 1e-9},
    {"qwen35-biases", "qwen35", .n_layer = 2, .with = QKV_BIAS " ffn_up.scale ssm_out.scale", .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=2 rope.dimension_count=8 rope.dimension_sections=2,1,1,0", .bar = 1e-9},
    {"qwen35-marked", "qwen35", .n_layer = 3, .keys = SSM("3", "96", "16", "6", "2") " attention.recurrent_layers=1,0,1 rope.dimension_count=8 rope.dimension_sections=2,1,1,0", .bar = 1e-9},
    {"qwen35-mtp", "qwen35", .n_layer = 6, .mtp = true, .with = NEXTN(5) "nextn.shared_head_norm.weight nextn.embed_tokens.weight nextn.shared_head_head.weight", .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=3 rope.dimension_count=8 rope.dimension_sections=2,1,1,0 nextn_predict_layers=1", .bar = 1e-9},
    {"qwen35moe", "qwen35moe", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=2 rope.dimension_count=8 rope.dimension_sections=2,1,1,0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80", .bar = 1e-9},
    {"qwen35moe-scales", "qwen35moe", .n_layer = 2, .n_expert = 8, .n_expert_used = 3, .with = EXPERT_SCALES SHARED_SCALES, .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=2 rope.dimension_count=8 rope.dimension_sections=2,1,1,0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80", .bar = 1e-9},
    {"qwen35moe-mtp", "qwen35moe", .n_layer = 4, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = NEXTN(3) ROUTER(3), .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=2 rope.dimension_count=8 rope.dimension_sections=2,1,1,0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 nextn_predict_layers=1", .bar = 1e-9},
    {"qwen4exp", "qwen4exp", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=2 rope.dimension_count=8 rope.dimension_sections=2,1,1,0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 hyper_connection.count=4 hyper_connection.low_rank=8 attention.indexer.head_count=3 attention.indexer.key_length=24 attention.indexer.top_k=12 attention.compress_ratios=0,4,0,4 " NGRAMS},
    {"qwen4exp-dense", "qwen4exp", .n_layer = 2, .n_expert = 4, .n_expert_used = 2, .tied = true, .keys = SSM("3", "96", "16", "6", "2") " attention.recurrent_layers=1,0 rope.dimension_count=8 rope.dimension_sections=2,1,1,0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 hyper_connection.count=4 hyper_connection.low_rank=8 attention.indexer.head_count=2 attention.indexer.key_length=8 attention.indexer.top_k=8"},
    {"qwen3next", "qwen3next", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .keys = SSM("4", "96", "16", "6", "2") " full_attention_interval=3 rope.dimension_count=8 expert_feed_forward_length=48 expert_shared_feed_forward_length=80", .bar = 1e-9},
    {"qwen3next-scales", "qwen3next", .n_layer = 2, .n_expert = 8, .n_expert_used = 3, .with = EXPERT_SCALES SHARED_SCALES, .keys = SSM("4", "96", "16", "6", "2") " full_attention_interval=2 rope.dimension_count=8 expert_feed_forward_length=48 expert_shared_feed_forward_length=80", .bar = 1e-9},
    {"qwen3next-old", "qwen3next", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = "ssm_in.weight", .keys = SSM("4", "64", "16", "4", "2") " full_attention_interval=3 rope.dimension_count=8 expert_feed_forward_length=48 expert_shared_feed_forward_length=80", .bar = 1e-9},
    {"qwen3next-mtp", "qwen3next", .n_layer = 4, .mtp = true, .n_expert = 8, .n_expert_used = 3, .with = NEXTN(3) ROUTER(3) "nextn.shared_head_norm.weight", .keys = SSM("4", "96", "16", "6", "2") " full_attention_interval=3 rope.dimension_count=8 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 nextn_predict_layers=1", .bar = 1e-9},
    {"granitehybrid", "granitehybrid", .n_layer = 5, .tied = true, .with = "ssm_conv1d.bias", .keys = SSM("4", "128", "24", "8", "2") " attention.head_count_kv=0,2,0,2,0 embedding_scale=3.0 residual_scale=0.6 logit_scale=2.5 attention.scale=0.2 rope.scaling.finetuned=false", .bar = 1e-11},
    {"granitehybrid-moe", "granitehybrid", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = "ssm_conv1d.bias", .keys = SSM("4", "128", "16", "8", "4") " attention.head_count_kv=0,0,2 expert_shared_feed_forward_length=80", .bar = 1e-11},
    {"mamba", "mamba", .n_layer = 3, .tied = true, .with = "ssm_conv1d.bias ssm_dt.bias", .keys = MAMBA("4", "128", "16", "8") " feed_forward_length=0 attention.head_count=0 attention.head_count_kv=0", .bar = 1e-11},
    {"mamba-rms", "mamba", .with = "ssm_conv1d.bias ssm_dt.bias", .keys = MAMBA("3", "128", "12", "5") " ssm.dt_b_c_rms=true feed_forward_length=0 attention.head_count=0 attention.head_count_kv=0", .bar = 1e-11},
    {"jamba", "jamba", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .with = ROUTER(1) ROUTER(3) "ssm_conv1d.bias ssm_dt.bias", .keys = MAMBA("4", "128", "16", "8") " attention.head_count_kv=0,0,2,0", .bar = 1e-11},
    {"plamo2", "plamo2", .n_layer = 4, .with = "attn_qkv.weight ssm_dt.bias", .keys = MAMBA("4", "128", "16", "8") " ssm.group_count=0 attention.head_count=4,0,2,0 attention.head_count_kv=2,0,1,0 attention.key_length=16 attention.value_length=24 rope.dimension_count=16", .bar = 1e-11},
    {"mamba2", "mamba2", .n_layer = 3, .tied = true, .with = "ssm_conv1d.bias", .keys = SSM("4", "128", "16", "8", "2") " feed_forward_length=0 attention.head_count=0 attention.head_count_kv=0", .bar = 1e-11},
    {"nemotron_h", "nemotron_h", .n_layer = 6, .with = "ssm_conv1d.bias", .keys = SSM("4", "96", "16", "6", "2") " attention.head_count_kv=0,0,2,0,0,0 feed_forward_length=0,128,0,0,96,0", .bar = 1e-11},
    {"nemotron_h_moe", "nemotron_h_moe", .n_layer = 5, .n_expert = 8, .n_expert_used = 3, .with = "ssm_conv1d.bias exp_probs_b.bias", .keys = SSM("4", "96", "16", "6", "3") " attention.head_count_kv=0,0,2,0,0 feed_forward_length=0,48,0,48,0 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 expert_weights_norm=true expert_weights_scale=2.5", .bar = 1e-11},
    {"nemotron_h_moe-latent", "nemotron_h_moe", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .with = "ssm_conv1d.bias exp_probs_b.bias", .keys = SSM("4", "96", "16", "6", "2") " attention.head_count_kv=0,2,0,0 feed_forward_length=0,0,0,48 expert_feed_forward_length=48 expert_shared_feed_forward_length=80 moe_latent_size=32", .bar = 1e-11},
    {"falcon-h1", "falcon-h1", .n_layer = 3, .with = "ssm_conv1d.bias", .keys = SSM("4", "96", "16", "6", "2"), .bar = 1e-11},
    {"falcon-h1-norm", "falcon-h1", .n_layer = 2, .with = "ssm_conv1d.bias ssm_norm.weight", .keys = SSM("4", "64", "16", "4", "2"), .bar = 1e-11},
    {"minimax-01", "minimax-01", .n_layer = 5, .n_expert = 4, .n_expert_used = 2, .keys = "full_attention_interval=3 residual_scale=1.7 rope.dimension_count=8"},
    {"kimi-linear", "kimi-linear", .n_layer = 5, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = MLA_KIMI " attention.head_count_kv=0,0,1,0,1 " MLA_EXPERTS " expert_gating_func=2 ssm.conv_kernel=4 kda.head_dim=24", .bar = 1e-11},
    {"kimi-linear-zeros", "kimi-linear", .n_layer = 3, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias", .keys = MLA_KIMI " attention.head_count=4,0,4 attention.head_count_kv=1,0,1 " MLA_EXPERTS " expert_gating_func=2 ssm.conv_kernel=4 kda.head_dim=24", .bar = 1e-11},
    {"kimi-k3", "kimi-k3", .n_layer = 6, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias blk.2.attn_gate.weight=96 attn_gate.weight ffn_latent_norm.weight", .keys = MLA_KIMI " attention.head_count_kv=0,0,1,0,0,1 attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true expert_latent_length=32 ssm.conv_kernel=4 kda.head_dim=24 kda.gate_lower_bound=-5.0 attn_res.block_size=2 activation.situ_beta=1.5 activation.situ_linear_beta=1.0", .bar = 1e-9},
    {"kimi-k3-plain", "kimi-k3", .n_layer = 3, .n_expert = 4, .n_expert_used = 2, .with = "exp_probs_b.bias", .keys = MLA_KIMI " attention.head_count_kv=0,1,0 " MLA_EXPERTS " expert_gating_func=2 ssm.conv_kernel=3 kda.head_dim=16 attn_res.block_size=0 activation.situ_beta=1.5 activation.situ_linear_beta=0.0 kda.gate_lower_bound=-1.0e999", .bar = 1e-11},
    {"kimi-k3-held", "kimi-k3", .n_layer = 3, .n_expert = 4, .n_expert_used = 2, .with = "exp_probs_b.bias", .keys = MLA_KIMI " attention.head_count_kv=0,1,0 " MLA_EXPERTS " expert_gating_func=2 ssm.conv_kernel=3 kda.head_dim=16 attn_res.block_size=0 activation.situ_beta=1.5 activation.situ_linear_beta=0.0 kda.gate_lower_bound=0.0", .bar = 1e-11},
    {"glm5-next", "glm5-next", .n_layer = 6, .n_expert = 8, .n_expert_used = 3, .with = MLA_INDEXED, .keys = MLA_KIMI_UNROTATED " attention.q_lora_rank=40 expert_weights_norm=true hyper_connection.count=4 hyper_connection.sinkhorn_iterations=3 hyper_connection.epsilon=0.001 ssm.conv_kernel=4 kda.head_dim=24 attention.indexer.head_count=6 attention.indexer.key_length=32 attention.head_count_kv=0,1,1,0,1,1 attention.indexer.kpool=4 attention.indexer.top_k=8 attention.indexer.types=0,1,0,0,1,0 kda.gate_lower_bound=-5.0 swiglu_clamp_exp=0.3 " MLA_EXPERTS},
    {"glm5-next-plain", "glm5-next", .n_layer = 3, .n_expert = 4, .n_expert_used = 2, .with = MLA_INDEXED, .keys = MLA_KIMI_UNROTATED " attention.q_lora_rank=40 expert_weights_norm=true hyper_connection.count=4 hyper_connection.sinkhorn_iterations=3 hyper_connection.epsilon=0.001 ssm.conv_kernel=4 kda.head_dim=24 attention.indexer.head_count=6 attention.indexer.key_length=32 attention.head_count_kv=1,0,1 attention.indexer.kpool=3 attention.indexer.top_k=9 attention.indexer.kpool_select_tail=true expert_gating_func=2 " MOE_KEYS},
    {"bailingmoe3", "bailingmoe3", .n_layer = 4, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias blk.1.attn_gate.weight=4", .keys = MLA_KIMI " attention.head_count_kv=0,1,0,0 attention.q_lora_rank=40 " MLA_EXPERTS " expert_gating_func=2 expert_weights_norm=true expert_group_count=4 expert_group_used_count=2 ssm.conv_kernel=4 kda.head_dim=32 kda.gate_lower_bound=-5.0 swiglu_clamp_exp=0.0,0.0,0.4,0.0 swiglu_clamp_shexp=0.3,0.0,0.5,0.0"},
    {"bailingmoe3-mtp", "bailingmoe3", .n_layer = 4, .mtp = true, .tied = true, .n_expert = 8, .n_expert_used = 3, .with = "exp_probs_b.bias blk.1.attn_gate.weight=4 blk.3.attn_gate.weight=4 nextn.shared_head_norm.weight " NEXTN(3) ROUTER(3), .keys = MLA_KIMI " attention.head_count_kv=0,1,0,1 " MLA_EXPERTS " expert_gating_func=2 expert_shared_feed_forward_length=80 ssm.conv_kernel=3 kda.head_dim=16 kda.gate_lower_bound=-2.0 nextn_predict_layers=1", .bar = 1e-11},
    /* Files of PowerInfer are compared with scripts/make-powerinfer-figures. */
    {"bamboo", "bamboo", .with = PREDICTOR(0) PREDICTOR(1)},
    {"bamboo-predicted", "bamboo", .predicts = true, .with = PREDICTOR(0) PREDICTOR(1)},
    {"llama-powerinfer", "llama", .with = PREDICTOR(0) PREDICTOR(1)},
    {"llama-predicted", "llama", .predicts = true, .with = PREDICTOR(0) PREDICTOR(1), .keys = "!powerinfer.sparse_threshold=0.05"},
    {"falcon-powerinfer", "falcon", .with = PREDICTOR(0) PREDICTOR(1) "attn_qkv.weight"},
    {"falcon-predicted", "falcon", .predicts = true, .with = PREDICTOR(0) PREDICTOR(1) "attn_qkv.weight", .keys = "!powerinfer.sparse_threshold=0.01"},
    {"opt", "opt", .n_head_kv = 4, .tied = true, .with = PREDICTOR(0) PREDICTOR(1) "ffn_down_t.bias ffn_up.bias " QKV_BIAS OUT_BIAS NORM_BIAS},
    {"opt-predicted", "opt", .n_head_kv = 4, .predicts = true, .with = PREDICTOR(0) PREDICTOR(1) "ffn_down_t.bias ffn_up.bias " QKV_BIAS OUT_BIAS NORM_BIAS, .keys = "!powerinfer.sparse_threshold=0.02"},
    {"opt-dense", "opt", .n_head_kv = 4, .with = ALL_BIAS},
    {"rwkv6", "rwkv6", .n_layer = 4, .with = RWKV_BIAS "time_mix_lerp_fused.weight", .keys = RWKV6 " wkv.head_size=16 rescale_every_n_layers=2", .bar = 1e-11},
    {"rwkv6-old", "rwkv6", .with = RWKV_BIAS, .keys = RWKV6 " wkv.head_size=16", .bar = 1e-11},
    {"rwkv7", "rwkv7", .n_embd = 128, .n_layer = 3, .with = GATE(0) GATE(1) GATE(2) RWKV_BIAS "time_mix_v0.weight time_mix_v1.weight time_mix_v2.weight", .keys = RWKV7, .bar = 1e-11},
    {"rwkv6qwen2", "rwkv6qwen2", .n_layer = 3, .with = "time_mix_lerp_fused.weight time_mix_key.bias time_mix_value.bias time_mix_receptance.bias output_norm.bias", .keys = "attention.head_count=0 attention.head_count_kv=2 wkv.head_size=16 time_mix_extra_dim=8 time_decay_extra_dim=12 token_shift_count=1", .bar = 1e-11},
    {"arwkv7", "arwkv7", .n_embd = 128, .n_layer = 3, .with = GATE(0) GATE(1) GATE(2) "time_mix_v0.weight time_mix_v1.weight time_mix_v2.weight time_mix_ln.weight time_mix_ln.bias", .keys = RWKV7 " token_shift_count=1", .bar = 1e-11},
    {"arwkv7-plain", "arwkv7", .n_embd = 128, .with = "time_mix_v0.weight time_mix_v1.weight time_mix_v2.weight", .keys = RWKV7 " token_shift_count=1", .bar = 1e-11},
    {"t5", "t5", .n_layer = 3, .n_head_kv = 4, .with = "dec.blk.0.ffn_gate.weight=128 enc.blk.1.ffn_gate.weight=128", .keys = T5 " decoder_block_count=2", .bar = 1e-6},
    {"t5-own", "t5", .n_layer = 3, .n_head_kv = 4, .tied = true, .with = "attn_rel_b.weight cross_attn_rel_b.weight", .keys = T5, .bar = 1e-11},
    {"dream", "dream", .with = QKV_BIAS " output.bias"},
    {"llada", "llada", .with = "attn_output.bias rope_freqs.weight"},
    {"llada-moe", "llada-moe", .n_expert = 8, .n_expert_used = 3, .keys = "expert_feed_forward_length=48"},
    {"rnd1", "rnd1", .n_expert = 8, .n_expert_used = 3, .tied = true, .keys = "expert_feed_forward_length=48"},
    /* Encoders are compared with scripts/make-encoder-figures by hidden states. Scores of T5 are not
     * scaled: they are four times as large, and so are their roundings. */
    {"bert", "bert", .n_layer = 3, .n_head_kv = 4, .with = BERT},
    {"nomic-bert", "nomic-bert", .n_layer = 3, .n_head_kv = 4, .with = "token_types.weight=2 token_embd_norm.bias post_attention_norm.bias post_ffw_norm.bias"},
    {"nomic-bert-moe", "nomic-bert-moe", .n_layer = 4, .n_head_kv = 4, .n_expert = 8, .n_expert_used = 2, .with = BERT, .keys = "moe_every_n_layers=2"},
    {"jina-bert-v2", "jina-bert-v2", .n_layer = 3, .n_head_kv = 4, .with = "blk.1.ffn_gate.weight=128 blk.2.ffn_up.weight=256 " BERT},
    {"jina-bert-v2-norms", "jina-bert-v2", .n_layer = 2, .n_head_kv = 4, .with = "attn_q_norm.weight attn_q_norm.bias attn_k_norm.weight attn_k_norm.bias attn_norm_2.weight attn_norm_2.bias " BERT},
    {"jina-bert-v3", "jina-bert-v3", .n_layer = 2, .n_head_kv = 4, .with = BERT},
    {"modern-bert", "modern-bert", .n_layer = 4, .n_head_kv = 4, .window = 8, .with = "attn_qkv.weight", .keys = "rope.freq_base_swa=20000.0"},
    {"modern-bert-silu", "modern-bert", .n_layer = 3, .n_head_kv = 4, .window = 7, .with = "attn_qkv.weight attn_norm.weight", .keys = "hidden_activation=silu attention.sliding_window_pattern=2"},
    {"neo-bert", "neo-bert", .n_layer = 2, .n_head_kv = 4, .with = "attn_qkv.weight"},
    {.name = "eurobert", .arch = "eurobert"},
    {.name = "llama-embed", .arch = "llama-embed"},
    {"gemma-embedding", "gemma-embedding", .n_layer = 7, .window = 9},
    {"t5encoder", "t5encoder", .n_layer = 3, .n_head_kv = 4, .with = "enc.blk.0.ffn_gate.weight=128", .keys = "attention.relative_buckets_count=12 attention.key_length=24 attention.value_length=24", .bar = 1e-11},
    {"t5encoder-own", "t5encoder", .n_head_kv = 4, .with = "attn_rel_b.weight", .keys = "attention.relative_buckets_count=32", .bar = 1e-11},
    {.name = NULL},
};

/* Of each kind: with a vocabulary of its own, one that reads the last layer; with embeddings and an
 * output of its own and other options; with those of the model; for a model with states. */
const struct support_fixture support_drafters[] = {
    {"eagle3", "eagle3", .base = "gpt-oss", .n_layer = 1, .with = "output.weight=40 d2t=40", .keys = "target_layers=0,2,3 target_hidden_size=64"},
    {"eagle3-own", "eagle3", .base = "mimo2", .n_layer = 1, .n_embd = 96, .with = "token_embd.weight output.weight=300 rope_freqs.weight",
     .keys = "target_layers=1,2,4 target_hidden_size=64 norm_before_residual=true norm_before_fc=true"},
    {"eagle3-shared", "eagle3", .base = "qwen3", .n_layer = 1, .keys = "target_layers=0,1,1 target_hidden_size=64"},
    {"eagle3-recurrent", "eagle3", .base = "qwen35", .n_layer = 1, .with = "output.weight=40 d2t=40", .keys = "target_layers=1,2,3 target_hidden_size=64", .bar = 1e-9},
    {"dflash", "dflash", .base = "qwen3", .n_layer = 3, .keys = "target_layers=0,1 block_size=8 !tokenizer.ggml.mask_token_id=7"},
    {"dflash-window", "dflash", .base = "qwen3", .n_layer = 3, .window = 6, .with = "output.weight=40 d2t=40",
     .keys = "target_layers=1,0 attention.sliding_window_pattern=1,0,1 !tokenizer.ggml.mask_token_id=7"},
    {"dflash-own", "dflash", .base = "mimo2", .n_layer = 2, .with = "token_embd.weight output.weight=40 d2t=40 attn_sinks.weight",
     .keys = "target_layers=1,2,4 embedding_scale=1.5 attention.scale=0.3 attention.value_scale=0.7 !tokenizer.ggml.mask_token_id=9"},
    {.name = NULL},
};
