/* sample/constrain/schema_run.c: how frames of JSON values move byte by byte. See
 * sample/constrain/schema_run.h. */
#include "sample/constrain/schema_run.h"
#include "base/utf8.h"
#include <string.h>

enum { COUNT_LIMIT = 20000 };
enum { MOST_INDENT = 40 };

enum { N_FIXED = 3 }; /* literals before those of numbers */

const char *constrain_literal(const struct constrain_schema *schema, uint32_t which, uint32_t *size)
{
    static const char *const fixed[N_FIXED] = {"null", "false", "true"};
    if (which < N_FIXED) {
        *size = (uint32_t)strlen(fixed[which]);
        return fixed[which];
    }
    const uint32_t json = schema->number[which - N_FIXED].literal;
    const struct constrain_json_node *n = &schema->json.node[json];
    *size = n->text_size;
    return schema->json.text.data + n->text;
}

struct constrain_frame constrain_number_frame(const struct constrain_schema *schema,
                                              uint32_t number, uint32_t next)
{
    if (!schema->number[number].literal)
        return (struct constrain_frame){.next = next, .kind = CONSTRAIN_FRAME_NUMBER, .a = number};
    return (struct constrain_frame){
        .next = next, .kind = CONSTRAIN_FRAME_LITERAL, .a = N_FIXED + number};
}

static void emit_frame(struct constrain_state *s, const struct constrain_frame *f)
{
    uint32_t stack = constrain_frame_intern(s, f);
    if (stack) constrain_state_emit(s, stack);
}

/* -- white space -- */

/* `field` holds the phase and what white space was read: when generating one space, or a line break
 * and an indent, and no more. */
static bool read_space(const struct constrain_schema *schema, uint32_t *field, uint8_t byte)
{
    uint32_t space = *field >> CONSTRAIN_PHASE_BITS & ((1u << CONSTRAIN_SPACE_BITS) - 1), next;
    if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') return false;
    if (!schema->generate) return true;
    if (space == 0 && (byte == ' ' || byte == '\n'))
        next = byte == ' ' ? 1 : 2;
    else if (space >= 2 && space < 2 + MOST_INDENT && (byte == ' ' || byte == '\t'))
        next = space + 1;
    else
        return false;
    *field += (next - space) << CONSTRAIN_PHASE_BITS;
    return true;
}

/* -- values -- */

static void emit_all(struct constrain_state *s, const struct constrain_slice *found,
                     enum constrain_frame_kind kind, uint32_t next)
{
    const struct constrain_schema *schema = s->constraint->schema;
    for (uint32_t i = 0; i < found->count && !s->failed; i++) {
        uint32_t a = schema->index[found->at + i];
        if (kind == CONSTRAIN_FRAME_ARRAY && !schema->array[a].alive) continue;
        if (kind == CONSTRAIN_FRAME_OBJECT && !schema->object[a].alive) continue;
        struct constrain_frame f = {.next = next, .kind = kind, .a = a};
        if (kind == CONSTRAIN_FRAME_NUMBER) f = constrain_number_frame(schema, a, next);
        emit_frame(s, &f);
    }
}

/* All ways to begin a value of a place, which returns to `back`. */
static void emit_place(struct constrain_state *s, uint32_t place,
                       const struct constrain_frame *back)
{
    const struct constrain_place *p = &s->constraint->schema->place[place];
    if (!p->alive) return;
    uint32_t next = constrain_frame_intern(s, back);
    if (!next) return;
    for (uint32_t i = 0; i < 3; i++)
        if (p->fixed >> i & 1)
            emit_frame(s, &(struct constrain_frame){
                              .next = next, .kind = CONSTRAIN_FRAME_LITERAL, .a = i});
    emit_all(s, &p->number, CONSTRAIN_FRAME_NUMBER, next);
    emit_all(s, &p->string, CONSTRAIN_FRAME_STRING, next);
    emit_all(s, &p->array, CONSTRAIN_FRAME_ARRAY, next);
    emit_all(s, &p->object, CONSTRAIN_FRAME_OBJECT, next);
}

