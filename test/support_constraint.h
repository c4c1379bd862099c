/* test/support_constraint.h: compiles constraints of all kinds by one call. */
#pragma once

#include "sample/constrain/constraint.h"

enum support_kind { GRAMMAR, REGEX, SCHEMA };

struct constraint *support_compile(enum support_kind kind, const char *text, size_t size,
                                   struct base_error *err);

/* 1: accepted, 0: not, -1: a limit was exceeded (which must be BASE_FAILED). */
int support_accepts(const struct constraint *c, const char *text, size_t size);
