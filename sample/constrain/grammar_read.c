/* sample/constrain/grammar_read.c: reads GBNF. See sample/constrain/grammar_read.h. Groups nest
 * CONSTRAIN_MAX_NESTING deep. */
#include "sample/constrain/grammar_read.h"
#include "base/utf8.h"
#include "sample/constrain/constraint.h"
#include <stdlib.h>
#include <string.h>

struct grammar_reader {
    struct constrain_grammar *g;
    const char *text;
    size_t size, at;
    uint32_t line, column; /* position of text[at]; columns count code points */
    uint32_t depth;
    uint32_t *slot, n_slot; /* hash table of rule number + 1 */
    struct base_error *err;
};

static int peek(const struct grammar_reader *r)
{
    return r->at < r->size ? (unsigned char)r->text[r->at] : -1;
}

static bool begins(const struct grammar_reader *r, const char *word)
{
    size_t n = strlen(word);
    return r->size - r->at >= n && memcmp(r->text + r->at, word, n) == 0;
}

static void skip(struct grammar_reader *r)
{
    unsigned char c = (unsigned char)r->text[r->at++];
    if (c == '\n') {
        r->line++;
        r->column = 1;
    } else if ((c & 0xc0) != 0x80) {
        r->column++;
    }
}

static bool fail_at(struct grammar_reader *r, uint32_t line, uint32_t column, const char *what)
{
    return base_fail(r->err, BASE_USAGE, "line %u, column %u: %s", line, column, what);
}

static bool fail(struct grammar_reader *r, const char *what)
{
    return fail_at(r, r->line, r->column, what);
}

static void skip_space(struct grammar_reader *r, bool lines)
{
    for (int c = peek(r); c >= 0; c = peek(r)) {
        if (c == '#')
            while (peek(r) >= 0 && peek(r) != '\n') skip(r);
        else if (c == ' ' || c == '\t' || ((c == '\n' || c == '\r') && lines))
            skip(r);
        else
            break;
    }
}

/* At the end of a line outside groups, returns whether the next line continues with `|`. */
static bool goes_on(const struct grammar_reader *r)
{
    struct grammar_reader ahead = *r;
    skip_space(&ahead, true);
    return peek(&ahead) == '|';
}

/* -- names -- */

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static uint64_t hash_name(const char *s, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return h;
}

static bool grow_names(struct grammar_reader *r)
{
    struct constrain_grammar *g = r->g;
    if (g->n_rule * 2 < r->n_slot) return true;
    uint32_t n = r->n_slot ? r->n_slot * 2 : 64;
    uint32_t *slot = calloc(n, sizeof *slot);
    if (!slot) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a grammar");
    for (uint32_t i = 0; i < g->n_rule; i++) {
        uint64_t h = hash_name(g->rule[i].name, strlen(g->rule[i].name));
        while (slot[h & (n - 1)]) h++;
        slot[h & (n - 1)] = i + 1;
    }
    free(r->slot);
    r->slot = slot;
    r->n_slot = n;
    return true;
}

/* Finds or adds the rule whose name is the text from `from` up to here. */
static bool enter_name(struct grammar_reader *r, size_t from, uint32_t line, uint32_t column,
                       uint32_t *rule)
{
    struct constrain_grammar *g = r->g;
    const size_t n = r->at - from;
    if (!grow_names(r)) return false;
    uint64_t h = hash_name(r->text + from, n);
    for (; r->slot[h & (r->n_slot - 1)]; h++) {
        *rule = r->slot[h & (r->n_slot - 1)] - 1;
        const char *name = g->rule[*rule].name;
        if (strlen(name) == n && memcmp(name, r->text + from, n) == 0) return true;
    }
    if (g->n_rule >= CONSTRAIN_MAX_RULES) return fail_at(r, line, column, "too many rules");
    if (!constrain_grow(&g->rule, &g->rule_room, g->n_rule, sizeof *g->rule, r->err)) return false;
    char *name = strndup(r->text + from, n);
    if (!name) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a grammar");
    g->rule[g->n_rule] = (struct constrain_rule){name, 0, line, column};
    r->slot[h & (r->n_slot - 1)] = g->n_rule + 1;
    *rule = g->n_rule++;
    return true;
}