/* -- strings -- */

/* Fields of an escape: kind, hexadecimal digits so far, their value, a high surrogate before. */
enum { ESC_NONE, ESC_SLASH, ESC_HEX, ESC_LOW_SLASH, ESC_LOW_U, ESC_LOW_HEX };
enum { ESC_DIGITS = 3, ESC_VALUE = 5, ESC_HIGH = 21 };

uint32_t constrain_escape_ends(const struct constrain_dfa *d, uint32_t q, uint32_t escape,
                               struct constrain_escape_end end[CONSTRAIN_ESCAPE_ENDS])
{
    uint32_t n = 0, left = 4 - (escape >> ESC_DIGITS & 3), lo = 0, hi = 127;
    bool slash = (escape & 7) == ESC_SLASH;
    if (!slash) {
        lo = (escape >> ESC_VALUE & 0xffff) << 4 * left;
        hi = lo + (1u << 4 * left) - 1;
    }
    if (!slash && (escape & 7) != ESC_HEX) return 0;
    for (uint32_t c = lo; c <= hi && c < 128; c++) {
        uint32_t to = constrain_dfa_step(d, q, (uint8_t)c);
        bool named = slash && c && strchr("\b\f\n\r\t\"\\/", (int)c);
        if (to && (named || c < 32))
            end[n++] = (struct constrain_escape_end){to, named ? 1 : slash ? 5 : left};
    }
    return n;
}

static uint32_t step_code(const struct constrain_dfa *d, uint32_t q, uint32_t code)
{
    char bytes[4];
    size_t n = base_utf8_encode((int32_t)code, bytes);
    for (size_t i = 0; i < n && q; i++) q = constrain_dfa_step(d, q, (uint8_t)bytes[i]);
    return q;
}

static bool any_control(const struct constrain_dfa *d, uint32_t q, uint32_t lo, uint32_t hi)
{
    for (uint32_t c = lo; c <= hi; c++)
        if (constrain_dfa_step(d, q, (uint8_t)c)) return true;
    return false;
}

static bool any_escape(const struct constrain_dfa *d, uint32_t q)
{
    return any_control(d, q, 0, 31) || constrain_dfa_step(d, q, '"') ||
           constrain_dfa_step(d, q, '/') || constrain_dfa_step(d, q, '\\');
}

static enum constrain_text_step step_hex(const struct constrain_schema *schema,
                                         const struct constrain_dfa *d, uint32_t *q,
                                         uint32_t *escape, uint8_t byte)
{
    uint32_t kind = *escape & 7, digits = *escape >> ESC_DIGITS & 3, high = *escape >> ESC_HIGH;
    uint32_t value = *escape >> ESC_VALUE & 0xffff, letter = byte | 32u;
    if (byte >= '0' && byte <= '9')
        value = value << 4 | (byte - '0');
    else if (letter >= 'a' && letter <= 'f')
        value = value << 4 | (letter - 'a' + 10);
    else
        return CONSTRAIN_TEXT_DEAD;
    if (schema->generate) { /* control characters only */
        uint32_t shift = 4 * (3 - digits), lo = value << shift, hi = lo + (1u << shift) - 1;
        if (lo > 31 || !any_control(d, *q, lo, hi < 31 ? hi : 31)) return CONSTRAIN_TEXT_DEAD;
    }
    if (digits < 3) {
        *escape = kind | (digits + 1) << ESC_DIGITS | value << ESC_VALUE | high << ESC_HIGH;
        return CONSTRAIN_TEXT_INSIDE;
    }
    *escape = ESC_NONE;
    if (kind == ESC_HEX && value >= 0xd800 && value < 0xdc00) {
        *escape = ESC_LOW_SLASH | (value - 0xd800) << ESC_HIGH;
        return CONSTRAIN_TEXT_INSIDE;
    }
    if (kind == ESC_LOW_HEX) {
        if (value < 0xdc00 || value > 0xdfff) return CONSTRAIN_TEXT_DEAD;
        value = 0x10000 + (high << 10) + (value - 0xdc00);
    } else if (value >= 0xdc00 && value < 0xe000) {
        return CONSTRAIN_TEXT_DEAD;
    }
    *q = step_code(d, *q, value);
    return *q ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
}

