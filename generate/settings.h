/* generate/settings.h: what a user may choose for one text: data, of which a request's options are
 * made (struct generate_options has what these need: compiled constraints, biases of ids). */
#pragma once

#include "generate/constraint_source.h"
#include "sample/sample.h"

struct generate_settings {
    struct sample_options sample; /* its numbers and `samplers` */
    struct base_texts bias;       /* "ID+BIAS", "ID-BIAS" or "TEXT+BIAS" */
    struct base_texts dry_breaker;
    struct base_texts stop;
    struct base_texts lora; /* "NAME" or "NAME:SCALE": the adapters that act on the text */
    struct generate_constraint_source constraint;
    int64_t max_tokens;  /* -1: to the end, or a full context */
    int64_t max_thought; /* tokens of reasoning; -1: no limit */
    int64_t seed;        /* -1: a new one for each text */
    int64_t indent;      /* spaces for each level of JSON, which is in lines; -1: compact */
    int64_t logprobs;    /* best tokens that are reported for each token; -1: none */
    bool ignore_eos;     /* end-of-text tokens are never chosen */
};
