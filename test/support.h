/* test/support.h: included first by every test program: cmocka and the headers that it requires, in
 * its order. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
