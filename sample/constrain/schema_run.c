/* sample/constrain/schema_run.c: moves of the frames of JSON values, byte by byte. See
 * schema_run.h. */
#include "sample/constrain/schema_run.h"
#include "base/utf8.h"
#include <string.h>

enum { COUNT_LIMIT = 20000 };

enum { N_FIXED = 3 }; /* number of fixed literals, which precede those of numbers */

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
        return constrain_frame_new(CONSTRAIN_FRAME_NUMBER, number, next);
    return constrain_frame_new(CONSTRAIN_FRAME_LITERAL, N_FIXED + number, next);
}

static void emit_frame(struct constrain_state *s, const struct constrain_frame *f)
{
    uint32_t stack = constrain_frame_intern(s, f);
    if (stack) constrain_state_emit(s, stack);
}

/* -- white space -- */

/* Reads a byte of white space. Generation allows only one space after a comma or a colon
 * (`separated`); *space is the number of spaces there so far. */
static bool read_space(const struct constrain_schema *schema, bool separated, uint8_t *space,
                       uint8_t byte)
{
    if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') return false;
    if (!schema->generate) return true;
    return separated && byte == ' ' && (*space)++ == 0;
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
        struct constrain_frame f = constrain_frame_new(kind, a, next);
        if (kind == CONSTRAIN_FRAME_NUMBER) f = constrain_number_frame(schema, a, next);
        emit_frame(s, &f);
    }
}

/* Emits all ways to begin a value of a place, which returns to `back`. */
static void emit_place(struct constrain_state *s, uint32_t place,
                       const struct constrain_frame *back)
{
    const struct constrain_place *p = &s->constraint->schema->place[place];
    if (!p->alive) return;
    uint32_t next = constrain_frame_intern(s, back);
    if (!next) return;
    for (uint32_t i = 0; i < 3; i++)
        if (p->fixed >> i & 1) {
            const struct constrain_frame f = constrain_frame_new(CONSTRAIN_FRAME_LITERAL, i, next);
            emit_frame(s, &f);
        }
    emit_all(s, &p->number, CONSTRAIN_FRAME_NUMBER, next);
    emit_all(s, &p->string, CONSTRAIN_FRAME_STRING, next);
    emit_all(s, &p->array, CONSTRAIN_FRAME_ARRAY, next);
    emit_all(s, &p->object, CONSTRAIN_FRAME_OBJECT, next);
}

/* -- strings -- */

uint32_t constrain_escape_ends(const struct constrain_dfa *d, uint32_t q,
                               struct constrain_escape escape,
                               struct constrain_escape_end end[CONSTRAIN_ESCAPE_ENDS])
{
    uint32_t n = 0, left = 4 - escape.digits, lo = 0, hi = 127;
    bool slash = escape.kind == CONSTRAIN_ESCAPE_BEGUN;
    if (!slash) {
        lo = (uint32_t)escape.value << 4 * left;
        hi = lo + (1u << 4 * left) - 1;
    }
    if (!slash && escape.kind != CONSTRAIN_ESCAPE_HEX) return 0;
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
                                         struct constrain_escape *escape, uint8_t byte)
{
    const int digit = base_hex_digit(byte);
    if (digit < 0) return CONSTRAIN_TEXT_DEAD;
    uint32_t value = escape->value << 4 | (uint32_t)digit;
    if (schema->generate) { /* generation escapes only control characters */
        uint32_t shift = 4 * (3 - escape->digits), lo = value << shift, hi = lo + (1u << shift) - 1;
        if (lo > 31 || !any_control(d, *q, lo, hi < 31 ? hi : 31)) return CONSTRAIN_TEXT_DEAD;
    }
    if (escape->digits < 3) {
        escape->digits++;
        escape->value = value & 0xffff;
        return CONSTRAIN_TEXT_INSIDE;
    }
    const struct constrain_escape whole = *escape;
    *escape = (struct constrain_escape){0};
    if (whole.kind == CONSTRAIN_ESCAPE_HEX && value >= 0xd800 && value < 0xdc00) {
        escape->kind = CONSTRAIN_ESCAPE_LOW_SLASH;
        escape->high = (value - 0xd800) & 0x3ff;
        return CONSTRAIN_TEXT_INSIDE;
    }
    if (whole.kind == CONSTRAIN_ESCAPE_LOW_HEX) {
        if (value < 0xdc00 || value > 0xdfff) return CONSTRAIN_TEXT_DEAD;
        value = 0x10000 + ((uint32_t)whole.high << 10) + (value - 0xdc00);
    } else if (value >= 0xdc00 && value < 0xe000) {
        return CONSTRAIN_TEXT_DEAD;
    }
    *q = step_code(d, *q, value);
    return *q ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
}

