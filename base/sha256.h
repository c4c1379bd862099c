/* base/sha256.h: SHA-256 (FIPS 180-4), to name a model file by its content.
 *
 * Implemented here because it is short, while a cryptographic library would be a dependency of
 * every build. Not for secrets: it has no protection against side channels. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BASE_SHA256_SIZE = 32, BASE_SHA256_HEX = 65 /* with its terminator */ };

struct base_sha256 {
    uint32_t state[8];
    uint64_t size;           /* bytes so far */
    unsigned char block[64]; /* bytes of an incomplete block */
};

void base_sha256_init(struct base_sha256 *h);
void base_sha256_add(struct base_sha256 *h, const void *bytes, size_t size);
/* The digest as lower-case hexadecimal digits; the state cannot be used afterwards. */
void base_sha256_hex(struct base_sha256 *h, char out[BASE_SHA256_HEX]);
/* Returns whether the text is a digest in hexadecimal digits of either case. */
bool base_sha256_is_hex(const char *text);
