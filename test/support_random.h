/* test/support_random.h: random numbers for tests and benches (splitmix64): a state is any number;
 * the numbers after equal states are equal on every machine. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t support_random(uint64_t *state);
uint32_t support_random_below(uint64_t *state, uint32_t n); /* 0 .. n - 1 */
float support_random_float(uint64_t *state);                /* in [-2, 2) */
float support_random_gauss(uint64_t *state);                /* nearly normal, mean 0, deviation 1 */

/* 64-bit FNV-1a, to store in a table or file instead of many bytes. */
uint64_t support_hash(const void *data, size_t size);