static enum constrain_text_step step_escape(const struct constrain_schema *schema,
                                            const struct constrain_dfa *d, uint32_t *q,
                                            struct constrain_escape *escape, uint8_t byte)
{
    static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    switch (escape->kind) {
    case CONSTRAIN_ESCAPE_BEGUN:
        if (byte == 'u') {
            escape->kind = CONSTRAIN_ESCAPE_HEX;
            return schema->generate && !any_control(d, *q, 0, 31) ? CONSTRAIN_TEXT_DEAD
                                                                  : CONSTRAIN_TEXT_INSIDE;
        }
        for (size_t i = 0; i + 1 < sizeof names; i += 2) {
            if (byte != (uint8_t)names[i]) continue;
            escape->kind = CONSTRAIN_ESCAPE_NONE;
            *q = constrain_dfa_step(d, *q, (uint8_t)names[i + 1]);
            return *q ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
        }
        return CONSTRAIN_TEXT_DEAD;
    case CONSTRAIN_ESCAPE_LOW_SLASH:
        escape->kind = CONSTRAIN_ESCAPE_LOW_U;
        return byte == '\\' ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
    case CONSTRAIN_ESCAPE_LOW_U:
        escape->kind = CONSTRAIN_ESCAPE_LOW_HEX;
        return byte == 'u' ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
    default:
        return step_hex(schema, d, q, escape, byte);
    }
}

enum constrain_text_step constrain_text_step(const struct constrain_schema *schema,
                                             const struct constrain_dfa *d, uint32_t *q,
                                             struct constrain_escape *escape, uint8_t byte)
{
    if (escape->kind) return step_escape(schema, d, q, escape, byte);
    if (byte == '"') return CONSTRAIN_TEXT_CLOSED;
    if (byte == '\\') {
        escape->kind = CONSTRAIN_ESCAPE_BEGUN;
        return schema->generate && !any_escape(d, *q) ? CONSTRAIN_TEXT_DEAD : CONSTRAIN_TEXT_INSIDE;
    }
    if (byte < 0x20) return CONSTRAIN_TEXT_DEAD;
    *q = constrain_dfa_step(d, *q, byte);
    return *q ? CONSTRAIN_TEXT_INSIDE : CONSTRAIN_TEXT_DEAD;
}

static void step_string(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_dfa *d = schema->string[f.index].dfa;
    const struct constrain_length *length = &schema->string[f.index].length;
    if (f.state == 0) { /* before the opening quote */
        f.state = 1;
        if (byte == '"') emit_frame(s, &f);
        return;
    }
    const bool begins = constrain_text_begins(f.string.escape, byte);
    switch (constrain_text_step(schema, d, &f.state, &f.string.escape, byte)) {
    case CONSTRAIN_TEXT_INSIDE:
        if (!begins || constrain_length_count(length, &f.string.count)) emit_frame(s, &f);
        break;
    case CONSTRAIN_TEXT_CLOSED:
        if ((d->accept[f.state] & CONSTRAIN_DFA_ACCEPTS) && f.string.count >= length->min)
            constrain_state_emit(s, f.next);
        break;
    case CONSTRAIN_TEXT_DEAD:
        break;
    }
}

/* -- arrays -- */

