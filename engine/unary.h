/* engine/unary.h: the elementwise functions of one input. */
#pragma once

#include <stdbool.h>

enum engine_unary {
    ENGINE_SILU,       /* x / (1 + exp(-x)) */
    ENGINE_GELU,       /* tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    ENGINE_GELU_ERF,   /* 0.5 x (1 + erf(x / sqrt 2)) */
    ENGINE_GELU_QUICK, /* x / (1 + exp(-1.702 x)) */
    ENGINE_RELU,
    ENGINE_RELU_SQR,
    ENGINE_SIGMOID,
    ENGINE_TANH,
    ENGINE_EXP,
    ENGINE_SQRT,
    ENGINE_SOFTPLUS,
    ENGINE_STEP, /* 0 for x < 0, otherwise 1; NaN for NaN */
    ENGINE_UNARY_COUNT
};

/* Whether f gives zeros: for half of its inputs or more. */
static inline bool engine_unary_has_zeros(enum engine_unary f)
{
    return f == ENGINE_RELU || f == ENGINE_RELU_SQR;
}
