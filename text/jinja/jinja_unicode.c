/* text/jinja/jinja_unicode.c: code points by Python's rules: classes, case.
 * See text/jinja/jinja_value.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <utf8proc.h>

bool jinja_is_space(int32_t code)
{
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool jinja_is_line_break(int32_t code)
{
    return (code >= 10 && code <= 13) || (code >= 28 && code <= 30) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

bool jinja_is_printable(int32_t code)
{
    if (code < 0x80) return code >= 0x20 && code < 0x7f;
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
        return false;
    default:
        return true;
    }
}

bool jinja_is_word(int32_t code)
{
    if (code < 0) return false;
    if (code < 0x80)
        return code == '_' || (code >= '0' && code <= '9') ||
               ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
    const utf8proc_category_t c = utf8proc_category(code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
           (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

/* Letters of ordinary text whose other case has several code points. */
static const struct {
    int32_t code;
    const char *upper, *title;
} special_case[] = {{0xdf, "SS", "Ss"},
                    {0x149, "\xca\xbcN", "\xca\xbcN"},
                    {0x1f0, "J\xcc\x8c", "J\xcc\x8c"},
                    {0x587, "\xd4\xb5\xd5\x92", "\xd4\xb5\xd6\x82"},
                    {0xfb00, "FF", "Ff"},
                    {0xfb01, "FI", "Fi"},
                    {0xfb02, "FL", "Fl"},
                    {0xfb03, "FFI", "Ffi"},
                    {0xfb04, "FFL", "Ffl"},
                    {0xfb05, "ST", "St"},
                    {0xfb06, "ST", "St"}};

bool jinja_add_case(struct jinja_run *r, struct jinja_text *out, int32_t code, enum jinja_case to)
{
    if (code < 0x80) {
        const bool letter = (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
        if (letter) code = to == JINJA_LOWER ? code | 0x20 : code & ~0x20;
        return jinja_add_char(r, out, (char)code, 1);
    }
    if (to == JINJA_LOWER) {
        if (code == 0x130) return jinja_add_word(r, out, "i\xcc\x87");
        return jinja_add_code(r, out, utf8proc_tolower(code));
    }
    for (size_t i = 0; i < sizeof special_case / sizeof special_case[0]; i++)
        if (special_case[i].code == code)
            return jinja_add_word(
                r, out, to == JINJA_UPPER ? special_case[i].upper : special_case[i].title);
    return jinja_add_code(r, out,
                          to == JINJA_UPPER ? utf8proc_toupper(code) : utf8proc_totitle(code));
}

/* Returns whether a sigma is at the end of a word, where it has another lower-case form. */
static bool is_final_sigma(struct jinja_str s, size_t at)
{
    int32_t code;
    size_t last = at > 0 ? at - 1 : 0;
    while (last > 0 && ((unsigned char)s.s[last] & 0xc0) == 0x80) last--;
    base_utf8_decode(s.s + last, at - last, &code);
    const bool before = at > 0 && jinja_is_word(code) && code != '_';
    if (at + 2 >= s.n) return before;
    base_utf8_decode(s.s + at + 2, s.n - at - 2, &code);
    return before && !(jinja_is_word(code) && code != '_');
}

bool jinja_change_case(struct jinja_run *r, struct jinja_str s, enum jinja_case to,
                       struct jinja_value *out)
{
    struct jinja_text text = {0};
    bool in_word = false;
    if (!jinja_step(r, 2 * (uint64_t)s.n)) return false; /* category and case of each code point */
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        const utf8proc_category_t c = utf8proc_category(code);
        enum jinja_case now = to == JINJA_TITLE && in_word ? JINJA_LOWER : to;
        in_word =
            c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
        if (now == JINJA_LOWER && code == 0x3a3) code = is_final_sigma(s, at) ? 0x3c2 : 0x3c3;
        const size_t before = text.n;
        if (!jinja_add_case(r, &text, code, now)) return false;
        jinja_mark_like(r, &text, before, s.s + at);
        at += used;
    }
    *out = jinja_text_value(&text);
    return true;
}

bool jinja_capitalize(struct jinja_run *r, struct jinja_str s, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value rest;
    int32_t code;
    *out = jinja_string("", 0);
    if (!s.n) return true;
    const size_t used = base_utf8_decode(s.s, s.n, &code);
    if (!jinja_add_case(r, &text, code, JINJA_TITLE)) return false;
    jinja_mark_like(r, &text, 0, s.s);
    if (!jinja_change_case(r, (struct jinja_str){s.s + used, s.n - used}, JINJA_LOWER, &rest) ||
        !jinja_add(r, &text, rest.s.s, rest.s.n))
        return false;
    *out = jinja_text_value(&text);
    return true;
}
