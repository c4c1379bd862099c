/* sample/constrain/regex.c: reads a subset of ECMAScript's regular expressions (unicode mode) into
 * a tree. Constructs that are not regular, or whose meaning would differ from the standard, are
 * errors that name them. constraint.h has the list. */
#include "base/utf8.h"
#include "sample/constrain/constrain_stack.h"
#include <ctype.h>
#include <string.h>
#include <utf8proc.h>

enum { MAX_LOOKS = 8 };

struct regex_reader {
    struct constrain_tree *t;
    const char *text;
    size_t size, at;
    uint32_t line, column; /* position of text[at] */
    uint32_t depth;
    /* Look-ahead is a condition on the whole text at its beginning, and an error elsewhere. */
    bool at_front, anchored; /* no character was matched yet; '^' was read */
    struct look {
        uint32_t node;
        bool negative;
    } look[MAX_LOOKS];
    uint32_t n_look;
    struct base_error *err;
};

static int peek(const struct regex_reader *r)
{
    return r->at < r->size ? (unsigned char)r->text[r->at] : -1;
}

static bool begins(const struct regex_reader *r, const char *word)
{
    size_t n = strlen(word);
    return r->size - r->at >= n && memcmp(r->text + r->at, word, n) == 0;
}

static void skip(struct regex_reader *r, size_t n)
{
    while (n--)
        if (((unsigned char)r->text[r->at++] & 0xc0) != 0x80) r->column++;
}

static bool fail(struct regex_reader *r, const char *what)
{
    return base_fail(r->err, BASE_USAGE, "line %u, column %u: %s", r->line, r->column, what);
}

/* -- classes -- */

/* Returns whether `category` is in the group `name`: a general category by its short name, or a
 * group by its long name. *known: the name exists. */
static bool in_category(const char *name, size_t n, utf8proc_category_t category, bool *known)
{
    static const struct {
        const char *name, *first;
    } group[] = {{"Letter", "L"},
                 {"Mark", "M"},
                 {"Number", "N"},
                 {"Punctuation", "P"},
                 {"Symbol", "S"},
                 {"Separator", "Z"},
                 {"Other", "C"},
                 {"punct", "P"},
                 {"Lowercase_Letter", "Ll"},
                 {"Uppercase_Letter", "Lu"},
                 {"Decimal_Number", "Nd"}};
    static const char code[][3] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                   "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                   "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
    for (size_t i = 0; i < sizeof group / sizeof group[0]; i++)
        if (strlen(group[i].name) == n && memcmp(group[i].name, name, n) == 0) {
            name = group[i].first;
            n = strlen(name);
        }
    *known = false;
    for (size_t i = 0; i < sizeof code / sizeof code[0] && (n == 1 || n == 2); i++)
        *known |= memcmp(code[i], name, n) == 0;
    return *known && memcmp(code[category], name, n) == 0;
}

static bool add_property(struct regex_reader *r, bool negate)
{
    if (peek(r) != '{') return fail(r, "expected '{' after \\p");
    const char *name = r->text + r->at + 1;
    const char *end = memchr(name, '}', r->size - r->at - 1);
    bool known, in = false;
    uint32_t from = 0;
    if (!end) return fail(r, "this \\p{ is not closed");
    in_category(name, (size_t)(end - name), 0, &known);
    if (!known) return fail(r, "unknown property: general categories such as L, Lu, Nd are known");
    for (uint32_t code = 0; code <= 0x110000; code++) {
        bool now =
            code < 0x110000 && in_category(name, (size_t)(end - name),
                                           utf8proc_category((int32_t)code), &known) != negate;
        if (now && !in) from = code;
        if (in && !now && !constrain_tree_range(r->t, from, code - 1, r->err)) return false;
        in = now;
    }
    skip(r, (size_t)(end - name) + 2);
    return true;
}

/* -- characters -- */

static bool read_hex(struct regex_reader *r, int min, int max, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < max; i++) {
        int v = base_hex_digit(peek(r));
        if (v < 0 && i < min) return fail(r, "expected a hexadecimal digit");
        if (v < 0) break;
        *code = *code << 4 | (uint32_t)v;
        skip(r, 1);
    }
    return *code <= 0x10ffff || fail(r, "this is not a Unicode character");
}

