/* test/support_unary.c: see the header. */
#include "test/support_unary.h"
#include <math.h>

/* If e^-x overflows the result is 0, as it should be. */
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double support_unary(enum engine_unary f, double x)
{
    if (isnan(x)) return x;
    switch (f) {
    case ENGINE_SILU:
        return x * sigmoid(x);
    case ENGINE_GELU:
        return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    case ENGINE_GELU_ERF:
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case ENGINE_GELU_QUICK:
        return x * sigmoid(1.702 * x);
    case ENGINE_RELU:
        return x > 0 ? x : 0;
    case ENGINE_RELU_SQR:
        return x > 0 ? x * x : 0;
    case ENGINE_SIGMOID:
        return sigmoid(x);
    case ENGINE_TANH:
        return tanh(x);
    case ENGINE_EXP:
        return exp(x);
    case ENGINE_SQRT:
        return sqrt(x);
    case ENGINE_SOFTPLUS:
        return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case ENGINE_STEP:
        return x < 0 ? 0 : 1;
    case ENGINE_UNARY_COUNT:
        break;
    }
    return NAN;
}