static enum constrain_text_step step_escape(const struct constrain_schema *schema,
                                            const struct constrain_dfa *d, uint32_t *q,
                                            uint32_t *escape, uint8_t byte)
{
    static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    uint32_t high = *escape >> ESC_HIGH;
    switch (*escape & 7) {
    case ESC_SLASH:
        if (byte == 'u') {
            *escape = ESC_HEX;
            return schema->generate && !any_control(d, *q, 0, 31) ? CONSTRAIN_TEXT_DEAD
                                                                  : CONSTRAIN_TEXT_INSIDE;
        }
        for (size_t i = 0; i + 1 < sizeof names; i += 2) {
            if (byte != (uint8_t)names[i]) continue;
            *escape = ESC_NONE;
            *q = constrain_dfa_step(d, *q, (uint8_t)names[i + 1]);
            return *q ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
        }
        return CONSTRAIN_TEXT_DEAD;
    case ESC_LOW_SLASH:
        *escape = ESC_LOW_U | high << ESC_HIGH;
        return byte == '\\' ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
    case ESC_LOW_U:
        *escape = ESC_LOW_HEX | high << ESC_HIGH;
        return byte == 'u' ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
    default:
        return step_hex(schema, d, q, escape, byte);
    }
}

enum constrain_text_step constrain_text_step(const struct constrain_schema *schema,
                                             const struct constrain_dfa *d, uint32_t *q,
                                             uint32_t *escape, uint8_t byte)
{
    if (*escape) return step_escape(schema, d, q, escape, byte);
    if (byte == '"') return CONSTRAIN_TEXT_CLOSED;
    if (byte == '\\') {
        *escape = ESC_SLASH;
        return schema->generate && !any_escape(d, *q) ? CONSTRAIN_TEXT_DEAD : CONSTRAIN_TEXT_INSIDE;
    }
    if (byte < 0x20) return CONSTRAIN_TEXT_DEAD;
    *q = constrain_dfa_step(d, *q, byte);
    return *q ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
}

static void step_string(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_dfa *d = schema->string[f.a];
    if (f.b == 0) { /* the opening quote */
        f.b = 1;
        if (byte == '"') emit_frame(s, &f);
        return;
    }
    switch (constrain_text_step(schema, d, &f.b, &f.d, byte)) {
    case CONSTRAIN_TEXT_INSIDE:
        emit_frame(s, &f);
        break;
    case CONSTRAIN_TEXT_CLOSED:
        if (d->accept[f.b] & CONSTRAIN_DFA_ACCEPTS) constrain_state_emit(s, f.next);
        break;
    case CONSTRAIN_TEXT_DEAD:
        break;
    }
}

/* -- arrays: b phase and white space, c items so far, s counts of contains, a byte each -- */

static uint32_t contains_count(const struct constrain_frame *f, uint32_t i)
{
    return f->s[0] >> 8 * i & 255;
}

static bool array_may_close(const struct constrain_array *a, const struct constrain_frame *f)
{
    for (uint32_t i = 0; i < a->n_contains; i++)
        if (contains_count(f, i) < a->need[i]) return false;
    return f->c >= a->min;
}

