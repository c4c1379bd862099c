/* base/utf8.c: decoding and encoding of single code points. See base/utf8.h. */
#include "base/utf8.h"

/* What a lead byte specifies; length 0 for bytes that cannot lead. */
struct lead_byte {
    size_t length;
    int32_t min;  /* the smallest code point of that length: smaller ones are overlong */
    int32_t bits; /* the lead byte's part of the code point */
};

static struct lead_byte lead_of(unsigned char c)
{
    if (c < 0x80) return (struct lead_byte){1, 0, c};
    if (c >= 0xc2 && c < 0xe0) return (struct lead_byte){2, 0x80, c & 0x1f};
    if (c >= 0xe0 && c < 0xf0) return (struct lead_byte){3, 0x800, c & 0x0f};
    if (c >= 0xf0 && c < 0xf5) return (struct lead_byte){4, 0x10000, c & 0x07};
    return (struct lead_byte){0};
}

/* Returns the number of bytes of s[0..size) that begin one valid sequence: the length of a complete
 * sequence (*whole is 1, *code its code point), `size` if the sequence is incomplete, or 0 if it is
 * not valid. */
static size_t scan(const char *s, size_t size, int32_t *code, int *whole)
{
    const struct lead_byte lead = lead_of((unsigned char)s[0]);
    int32_t value = lead.bits;
    *whole = 0;
    for (size_t i = 1; i < lead.length; i++) {
        if (i == size) return size;
        unsigned char c = (unsigned char)s[i];
        if ((c & 0xc0) != 0x80) return 0;
        value = value << 6 | (c & 0x3f);
        /* The second byte determines overlong forms, surrogates and values above 0x10FFFF. */
        if (i == 1 && lead.length >= 3) {
            int32_t low = value << 6 * (lead.length - 2),
                    high = low + (1 << 6 * (lead.length - 2)) - 1;
            if (high < lead.min || low > 0x10ffff || (low >= 0xd800 && high <= 0xdfff)) return 0;
        }
    }
    *code = value;
    *whole = lead.length > 0;
    return lead.length;
}

size_t base_utf8_decode(const char *s, size_t size, int32_t *code)
{
    int whole;
    size_t used = scan(s, size, code, &whole);
    if (whole) return used;
    *code = -1;
    return 1;
}

size_t base_utf8_encode(int32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0}; /* lead bits by length */
    out[0] = (char)(mark[length] | code);
    return length;
}

size_t base_utf8_open_tail(const char *s, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        int32_t code;
        int whole;
        const char *start = s + size - back;
        if (((unsigned char)*start & 0xc0) == 0x80) continue; /* inside a sequence */
        return scan(start, back, &code, &whole) == back && !whole ? back : 0;
    }
    return 0;
}