static bool read_name(struct grammar_reader *r, uint32_t *rule)
{
    const size_t from = r->at;
    const uint32_t line = r->line, column = r->column;
    while (is_name(peek(r))) skip(r);
    if (r->at == from) return fail(r, "expected a rule name");
    return enter_name(r, from, line, column, rule);
}

/* Reads the name of a token: <text>, <[id]>, !<text>, !<[id]>. */
static bool read_token(struct grammar_reader *r, uint32_t *rule)
{
    const size_t from = r->at;
    const uint32_t line = r->line, column = r->column;
    if (peek(r) == '!') skip(r);
    if (peek(r) != '<') return fail(r, "expected the name of a token, <...>");
    const bool is_id = begins(r, "<[");
    for (int i = 0; i < 1 + is_id; i++) skip(r);
    const size_t begin = r->at;
    while (is_id ? peek(r) >= '0' && peek(r) <= '9' : peek(r) >= ' ' && peek(r) != '>') skip(r);
    if (is_id && (r->at == begin || r->at - begin > 9 || !begins(r, "]>")))
        return fail(r, "expected the number of a token, <[1234]>");
    if (is_id) skip(r);
    if (peek(r) != '>') return fail_at(r, line, column, "the name of this token is not closed");
    skip(r);
    return enter_name(r, from, line, column, rule);
}

/* -- characters -- */

static bool read_hex(struct grammar_reader *r, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++) {
        const int v = base_hex_digit(peek(r));
        if (v < 0) return fail(r, "expected a hexadecimal digit");
        *code = *code << 4 | (uint32_t)v;
        skip(r);
    }
    if (*code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
        return fail(r, "this is not a Unicode character");
    return true;
}

static bool read_char(struct grammar_reader *r, uint32_t *code)
{
    static const char plain[] = "\\\"[]-^/'|(){}.*+?";
    int32_t decoded;
    if (peek(r) < 0) return fail(r, "unexpected end of the grammar");
    if (peek(r) != '\\') {
        size_t n = base_utf8_decode(r->text + r->at, r->size - r->at, &decoded);
        if (decoded < 0) return fail(r, "invalid UTF-8");
        for (size_t i = 0; i < n; i++) skip(r);
        *code = (uint32_t)decoded;
        return true;
    }
    skip(r);
    int c = peek(r);
    if (c < 0) return fail(r, "unexpected end of the grammar");
    if (c == 'x' || c == 'u' || c == 'U') {
        skip(r);
        return read_hex(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, code);
    }
    if (c == 't' || c == 'n' || c == 'r')
        *code = c == 't' ? '\t' : c == 'n' ? '\n' : '\r';
    else if (memchr(plain, c, sizeof plain - 1))
        *code = (uint32_t)c;
    else
        return fail(r, "unknown escape");
    skip(r);
    return true;
}

static uint32_t one_char(struct grammar_reader *r, uint32_t code, uint32_t line, uint32_t column)
{
    uint32_t first = r->g->tree.n_range;
    if (!constrain_tree_range(&r->g->tree, code, code, r->err)) return 0;
    return constrain_tree_set(&r->g->tree, first, false, line, column, r->err);
}

static uint32_t read_string(struct grammar_reader *r)
{
    uint32_t seq = constrain_tree_add(&r->g->tree, CONSTRAIN_TREE_SEQ, r->line, r->column, r->err),
             code;
    if (!seq) return 0;
    skip(r);
    while (peek(r) != '"') {
        uint32_t line = r->line, column = r->column, node;
        if (peek(r) < 0 || peek(r) == '\n') return fail(r, "this string is not closed");
        if (!read_char(r, &code) || !(node = one_char(r, code, line, column))) return 0;
        constrain_tree_adopt(&r->g->tree, seq, node);
    }
    skip(r);
    return seq;
}

/* Returns whether a class escape such as \d begins here. */
static bool begins_class(const struct grammar_reader *r)
{
    return peek(r) == '\\' && r->at + 1 < r->size && memchr("dDwWsS", r->text[r->at + 1], 6);
}

static bool read_named_class(struct grammar_reader *r)
{
    skip(r);
    const int letter = peek(r);
    skip(r);
    return constrain_tree_class(&r->g->tree, letter, r->err);
}