/* The frame after one more item that counts for `marks`; false: it may not. */
bool constrain_array_after(const struct constrain_array *a, const struct constrain_frame *f,
                           uint32_t marks, struct constrain_frame *after)
{
    uint32_t top = a->positions > a->min ? a->positions : a->min;
    if (a->max != UINT32_MAX && a->max > top) top = a->max;
    *after = *f;
    after->b = CONSTRAIN_ARRAY_NEXT;
    if (f->c >= a->max) return false;
    after->c = f->c > top ? f->c : f->c + 1;
    for (uint32_t i = 0; i < a->n_contains; i++) {
        uint32_t count = contains_count(f, i), stop = a->most[i] < 255 ? a->most[i] : a->need[i];
        if (!(marks >> i & 1)) {
            if (count < a->need[i] && a->max - after->c < a->need[i] - count) return false;
            continue;
        }
        if (count >= a->most[i] && a->most[i] < 255) return false;
        if (count < stop) after->s[0] += 1ull << 8 * i;
        count += count < stop;
        if (count < a->need[i] && a->max - after->c < a->need[i] - count) return false;
    }
    return true;
}

static void emit_items(struct constrain_state *s, const struct constrain_frame *f, bool *some)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_array *a = &schema->array[f->a];
    uint32_t position = f->c < a->positions ? f->c : a->positions;
    struct constrain_slice options = schema->slice[a->position + position];
    struct constrain_frame after;
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *o = &schema->option[options.at + i];
        if (!schema->place[o->place].alive || !constrain_array_after(a, f, o->marks, &after))
            continue;
        if (some)
            *some = true;
        else
            emit_place(s, o->place, &after);
    }
}

static void step_array(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_array *a = &schema->array[f.a];
    uint32_t phase = CONSTRAIN_PHASE(f.b);
    bool more = false;
    if (phase == CONSTRAIN_ARRAY_OPEN) {
        f.b = CONSTRAIN_ARRAY_FIRST;
        if (byte == '[') emit_frame(s, &f);
    } else if (read_space(schema, &f.b, byte)) {
        emit_frame(s, &f);
    } else if (byte == ']' && phase != CONSTRAIN_ARRAY_COMMA) {
        if (array_may_close(a, &f)) constrain_state_emit(s, f.next);
    } else if (byte == ',' && phase == CONSTRAIN_ARRAY_NEXT) {
        f.b = CONSTRAIN_ARRAY_COMMA;
        emit_items(s, &f, &more);
        if (more) emit_frame(s, &f);
    }
}

/* -- objects -- */

uint32_t constrain_object_missing(const struct constrain_object *o, const struct constrain_frame *f)
{
    uint64_t names = (1ull << (CONSTRAIN_FIRST_MARK - 64)) - 1;
    return (uint32_t)(__builtin_popcountll(o->required[0] & ~f->s[0]) +
                      __builtin_popcountll(o->required[1] & ~f->s[1] & names));
}

bool constrain_object_allows(const struct constrain_schema *schema,
                             const struct constrain_object *o, const struct constrain_frame *f,
                             uint32_t c, uint32_t missing)
{
    uint32_t known = schema->label[o->known + c], count = f->c >> CONSTRAIN_COUNT_SHIFT;
    if (!(schema->bits[o->usable + c / 64] >> c % 64 & 1) || count >= o->max) return false;
    bool wanted = false;
    if (known) {
        uint64_t bit = 1ull << (known - 1) % 64;
        if (f->s[(known - 1) / 64] & bit) return false;
        wanted = o->required[(known - 1) / 64] & bit;
    } else if (f->s[1] >> (CONSTRAIN_OTHER_SEEN - 64) & 1) {
        return false;
    }
    return wanted || o->max - count > missing;
}

/* Whether some class that state q of the name's automaton can reach is allowed. */
static bool may_reach(const struct constrain_schema *schema, const struct constrain_object *o,
                      const struct constrain_frame *f, uint32_t q, uint32_t missing)
{
    for (uint32_t i = 0; i < o->words; i++)
        for (uint64_t bits = schema->bits[o->reach + (size_t)q * o->words + i]; bits;
             bits &= bits - 1)
            if (constrain_object_allows(schema, o, f, 64 * i + (uint32_t)__builtin_ctzll(bits),
                                        missing))
                return true;
    return false;
}

/* The same after an escape that has begun: when generating, only those of control characters and
 * the short ones can come. */
