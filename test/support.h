/* test/support.h: included first by every test program: cmocka and the headers that it requires, in
 * its order. */
#pragma once

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