static bool array_may_close(const struct constrain_array *a, const struct constrain_frame *f)
{
    for (uint32_t i = 0; i < a->n_contains; i++)
        if (f->array.contains[i] < a->min_contains[i]) return false;
    return f->array.n_items >= a->min;
}

/* Computes the frame after one more item that counts for `marks`; false if the item is not
 * allowed. */
bool constrain_array_after(const struct constrain_array *a, const struct constrain_frame *f,
                           uint32_t marks, struct constrain_frame *after)
{
    uint32_t top = a->positions > a->min ? a->positions : a->min;
    if (a->max != UINT32_MAX && a->max > top) top = a->max;
    *after = *f;
    after->array.phase = CONSTRAIN_ARRAY_NEXT;
    after->array.space = 0;
    if (f->array.n_items >= a->max) return false;
    if (f->array.n_items <= top) after->array.n_items++;
    if (a->unique) {
        after->array.seen |= 1ull << marks;
        return after->array.seen != f->array.seen;
    }
    const uint32_t left = a->max - after->array.n_items;
    for (uint32_t i = 0; i < a->n_contains; i++) {
        uint32_t count = f->array.contains[i],
                 stop = a->max_contains[i] < 255 ? a->max_contains[i] : a->min_contains[i];
        if (!(marks >> i & 1)) {
            if (count < a->min_contains[i] && left < a->min_contains[i] - count) return false;
            continue;
        }
        if (count >= a->max_contains[i] && a->max_contains[i] < 255) return false;
        if (count < stop) after->array.contains[i] = (uint8_t)++count;
        if (count < a->min_contains[i] && left < a->min_contains[i] - count) return false;
    }
    return true;
}

static void emit_items(struct constrain_state *s, const struct constrain_frame *f, bool *some)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_array *a = &schema->array[f->index];
    uint32_t position = f->array.n_items < a->positions ? f->array.n_items : a->positions;
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
    const struct constrain_array *a = &schema->array[f.index];
    uint32_t phase = f.array.phase;
    bool more = false;
    if (phase == CONSTRAIN_ARRAY_OPEN) {
        f.array.phase = CONSTRAIN_ARRAY_FIRST;
        if (byte == '[') emit_frame(s, &f);
    } else if (read_space(schema, phase == CONSTRAIN_ARRAY_COMMA, &f.array.space, byte)) {
        emit_frame(s, &f);
    } else if (byte == ']' && phase != CONSTRAIN_ARRAY_COMMA) {
        if (array_may_close(a, &f)) constrain_state_emit(s, f.next);
    } else if (byte == ',' && phase == CONSTRAIN_ARRAY_NEXT) {
        f.array.phase = CONSTRAIN_ARRAY_COMMA;
        f.array.space = 0;
        emit_items(s, &f, &more);
        if (more) emit_frame(s, &f);
    }
}

/* -- objects -- */

uint32_t constrain_object_missing(const struct constrain_object *o, const struct constrain_frame *f)
{
    uint32_t n = 0;
    for (int i = 0; i < CONSTRAIN_SEEN_WORDS; i++) {
        const uint64_t names =
            i == CONSTRAIN_FIRST_MARK / 64 ? (1ull << CONSTRAIN_FIRST_MARK % 64) - 1 : UINT64_MAX;
        n += (uint32_t)__builtin_popcountll(o->required[i] & ~f->object.seen[i] & names);
    }
    return n;
}

/* Returns word i of the bits of the first n known names. */
static uint64_t first_names(uint32_t n, uint32_t i)
{
    return n >= 64 * (i + 1) ? UINT64_MAX : n > 64 * i ? (1ull << n % 64) - 1 : 0;
}

/* Returns whether a required name among the first n known ones is missing. */
static bool is_due(const struct constrain_object *o, const struct constrain_frame *f, uint32_t n)
{
    uint64_t due = 0;
    for (uint32_t i = 0; 64 * i < n; i++)
        due |= o->required[i] & ~f->object.seen[i] & first_names(n, i);
    return due != 0;
}

/* Returns whether the known names from `next` on, and names that the schema does not mention, can
 * add the names and marks that an object needs after `count` names. */
