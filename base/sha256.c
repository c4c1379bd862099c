/* base/sha256.c: FIPS 180-4, section 6.2. See base/sha256.h. */
#include "base/sha256.h"
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t load(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Compresses one block of 64 bytes into the state: the message schedule w, then 64 rounds. */
static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++) w[i] = load(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        const uint32_t x = w[i - 15], y = w[i - 2];
        const uint32_t s0 = rotated(x, 7) ^ rotated(x, 18) ^ x >> 3;
        const uint32_t s1 = rotated(y, 17) ^ rotated(y, 19) ^ y >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        const uint32_t s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
        const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i];
        const uint32_t s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
        const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void base_sha256_init(struct base_sha256 *h)
{
    *h = (struct base_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                        0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void base_sha256_add(struct base_sha256 *h, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    const size_t held = h->size % 64;
    if (size == 0) return;
    h->size += size;
    if (held > 0) {
        const size_t more = size < 64 - held ? size : 64 - held;
        memcpy(h->block + held, from, more);
        from += more;
        size -= more;
        if (held + more < 64) return;
        add_block(h->state, h->block);
    }
    for (; size >= 64; from += 64, size -= 64) add_block(h->state, from);
    memcpy(h->block, from, size);
}

void base_sha256_hex(struct base_sha256 *h, char out[BASE_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char padding[64] = {0x80};
    const uint64_t bits = h->size * 8;
    unsigned char length[8];
    /* The message is padded to whole blocks: 0x80, zeros, and its length in bits (big-endian). */
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    base_sha256_add(h, padding, (size_t)((119 - h->size % 64) % 64 + 1));
    base_sha256_add(h, length, sizeof length);
    for (int i = 0; i < BASE_SHA256_SIZE; i++) {
        const uint32_t byte = h->state[i / 4] >> (24 - 8 * (i % 4)) & 255;
        out[2 * i] = digits[byte >> 4];
        out[2 * i + 1] = digits[byte & 15];
    }
    out[BASE_SHA256_HEX - 1] = '\0';
}

bool base_sha256_is_hex(const char *text)
{
    return strspn(text, "0123456789abcdefABCDEF") == BASE_SHA256_HEX - 1 &&
           text[BASE_SHA256_HEX - 1] == '\0';
}