static uint32_t read_class(struct grammar_reader *r)
{
    uint32_t line = r->line, column = r->column, first = r->g->tree.n_range, lo, hi;
    skip(r);
    bool negate = peek(r) == '^';
    if (negate) skip(r);
    while (peek(r) != ']') {
        uint32_t at_line = r->line, at_column = r->column;
        if (peek(r) < 0) return fail_at(r, line, column, "this character class is not closed");
        if (begins_class(r)) {
            if (!read_named_class(r)) return 0;
            if (peek(r) == '-' && r->at + 1 < r->size && r->text[r->at + 1] != ']')
                return fail(r, "a class cannot begin or end a range");
            continue;
        }
        if (!read_char(r, &lo)) return 0;
        hi = lo;
        if (peek(r) == '-' && r->at + 1 < r->size && r->text[r->at + 1] != ']') {
            skip(r);
            if (begins_class(r)) return fail(r, "a class cannot begin or end a range");
            if (!read_char(r, &hi)) return 0;
        }
        if (hi < lo) return fail_at(r, at_line, at_column, "this range runs backwards");
        if (!constrain_tree_range(&r->g->tree, lo, hi, r->err)) return 0;
    }
    skip(r);
    if (!negate && r->g->tree.n_range == first)
        return fail_at(r, line, column, "this character class is empty");
    return constrain_tree_set(&r->g->tree, first, negate, line, column, r->err);
}

/* -- repetition -- */

static bool read_count(struct grammar_reader *r, uint32_t *out)
{
    uint64_t n = 0;
    if (peek(r) < '0' || peek(r) > '9') return fail(r, "expected a number");
    while (peek(r) >= '0' && peek(r) <= '9') {
        n = n * 10 + (uint64_t)(peek(r) - '0');
        if (n > CONSTRAIN_MAX_REPEAT)
            return base_fail(r->err, BASE_USAGE, "line %u, column %u: repeats more than %d times",
                             r->line, r->column, CONSTRAIN_MAX_REPEAT);
        skip(r);
    }
    *out = (uint32_t)n;
    return true;
}

static bool read_bounds(struct grammar_reader *r, uint32_t *min, uint32_t *max)
{
    uint32_t line = r->line, column = r->column;
    skip(r);
    skip_space(r, false);
    *min = 0;
    if (peek(r) != ',' && !read_count(r, min)) return false;
    *max = *min;
    skip_space(r, false);
    if (peek(r) == ',') {
        skip(r);
        skip_space(r, false);
        *max = CONSTRAIN_NO_MAX;
        if (peek(r) != '}' && !read_count(r, max)) return false;
        skip_space(r, false);
    }
    if (peek(r) != '}') return fail(r, "expected '}'");
    skip(r);
    if (*max < *min) return fail_at(r, line, column, "{m,n} with m above n");
    return true;
}

/* Returns `item` wrapped in the repetitions that follow it. */
static uint32_t read_repeats(struct grammar_reader *r, uint32_t item, bool lines)
{
    for (uint32_t count = 0;; count++) {
        skip_space(r, lines);
        uint32_t line = r->line, column = r->column, min = 0, max = CONSTRAIN_NO_MAX;
        int c = peek(r);
        if (c != '*' && c != '+' && c != '?' && c != '{') return item;
        if (count >= CONSTRAIN_MAX_NESTING) return fail(r, "too many repetitions of one item");
        if (c == '{') {
            if (!read_bounds(r, &min, &max)) return 0;
        } else {
            skip(r);
            if (c == '+') min = 1;
            if (c == '?') max = 1;
        }
        uint32_t node =
            constrain_tree_add(&r->g->tree, CONSTRAIN_TREE_REPEAT, line, column, r->err);
        if (!node) return 0;
        r->g->tree.node[node].min = min;
        r->g->tree.node[node].max = max;
        constrain_tree_adopt(&r->g->tree, node, item);
        item = node;
    }
}

/* -- sequences and alternatives -- */

static uint32_t read_alternatives(struct grammar_reader *r, bool nested);