static bool suffices(const struct constrain_schema *schema, const struct constrain_object *o,
                     const uint64_t *seen, uint32_t count, uint32_t next)
{
    const uint32_t *marks = schema->label + o->rest, *names = marks + o->n_key + 1;
    const uint64_t missing =
        (o->required[CONSTRAIN_FIRST_MARK / 64] & ~seen[CONSTRAIN_FIRST_MARK / 64]) >>
        CONSTRAIN_FIRST_MARK % 64;
    const bool closed = seen[CONSTRAIN_OTHER_SEEN / 64] >> CONSTRAIN_OTHER_SEEN % 64 & 1;
    return (missing & ~(uint64_t)marks[next]) == 0 && count + (closed ? 0 : names[next]) >= o->min;
}

/* Returns whether an object can still end after a name of class c and a value. */
static bool any_after(const struct constrain_schema *schema, const struct constrain_object *o,
                      const struct constrain_frame *f, uint32_t c)
{
    const struct constrain_slice options = schema->slice[o->cls + c];
    struct constrain_frame after;
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *option = &schema->option[options.at + i];
        if (schema->place[option->place].alive &&
            constrain_object_after(schema, f, c, option->marks, &after))
            return true;
    }
    return false;
}

bool constrain_object_allows(const struct constrain_schema *schema,
                             const struct constrain_object *o, const struct constrain_frame *f,
                             uint32_t c, uint32_t missing)
{
    uint32_t known = schema->label[o->known + c], count = f->object.n_names;
    if (!(schema->bits[o->usable + c / 64] >> c % 64 & 1) || count >= o->max) return false;
    bool wanted = false;
    if (known) {
        uint64_t bit = 1ull << (known - 1) % 64;
        if (f->object.seen[(known - 1) / 64] & bit) return false;
        wanted = o->required[(known - 1) / 64] & bit;
    } else if (f->object.seen[CONSTRAIN_OTHER_SEEN / 64] >> CONSTRAIN_OTHER_SEEN % 64 & 1) {
        return false;
    }
    if (!wanted && o->max - count <= missing) return false;
    return !schema->ordered ||
           (!is_due(o, f, known ? known - 1 : o->n_key) && any_after(schema, o, f, c));
}

/* Returns whether state q of the name's automaton can lead to an allowed class. */
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

/* Returns whether an escape that has begun can lead to an allowed class. Generation writes only
 * short escapes and those of control characters. */
