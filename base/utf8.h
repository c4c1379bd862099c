/* base/utf8.h: UTF-8 decoding and encoding, and characters, shared by several rooms. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Decodes one code point from s[0..size), size > 0. Returns the bytes used (1 to 4) and the code
 * point, or 1 and -1 for a byte that does not begin a valid shortest-form sequence. */
size_t base_utf8_decode(const char *s, size_t size, int32_t *code);

/* Writes the code point (0 to 0x10FFFF) to out[4]; returns the bytes written. */
size_t base_utf8_encode(int32_t code, char *out);

/* Returns the number of bytes (0 to 3) at the end of s[0..size) that begin a sequence, valid so far
 * but incomplete. A stream writes these bytes together with the rest of their sequence. */
size_t base_utf8_open_tail(const char *s, size_t size);

/* Returns the value of a hexadecimal digit, or -1. */
static inline int base_hex_digit(int c)
{
    const int low = c | 0x20;
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* Returns the last byte of text[size] that is `byte`, NULL if there is none. */
static inline const char *base_find_last(const char *text, char byte, size_t size)
{
    while (size > 0)
        if (text[--size] == byte) return text + size;
    return NULL;
}