static uint32_t read_item(struct grammar_reader *r)
{
    uint32_t line = r->line, column = r->column, rule, node;
    int c = peek(r);
    if (c == '"') return read_string(r);
    if (c == '[') return read_class(r);
    if (begins_class(r)) {
        const uint32_t first = r->g->tree.n_range;
        if (!read_named_class(r)) return 0;
        return constrain_tree_set(&r->g->tree, first, false, line, column, r->err);
    }
    if (c == '.') {
        skip(r);
        return constrain_tree_set(&r->g->tree, r->g->tree.n_range, true, line, column, r->err);
    }
    if (c == '(') {
        if (r->depth >= CONSTRAIN_MAX_NESTING)
            return base_fail(r->err, BASE_USAGE,
                             "line %u, column %u: groups are nested more than %d deep", line,
                             column, CONSTRAIN_MAX_NESTING);
        skip(r);
        skip_space(r, true);
        r->depth++;
        node = read_alternatives(r, true);
        r->depth--;
        if (!node) return 0;
        if (peek(r) != ')') return fail_at(r, line, column, "this '(' is not closed");
        skip(r);
        return node;
    }
    if (!(c == '<' || c == '!' ? read_token(r, &rule) : read_name(r, &rule))) return 0;
    if (!(node = constrain_tree_add(&r->g->tree, CONSTRAIN_TREE_CALL, line, column, r->err)))
        return 0;
    r->g->tree.node[node].min = rule;
    return node;
}

static uint32_t read_sequence(struct grammar_reader *r, bool nested)
{
    uint32_t seq = constrain_tree_add(&r->g->tree, CONSTRAIN_TREE_SEQ, r->line, r->column, r->err),
             item;
    if (!seq) return 0;
    for (int c = peek(r); c >= 0 && c != '|' && c != ')' && c != '\n' && c != '\r'; c = peek(r)) {
        if (c == '*' || c == '+' || c == '?' || c == '{') return fail(r, "nothing to repeat");
        if (!(item = read_item(r)) || !(item = read_repeats(r, item, nested))) return 0;
        constrain_tree_adopt(&r->g->tree, seq, item);
    }
    return seq;
}

static uint32_t read_alternatives(struct grammar_reader *r, bool nested)
{
    uint32_t alt = constrain_tree_add(&r->g->tree, CONSTRAIN_TREE_ALT, r->line, r->column, r->err),
             seq;
    if (!alt) return 0;
    for (;;) {
        if (!(seq = read_sequence(r, nested))) return 0;
        constrain_tree_adopt(&r->g->tree, alt, seq);
        if (peek(r) != '|' && !nested && goes_on(r)) skip_space(r, true);
        if (peek(r) != '|') return alt;
        skip(r);
        skip_space(r, true);
    }
}

static bool read_rule(struct grammar_reader *r)
{
    uint32_t rule, line = r->line, column = r->column;
    if (!read_name(r, &rule)) return false;
    skip_space(r, false);
    if (!begins(r, "::=")) return fail(r, "expected '::='");
    for (int i = 0; i < 3; i++) skip(r);
    skip_space(r, true);
    if (r->g->rule[rule].tree) return fail_at(r, line, column, "this rule is defined already");
    uint32_t tree = read_alternatives(r, false);
    if (!tree) return false;
    if (peek(r) == ')') return fail(r, "')' without '('");
    r->g->rule[rule].tree = tree;
    r->g->rule[rule].line = line;
    r->g->rule[rule].column = column;
    return true;
}

static bool read_rules(struct grammar_reader *r)
{
    struct constrain_grammar *g = r->g;
    bool found = false;
    for (skip_space(r, true); peek(r) >= 0; skip_space(r, true))
        if (!read_rule(r)) return false;
    for (uint32_t i = 0; i < g->n_rule; i++) {
        if (!g->rule[i].tree && !constrain_rule_is_token(&g->rule[i]))
            return base_fail(r->err, BASE_USAGE, "line %u, column %u: rule '%s' is not defined",
                             g->rule[i].line, g->rule[i].column, g->rule[i].name);
        if (strcmp(g->rule[i].name, "root") != 0) continue;
        g->root = i;
        found = true;
    }
    return found || fail(r, "there is no rule 'root'");
}

bool constrain_grammar_read(struct constrain_grammar *g, const char *text, size_t size,
                            struct base_error *err)
{
    struct grammar_reader r = {
        .g = g, .text = text, .size = size, .line = 1, .column = 1, .err = err};
    if (size > CONSTRAIN_MAX_SOURCE)
        return base_fail(err, BASE_USAGE, "line 1, column 1: the grammar has more than %d bytes",
                         CONSTRAIN_MAX_SOURCE);
    bool ok = read_rules(&r);
    free(r.slot);
    return ok;
}

void constrain_grammar_free(struct constrain_grammar *g)
{
    for (uint32_t i = 0; i < g->n_rule; i++) free(g->rule[i].name);
    free(g->rule);
    constrain_tree_free(&g->tree);
}