static bool may_escape(const struct constrain_schema *schema, const struct constrain_object *o,
                       const struct constrain_frame *f, uint32_t q, uint32_t missing)
{
    const struct constrain_escape escape = f->object.escape;
    uint32_t left = 4 - escape.digits, lo = 0, hi = 127, to;
    if (escape.kind == CONSTRAIN_ESCAPE_HEX) {
        lo = (uint32_t)escape.value << 4 * left;
        hi = lo + (1u << 4 * left) - 1;
    }
    for (uint32_t c = lo; c <= hi && c < 128; c++) {
        bool plain = escape.kind == CONSTRAIN_ESCAPE_BEGUN && (c == '"' || c == '/' || c == '\\');
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
    const struct constrain_object *o = &schema->object[f->index];
    uint32_t missing = constrain_object_missing(o, f);
    if (ends) {
        uint32_t label = schema->label[o->label + q];
        return label && constrain_object_allows(schema, o, f, label - 1, missing);
    }
    if (f->object.escape.kind && schema->generate) return may_escape(schema, o, f, q, missing);
    return may_reach(schema, o, f, q, missing);
}

static bool object_may_close(const struct constrain_object *o, const struct constrain_frame *f)
{
    return constrain_object_has_all(o, f->object.seen) && f->object.n_names >= o->min;
}

static void set_phase(struct constrain_frame *f, uint8_t phase)
{
    f->object.phase = phase;
    f->object.space = 0;
}

static void step_name(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_object *o = &schema->object[f.index];
    switch (constrain_text_step(schema, o->key, &f.state, &f.object.escape, byte)) {
    case CONSTRAIN_TEXT_INSIDE:
        if (constrain_object_may_name(schema, &f, f.state, false)) emit_frame(s, &f);
        break;
    case CONSTRAIN_TEXT_CLOSED:
        if (!constrain_object_may_name(schema, &f, f.state, true)) break;
        f.name_class = schema->label[o->label + f.state] - 1;
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
    const struct constrain_object *o = &schema->object[f.index];
    uint8_t phase = f.object.phase, next = phase;
    if (phase == CONSTRAIN_OBJECT_NAME) {
        step_name(s, f, byte);
        return;
    }
    const bool separated = phase == CONSTRAIN_OBJECT_COMMA || phase == CONSTRAIN_OBJECT_VALUE;
    if (phase != CONSTRAIN_OBJECT_OPEN && read_space(schema, separated, &f.object.space, byte)) {
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
        f.state = 1;
    }
    if (next == phase) return;
    bool names = next == CONSTRAIN_OBJECT_COMMA || next == CONSTRAIN_OBJECT_NAME;
    if (names && !constrain_object_may_name(schema, &f, 1, false)) return;
    set_phase(&f, next);
    emit_frame(s, &f);
}

/* In order, a name excludes itself and all known names before it: objects that differ only in
 * optional names so far have equal frames. */
bool constrain_object_after(const struct constrain_schema *schema, const struct constrain_frame *f,
                            uint32_t c, uint32_t marks, struct constrain_frame *after)
{
    const struct constrain_object *o = &schema->object[f->index];
    const uint32_t known = schema->label[o->known + c], next = known ? known : o->n_key;
    const uint32_t enough = o->max == UINT32_MAX ? o->min : COUNT_LIMIT;
    *after = *f;
    after->state = 0;
    set_phase(after, CONSTRAIN_OBJECT_NEXT);
    if (after->object.n_names < enough) after->object.n_names++;
    uint64_t *seen = after->object.seen;
    if (known) seen[(known - 1) / 64] |= 1ull << (known - 1) % 64;
    if (!known && constrain_object_counts(schema->generate, o->min))
        seen[CONSTRAIN_OTHER_SEEN / 64] |= 1ull << CONSTRAIN_OTHER_SEEN % 64;
    seen[CONSTRAIN_FIRST_MARK / 64] |= (uint64_t)marks << CONSTRAIN_FIRST_MARK % 64;
    if (!schema->ordered) return true;
    for (uint32_t i = 0; 64 * i < next; i++) seen[i] |= first_names(next, i);
    return suffices(schema, o, seen, after->object.n_names, next);
}

static void enter_object(struct constrain_state *s, struct constrain_frame f)
{
    const struct constrain_schema *schema = s->constraint->schema;
    struct constrain_slice options = schema->slice[schema->object[f.index].cls + f.name_class];
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *o = &schema->option[options.at + i];
        struct constrain_frame back;
        if (constrain_object_after(schema, &f, f.name_class, o->marks, &back))
            emit_place(s, o->place, &back);
    }
}

/* -- all frames -- */

static void step_literal(struct constrain_state *s, struct constrain_frame f, uint8_t byte)
{
    uint32_t size;
    const char *text = constrain_literal(s->constraint->schema, f.index, &size);
    if ((uint8_t)text[f.literal.read] != byte) return;
    f.literal.read++;
    if (f.literal.read < size)
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
        if (f.array.phase == CONSTRAIN_ARRAY_FIRST || f.array.phase == CONSTRAIN_ARRAY_COMMA)
            emit_items(s, &f, NULL);
        return true;
    case CONSTRAIN_FRAME_OBJECT:
        if (f.object.phase == CONSTRAIN_OBJECT_VALUE) enter_object(s, f);
        return true;
    case CONSTRAIN_FRAME_ROOT:
        after.root.done = 1;
        if (!f.root.done)
            emit_place(s, f.index, &after);
        else
            constrain_state_emit(s, f.next);
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
    default: /* CONSTRAIN_FRAME_ROOT: white space is read only when checking */
        if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') emit_frame(s, &f);
    }
}