static bool may_escape(const struct constrain_schema *schema, const struct constrain_object *o,
                       const struct constrain_frame *f, uint32_t q, uint32_t missing)
{
    uint32_t digits = f->d >> ESC_DIGITS & 3, lo = 0, hi = 127, to;
    if ((f->d & 7) == ESC_HEX) {
        lo = (f->d >> ESC_VALUE & 0xffff) << 4 * (4 - digits);
        hi = lo + (1u << 4 * (4 - digits)) - 1;
    }
    for (uint32_t c = lo; c <= hi && c < 128; c++) {
        bool plain = (f->d & 7) == ESC_SLASH && (c == '"' || c == '/' || c == '\\');
        if (c > 31 && !plain) continue;
        if ((to = constrain_dfa_step(o->key, q, (uint8_t)c)) &&
            may_reach(schema, o, f, to, missing))
            return true;
    }
    return false;
}

bool constrain_object_may_name(const struct constrain_schema *schema,
                               const struct constrain_frame *f, uint32_t q, bool ends)
{
    const struct constrain_object *o = &schema->object[f->a];
    uint32_t missing = constrain_object_missing(o, f);
    if (ends) {
        uint32_t label = schema->label[o->label + q];
        return label && constrain_object_allows(schema, o, f, label - 1, missing);
    }
    if (f->d && schema->generate) return may_escape(schema, o, f, q, missing);
    return may_reach(schema, o, f, q, missing);
}

static bool object_may_close(const struct constrain_object *o, const struct constrain_frame *f)
{
    return !(o->required[0] & ~f->s[0]) && !(o->required[1] & ~f->s[1]) &&
           f->c >> CONSTRAIN_COUNT_SHIFT >= o->min;
}

static void set_phase(struct constrain_frame *f, uint32_t phase)
{
    f->c = f->c >> CONSTRAIN_COUNT_SHIFT << CONSTRAIN_COUNT_SHIFT | phase;
}

static void step_name(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_object *o = &schema->object[f.a];
    switch (constrain_text_step(schema, o->key, &f.b, &f.d, byte)) {
    case CONSTRAIN_TEXT_INSIDE:
        if (constrain_object_may_name(schema, &f, f.b, false)) emit_frame(s, &f);
        break;
    case CONSTRAIN_TEXT_CLOSED:
        if (!constrain_object_may_name(schema, &f, f.b, true)) break;
        f.b = schema->label[o->label + f.b] - 1;
        set_phase(&f, CONSTRAIN_OBJECT_COLON);
        emit_frame(s, &f);
        break;
    case CONSTRAIN_TEXT_DEAD:
        break;
    }
}

static void step_object(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_object *o = &schema->object[f.a];
    uint32_t phase = CONSTRAIN_PHASE(f.c), next = phase;
    if (phase == CONSTRAIN_OBJECT_NAME) {
        step_name(s, f, byte);
        return;
    }
    if (phase != CONSTRAIN_OBJECT_OPEN && read_space(schema, &f.c, byte)) {
        emit_frame(s, &f);
        return;
    }
    if (byte == '}' && (phase == CONSTRAIN_OBJECT_FIRST || phase == CONSTRAIN_OBJECT_NEXT)) {
        if (object_may_close(o, &f)) constrain_state_emit(s, f.next);
        return;
    }
    if (byte == '{' && phase == CONSTRAIN_OBJECT_OPEN) next = CONSTRAIN_OBJECT_FIRST;
    if (byte == ':' && phase == CONSTRAIN_OBJECT_COLON) next = CONSTRAIN_OBJECT_VALUE;
    if (byte == ',' && phase == CONSTRAIN_OBJECT_NEXT) next = CONSTRAIN_OBJECT_COMMA;
    if (byte == '"' && (phase == CONSTRAIN_OBJECT_FIRST || phase == CONSTRAIN_OBJECT_COMMA)) {
        next = CONSTRAIN_OBJECT_NAME;
        f.b = 1;
    }
    if (next == phase) return;
    bool names = next == CONSTRAIN_OBJECT_COMMA || next == CONSTRAIN_OBJECT_NAME;
    if (names && !constrain_object_may_name(schema, &f, 1, false)) return;
    set_phase(&f, next);
    emit_frame(s, &f);
}

