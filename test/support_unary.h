/* test/support_unary.h: the functions of one variable in double precision. */
#pragma once

#include "engine/graph.h"

/* f(x); NaN for NaN, except that a step function returns 0 */
double support_unary(enum engine_unary f, double x);
