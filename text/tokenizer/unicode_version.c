/* text/tokenizer/unicode_version.c: the character classes of Unicode 15.1, with libraries of other
 * versions. See text/tokenizer/pre.h.
 *
 * PCRE2 and utf8proc have the Unicode version of their release, so the same text would have other
 * ids on another machine. The ranges list what was assigned after Unicode 14. Each has a character
 * that is older than 14, has the range's class in 15.1 and the same length in UTF-8. Source:
 * llama.cpp's unicode-data.cpp (15.1). */
#include "text/tokenizer/pre.h"
#include <utf8proc.h>

enum {
    LETTER = 0x10450,   /* Lo */
    MODIFIER = 0x16b40, /* Lm */
    SMALL = 0x10428,    /* Ll */
    MARK = 0x101fd,     /* Mn */
    MARK_3 = 0xe31,
    SPACING = 0x11000, /* Mc */
    SPACING_3 = 0xcbe,
    DIGIT = 0x104a0,  /* Nd */
    NUMBER = 0x10107, /* No */
    PUNCTUATION = 0x10100,
    SYMBOL = 0x1d100,
    SYMBOL_3 = 0x2ff0,
    HAN = 0x20000,
    NONE = 0x1fffe, /* unassigned: noncharacters, which no version will assign */
    NONE_3 = 0xfdd0
};

/* clang-format off */
static const struct {
    int32_t first, last, same_class;
} ranges[] = {
    {0x88f, 0x88f, NONE_3}, {0x892, 0x897, NONE_3}, {0xc5b, 0xc5c, NONE_3}, {0xcd7, 0xcdc, NONE_3},
    {0xcf3, 0xcf3, SPACING_3}, {0xece, 0xece, MARK_3}, {0x1acf, 0x1aff, NONE_3},
    {0x1b4d, 0x1b4f, NONE_3}, {0x1b7f, 0x1b7f, NONE_3}, {0x1c89, 0x1c8f, NONE_3},
    {0x20c1, 0x20cf, NONE_3}, {0x2427, 0x243f, NONE_3}, {0x2b96, 0x2b96, NONE_3},
    {0x2ffc, 0x2fff, SYMBOL_3}, {0x31e4, 0x31ee, NONE_3}, {0x31ef, 0x31ef, SYMBOL_3},
    {0xa7cb, 0xa7cf, NONE_3}, {0xa7d2, 0xa7d2, NONE_3}, {0xa7d4, 0xa7d4, NONE_3},
    {0xa7da, 0xa7f1, NONE_3}, {0xfbc3, 0xfbd2, NONE_3}, {0xfd90, 0xfd91, NONE_3},
    {0xfdc8, 0xfdce, NONE_3}, {0x105bd, 0x105ff, NONE}, {0x10940, 0x1097f, NONE},
    {0x10d3a, 0x10e5f, NONE}, {0x10eb2, 0x10efc, NONE}, {0x10efd, 0x10eff, MARK},
    {0x1123f, 0x11240, LETTER}, {0x11241, 0x11241, MARK}, {0x11375, 0x113ff, NONE},
    {0x116ca, 0x116ff, NONE}, {0x11b00, 0x11b09, PUNCTUATION}, {0x11b0a, 0x11bff, NONE},
    {0x11daa, 0x11edf, NONE}, {0x11f00, 0x11f01, MARK}, {0x11f02, 0x11f02, LETTER},
    {0x11f03, 0x11f03, SPACING}, {0x11f04, 0x11f10, LETTER}, {0x11f12, 0x11f33, LETTER},
    {0x11f34, 0x11f35, SPACING}, {0x11f36, 0x11f3a, MARK}, {0x11f3e, 0x11f3f, SPACING},
    {0x11f40, 0x11f40, MARK}, {0x11f41, 0x11f41, SPACING}, {0x11f42, 0x11f42, MARK},
    {0x11f43, 0x11f4f, PUNCTUATION}, {0x11f50, 0x11f59, DIGIT}, {0x11f5a, 0x11faf, NONE},
    {0x1342f, 0x1342f, LETTER}, {0x13440, 0x13440, MARK}, {0x13441, 0x13446, LETTER},
    {0x13447, 0x13455, MARK}, {0x13456, 0x143ff, NONE}, {0x14647, 0x167ff, NONE},
    {0x16b90, 0x16e3f, NONE}, {0x16e9b, 0x16eff, NONE}, {0x16ff2, 0x16fff, NONE},
    {0x187f8, 0x187ff, NONE}, {0x18cd6, 0x18cff, NONE}, {0x18d09, 0x1afef, NONE},
    {0x1b132, 0x1b132, LETTER}, {0x1b155, 0x1b155, LETTER}, {0x1bca4, 0x1ceff, NONE},
    {0x1d2c0, 0x1d2d3, NUMBER}, {0x1df25, 0x1df2a, SMALL}, {0x1e030, 0x1e06d, MODIFIER},
    {0x1e08f, 0x1e08f, MARK}, {0x1e4d0, 0x1e4ea, LETTER}, {0x1e4eb, 0x1e4eb, MODIFIER},
    {0x1e4ec, 0x1e4ef, MARK}, {0x1e4f0, 0x1e4f9, DIGIT}, {0x1e4fa, 0x1e7df, NONE},
    {0x1f6d8, 0x1f6db, NONE}, {0x1f6dc, 0x1f6dc, SYMBOL}, {0x1f774, 0x1f776, SYMBOL},
    {0x1f777, 0x1f77a, NONE}, {0x1f77b, 0x1f77f, SYMBOL}, {0x1f7d9, 0x1f7d9, SYMBOL},
    {0x1f8b2, 0x1f8ff, NONE}, {0x1fa54, 0x1fa5f, NONE}, {0x1fa75, 0x1fa77, SYMBOL},
    {0x1fa87, 0x1fa88, SYMBOL}, {0x1fa89, 0x1fa8f, NONE}, {0x1faad, 0x1faaf, SYMBOL},
    {0x1fabb, 0x1fabd, SYMBOL}, {0x1fabe, 0x1fabe, NONE}, {0x1fabf, 0x1fabf, SYMBOL},
    {0x1fac6, 0x1facd, NONE}, {0x1face, 0x1facf, SYMBOL}, {0x1fada, 0x1fadb, SYMBOL},
    {0x1fadc, 0x1fadf, NONE}, {0x1fae8, 0x1fae8, SYMBOL}, {0x1fae9, 0x1faef, NONE},
    {0x1faf7, 0x1faf8, SYMBOL}, {0x1fbcb, 0x1fbef, NONE}, {0x1fbfa, 0x1ffff, NONE},
    {0x2b739, 0x2b739, HAN}, {0x2b73a, 0x2b73f, NONE}, {0x2cea2, 0x2ceaf, NONE},
    {0x2ebf0, 0x2ee5d, HAN}, {0x31350, 0x323af, HAN}, {0x323b0, 0xe0000, NONE},
};
/* clang-format on */

int32_t text_pin_unicode(int32_t code)
{
    size_t low = 0, high = sizeof ranges / sizeof ranges[0];
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < sizeof ranges / sizeof ranges[0] && code >= ranges[low].first;
    return found ? ranges[low].same_class : code;
}

int32_t text_lower(int32_t code)
{
    return text_pin_unicode(code) == code ? utf8proc_tolower(code) : code;
}

bool text_is_space(int32_t code)
{
    return (code >= '\t' && code <= '\r') || code == ' ' || code == 0x85 || code == 0xa0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}