struct constrain_frame constrain_object_after(const struct constrain_schema *schema,
                                              const struct constrain_frame *f, uint32_t c,
                                              uint32_t marks)
{
    const struct constrain_object *o = &schema->object[f->a];
    uint32_t known = schema->label[o->known + c];
    struct constrain_frame after = *f;
    after.b = 0;
    set_phase(&after, CONSTRAIN_OBJECT_NEXT);
    if (after.c >> CONSTRAIN_COUNT_SHIFT < COUNT_LIMIT) after.c += 1u << CONSTRAIN_COUNT_SHIFT;
    if (known)
        after.s[(known - 1) / 64] |= 1ull << (known - 1) % 64;
    else if (constrain_object_counts(schema->generate, o->min))
        after.s[1] |= 1ull << (CONSTRAIN_OTHER_SEEN - 64);
    after.s[1] |= (uint64_t)marks << (CONSTRAIN_FIRST_MARK - 64);
    return after;
}

static void enter_object(struct constrain_state *s, struct constrain_frame f)
{
    const struct constrain_schema *schema = s->constraint->schema;
    struct constrain_slice options = schema->slice[schema->object[f.a].cls + f.b];
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *o = &schema->option[options.at + i];
        const struct constrain_frame back = constrain_object_after(schema, &f, f.b, o->marks);
        emit_place(s, o->place, &back);
    }
}

/* -- all frames -- */

static void step_literal(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    uint32_t size;
    const char *text = constrain_literal(s->constraint->schema, f.a, &size);
    if ((uint8_t)text[f.b] != byte) return;
    f.b++;
    if (f.b < size)
        emit_frame(s, &f);
    else
        constrain_state_emit(s, f.next);
}

bool constrain_schema_enter(struct constrain_state *s, uint32_t stack)
{
    struct constrain_frame f = s->frame[stack], after = f;
    switch (f.kind) {
    case CONSTRAIN_FRAME_NUMBER:
        return constrain_number_enter(s, stack);
    case CONSTRAIN_FRAME_ARRAY:
        if (CONSTRAIN_PHASE(f.b) == CONSTRAIN_ARRAY_FIRST ||
            CONSTRAIN_PHASE(f.b) == CONSTRAIN_ARRAY_COMMA)
            emit_items(s, &f, NULL);
        return true;
    case CONSTRAIN_FRAME_OBJECT:
        if (CONSTRAIN_PHASE(f.c) == CONSTRAIN_OBJECT_VALUE) enter_object(s, f);
        return true;
    case CONSTRAIN_FRAME_ROOT:
        after.b = 1;
        if (f.b == 0)
            emit_place(s, s->constraint->schema->root, &after);
        else
            constrain_state_emit(s, 0);
        return !s->constraint->schema->generate;
    default:
        return true;
    }
}

void constrain_schema_step(struct constrain_state *s, uint32_t stack, uint8_t byte)
{
    struct constrain_frame f = s->frame[stack];
    switch (f.kind) {
    case CONSTRAIN_FRAME_LITERAL:
        step_literal(s, f, byte);
        break;
    case CONSTRAIN_FRAME_STRING:
        step_string(s, f, byte);
        break;
    case CONSTRAIN_FRAME_NUMBER:
        constrain_number_step(s, stack, byte);
        break;
    case CONSTRAIN_FRAME_ARRAY:
        step_array(s, f, byte);
        break;
    case CONSTRAIN_FRAME_OBJECT:
        step_object(s, f, byte);
        break;
    default: /* CONSTRAIN_FRAME_ROOT, which reads white space when checking */
        if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') emit_frame(s, &f);
    }
}