static bool read_unicode(struct regex_reader *r, uint32_t *code)
{
    uint32_t low;
    if (peek(r) == '{') {
        skip(r, 1);
        if (!read_hex(r, 1, 6, code)) return false;
        if (peek(r) != '}') return fail(r, "expected '}'");
        skip(r, 1);
    } else {
        if (!read_hex(r, 4, 4, code)) return false;
        if (*code >= 0xd800 && *code < 0xdc00 && begins(r, "\\u")) {
            skip(r, 2);
            if (!read_hex(r, 4, 4, &low)) return false;
            if (low < 0xdc00 || low > 0xdfff) return fail(r, "half of a surrogate pair");
            *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    if (*code >= 0xd800 && *code < 0xe000) return fail(r, "half of a surrogate pair");
    return true;
}

/* Reads the rest of an escape: a class (adds its ranges, *set true) or a character. */
static bool read_escape(struct regex_reader *r, bool in_class, bool *set, uint32_t *code)
{
    static const char control[] = "t\tn\nv\vf\fr\r";
    int c = peek(r);
    const char *plain;
    *set = false;
    if (c < 0) return fail(r, "the expression ends in a backslash");
    if (c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S' || c == 'p' ||
        c == 'P') {
        *set = true;
        skip(r, 1);
        return (c | 32) == 'p' ? add_property(r, c == 'P') : constrain_tree_class(r->t, c, r->err);
    }
    if (c == 'b' && in_class) {
        *code = 8;
    } else if (c == 'b' || c == 'B') {
        return fail(r, "word boundaries (\\b, \\B) are not supported");
    } else if (c == 'k' || (c >= '1' && c <= '9')) {
        return fail(r, "back-references (\\1, \\k) are not supported");
    } else if (c == '0') {
        *code = 0;
        if (r->at + 1 < r->size && r->text[r->at + 1] >= '0' && r->text[r->at + 1] <= '9')
            return fail(r, "octal escapes are not supported");
    } else if (c == 'x' || c == 'u') {
        skip(r, 1);
        return c == 'x' ? read_hex(r, 2, 2, code) : read_unicode(r, code);
    } else if (c == 'c') {
        skip(r, 1);
        c = peek(r) | 32;
        if (c < 'a' || c > 'z') return fail(r, "expected a letter after \\c");
        *code = (uint32_t)(c - 'a' + 1);
    } else if ((plain = memchr(control, c, sizeof control - 1)) && (plain - control) % 2 == 0) {
        *code = (unsigned char)plain[1];
    } else if (c >= ' ' && c < 0x7f && !isalnum(c)) { /* an unnecessary escape */
        *code = (uint32_t)c;
    } else {
        return fail(r, "unknown escape");
    }
    skip(r, 1);
    return true;
}

static bool read_plain(struct regex_reader *r, uint32_t *code)
{
    int32_t decoded;
    size_t n = base_utf8_decode(r->text + r->at, r->size - r->at, &decoded);
    if (decoded < 0) return fail(r, "invalid UTF-8");
    skip(r, n);
    *code = (uint32_t)decoded;
    return true;
}

static bool read_class_item(struct regex_reader *r, bool *set, uint32_t *code)
{
    *set = false;
    if (peek(r) < 0) return fail(r, "this character class is not closed");
    if (peek(r) != '\\') return read_plain(r, code);
    skip(r, 1);
    return read_escape(r, true, set, code);
}

static uint32_t read_class(struct regex_reader *r)
{
    uint32_t line = r->line, column = r->column, first = r->t->n_range, lo, hi;
    bool set;
    skip(r, 1);
    bool negate = peek(r) == '^';
    if (negate) skip(r, 1);
    while (peek(r) != ']') {
        if (!read_class_item(r, &set, &lo)) return 0;
        bool range = peek(r) == '-' && r->at + 1 < r->size && r->text[r->at + 1] != ']';
        if (set && range) return fail(r, "a class cannot begin or end a range");
        if (set) continue;
        hi = lo;
        if (range) {
            skip(r, 1);
            if (!read_class_item(r, &set, &hi)) return 0;
            if (set) return fail(r, "a class cannot begin or end a range");
            if (hi < lo) return fail(r, "this range runs backwards");
        }
        if (!constrain_tree_range(r->t, lo, hi, r->err)) return 0;
    }
    skip(r, 1);
    return constrain_tree_set(r->t, first, negate, line, column, r->err);
}

/* -- repetition -- */

static bool read_count(struct regex_reader *r, uint32_t *out)
{
    uint64_t n = 0;
    if (peek(r) < '0' || peek(r) > '9') return fail(r, "expected a number");
    for (; peek(r) >= '0' && peek(r) <= '9'; skip(r, 1)) {
        n = n * 10 + (uint64_t)(peek(r) - '0');
        if (n > CONSTRAIN_MAX_REPEAT) return fail(r, "repeats too often (at most 1,000,000 times)");
    }
    *out = (uint32_t)n;
    return true;
}

static uint32_t read_repeat(struct regex_reader *r, uint32_t item)
{
    int c = peek(r);
    uint32_t min = c == '+', max = c == '?' ? 1 : CONSTRAIN_NO_MAX, line = r->line,
             column = r->column;
    if (c != '*' && c != '+' && c != '?' && c != '{') return item;
    enum constrain_tree_kind kind = r->t->node[item].kind;
    if (kind == CONSTRAIN_TREE_BEGIN || kind == CONSTRAIN_TREE_END)
        return fail(r, "an anchor cannot be repeated");
    skip(r, 1);
    if (c == '{') {
        if (!read_count(r, &min)) return 0;
        max = min;
        if (peek(r) == ',') {
            skip(r, 1);
            max = CONSTRAIN_NO_MAX;
            if (peek(r) != '}' && !read_count(r, &max)) return 0;
        }
        if (peek(r) != '}') return fail(r, "expected '}'");
        skip(r, 1);
        if (max < min) return fail(r, "{m,n} with m above n");
    }
    if (peek(r) == '?') skip(r, 1); /* a lazy form describes the same texts */
    c = peek(r);
    if (c == '*' || c == '+' || c == '?' || c == '{') return fail(r, "nothing to repeat");
    uint32_t node = constrain_tree_add(r->t, CONSTRAIN_TREE_REPEAT, line, column, r->err);
    if (!node) return 0;
    r->t->node[node].min = min;
    r->t->node[node].max = max;
    constrain_tree_adopt(r->t, node, item);
    return node;
}

/* -- groups -- */

static uint32_t read_alternatives(struct regex_reader *r);

/* Reads (?=...) or (?!...). It is stored separately, and a condition "beginning of the text"
 * replaces it in the tree. */
static uint32_t read_look(struct regex_reader *r)
{
    const uint32_t line = r->line, column = r->column;
    const bool negative = begins(r, "(?!");
    if (!r->at_front || r->depth > 0)
        return fail(r, "look-ahead is supported at the beginning of the expression only");
    if (r->n_look == MAX_LOOKS) return fail(r, "more than 8 look-aheads");
    skip(r, 3);
    r->depth++;
    const uint32_t node = read_alternatives(r);
    r->depth--;
    if (!node) return 0;
    if (peek(r) != ')') return fail(r, "a '(' is not closed");
    skip(r, 1);
    r->look[r->n_look++] = (struct look){node, negative};
    return constrain_tree_add(r->t, CONSTRAIN_TREE_BEGIN, line, column, r->err);
}

static bool read_group_head(struct regex_reader *r)
{
    if (peek(r) != '?') return true;
    if (begins(r, "?<=") || begins(r, "?<!")) return fail(r, "look-behind is not supported");
    if (begins(r, "?:")) {
        skip(r, 2);
        return true;
    }
    if (begins(r, "?P<"))
        skip(r, 1);
    else if (!begins(r, "?<"))
        return fail(r, "flags and atomic groups, (?...), are not supported");
    for (skip(r, 2); peek(r) >= 0 && peek(r) != '>' && peek(r) != ')';) skip(r, 1);
    if (peek(r) != '>') return fail(r, "the group's name is not closed");
    skip(r, 1);
    return true;
}

static uint32_t read_item(struct regex_reader *r)
{
    static const struct constrain_range line_end[] = {{10, 10}, {13, 13}, {0x2028, 0x2029}};
    uint32_t line = r->line, column = r->column, first = r->t->n_range, node, code;
    bool set = false;
    if (begins(r, "(?=") || begins(r, "(?!")) return read_look(r);
    if (r->depth == 0) {
        r->at_front &= peek(r) == '^';
        r->anchored |= r->at_front;
    }
    switch (peek(r)) {
    case '(':
        if (r->depth >= CONSTRAIN_MAX_NESTING)
            return fail(r, "groups are nested more than 200 deep");
        skip(r, 1);
        if (!read_group_head(r)) return 0;
        r->depth++;
        node = read_alternatives(r);
        r->depth--;
        if (!node) return 0;
        if (peek(r) != ')') return fail(r, "a '(' is not closed");
        skip(r, 1);
        return node;
    case '[':
        return read_class(r);
    case '^':
        skip(r, 1);
        return constrain_tree_add(r->t, CONSTRAIN_TREE_BEGIN, line, column, r->err);
    case '$':
        skip(r, 1);
        return constrain_tree_add(r->t, CONSTRAIN_TREE_END, line, column, r->err);
    case '.':
        skip(r, 1);
        if (!constrain_tree_ranges(r->t, line_end, 3, true, r->err)) return 0;
        return constrain_tree_set(r->t, first, false, line, column, r->err);
    case '*':
    case '+':
    case '?':
    case '{':
        return fail(r, "nothing to repeat");
    case '}':
    case ']':
        return fail(r, "this must be escaped with a backslash");
    case '\\':
        skip(r, 1);
        if (!read_escape(r, false, &set, &code)) return 0;
        break;
    default:
        if (!read_plain(r, &code)) return 0;
    }
    if (!set && !constrain_tree_range(r->t, code, code, r->err)) return 0;
    return constrain_tree_set(r->t, first, false, line, column, r->err);
}

static uint32_t read_alternatives(struct regex_reader *r)
{
    uint32_t alt = constrain_tree_add(r->t, CONSTRAIN_TREE_ALT, r->line, r->column, r->err), seq,
             item;
    if (!alt) return 0;
    for (;;) {
        if (!(seq = constrain_tree_add(r->t, CONSTRAIN_TREE_SEQ, r->line, r->column, r->err)))
            return 0;
        while (peek(r) >= 0 && peek(r) != '|' && peek(r) != ')') {
            if (!(item = read_item(r)) || !(item = read_repeat(r, item))) return 0;
            constrain_tree_adopt(r->t, seq, item);
        }
        constrain_tree_adopt(r->t, alt, seq);
        if (peek(r) != '|') return alt;
        if (r->depth == 0) r->at_front = false;
        skip(r, 1);
    }
}

static uint32_t read_all(struct regex_reader *r, bool search)
{
    if (r->size > CONSTRAIN_MAX_SOURCE) return fail(r, "the expression is too long");
    const uint32_t node = read_alternatives(r);
    if (node && peek(r) >= 0) return fail(r, "')' without '('");
    if (!node || r->n_look == 0) return node;
    if (r->t->node[r->t->node[node].child].sibling)
        return fail(r, "look-ahead beside '|' is not supported: put the alternatives in a group");
    if (search && !r->anchored) return fail(r, "look-ahead needs '^' before it or after it");
    return node;
}

/* Returns the automaton of the texts of d that satisfy the look-aheads; each is a search from the
 * beginning. Frees d. */
static struct constrain_dfa *add_looks(struct regex_reader *r, struct constrain_dfa *d,
                                       struct base_error *err)
{
    const struct constrain_dfa *part[MAX_LOOKS + 1] = {d};
    struct constrain_dfa *own[MAX_LOOKS] = {NULL}, *all = NULL;
    uint32_t want = 1;
    bool ok = true;
    for (uint32_t i = 0; ok && i < r->n_look; i++) {
        const uint32_t seq = constrain_tree_add(r->t, CONSTRAIN_TREE_SEQ, 1, 1, err);
        const uint32_t begin = constrain_tree_add(r->t, CONSTRAIN_TREE_BEGIN, 1, 1, err);
        if (!seq || !begin) break;
        constrain_tree_adopt(r->t, seq, begin);
        constrain_tree_adopt(r->t, seq, r->look[i].node);
        part[i + 1] = own[i] = constrain_dfa_build(r->t, seq, true, NULL, err);
        ok = own[i] != NULL;
        want |= (uint32_t)!r->look[i].negative << (i + 1);
    }
    if (ok && own[r->n_look - 1]) all = constrain_dfa_product(part, r->n_look + 1, 0, err);
    for (uint32_t q = 0; all && q < all->n_state; q++) all->accept[q] &= all->mask[q] == want;
    for (uint32_t i = 0; i < r->n_look; i++) constrain_dfa_free(own[i]);
    constrain_dfa_free(d);
    return all;
}

struct constrain_dfa *constrain_regex_dfa(const char *text, size_t size, bool search, uint32_t line,
                                          uint32_t column, struct base_error *err)
{
    struct constrain_tree t = {0};
    struct regex_reader r = {.t = &t,
                             .text = text,
                             .size = size,
                             .line = line,
                             .column = column,
                             .at_front = true,
                             .err = err};
    struct base_error why = BASE_ERROR_INIT;
    uint32_t root = read_all(&r, search);
    struct constrain_dfa *d = root ? constrain_dfa_build(&t, root, search, NULL, &why) : NULL;
    if (d && r.n_look) d = add_looks(&r, d, &why);
    if (root && !d) base_fail(err, why.code, "line %u, column %u: %s", line, column, why.text);
    constrain_tree_free(&t);
    return d;
}
