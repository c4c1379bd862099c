/* cli/option_value.c: values of options. See cli/option_value.h. */
#include "cli/option_value.h"
#include "base/size.h"
#include "cli/input.h"
#include "cli/system.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ONE_SIZE = 64 };

/* ---- Numbers, switches, choices ---- */

static bool is_integer(const struct cli_option *o, int64_t value)
{
    return (double)value >= o->low && (double)value <= o->high;
}

static bool parse_integer(const struct cli_option *o, const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == 0 && is_integer(o, *out);
}

static bool parse_integers(const struct cli_option *o, const char *text, struct cli_integers *out)
{
    char one[ONE_SIZE];
    out->count = 0;
    for (;; text++) {
        const size_t size = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)(size < sizeof one ? size : sizeof one), text);
        if (out->count == CLI_INTEGERS_MAX || size >= sizeof one ||
            !parse_integer(o, one, &out->item[out->count++]))
            return false;
        text += size;
        if (*text == '\0') return true;
    }
}

static bool set_real(const struct cli_option *o, double value, float *out)
{
    *out = (float)value;
    return value >= o->low && value <= o->high;
}

static bool parse_real(const struct cli_option *o, const char *text, float *out)
{
    if (*text == '\0' || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    char *end;
    const double value = strtod(text, &end);
    return *end == '\0' && set_real(o, value, out);
}

bool cli_size_parse(const char *text, const char *option, uint64_t *out, struct base_error *err)
{
    enum { MEGABYTE = 1000 * 1000 };
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    const uint64_t unit = *end == 'M' ? MEGABYTE : *end == 'G' ? 1000ULL * MEGABYTE : 0;
    if (text[0] < '0' || text[0] > '9' || errno || n == 0 || unit == 0 || end[1] ||
        !base_mul(n, unit, out))
        return base_fail_at(err, BASE_USAGE, option, -1,
                            "'%s' is not a size: a whole number and M or G, as 500M or 2G", text);
    return true;
}

static bool parse_flag(const char *text, bool *out)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) != 0 && strcasecmp(text, no[i]) != 0) continue;
        *out = strcasecmp(text, yes[i]) == 0;
        return true;
    }
    return false;
}

bool cli_is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *c = choices; n > 0 && c; c = strchr(c, '|')) {
        c += *c == '|';
        if (strncasecmp(c, text, n) == 0 && (c[n] == '|' || c[n] == '\0')) return true;
    }
    return false;
}

/* Returns whether a text is a list of at most CLI_INTEGERS_MAX of the choices, separated by commas.
 */
static bool are_choices(const char *choices, const char *text)
{
    char one[ONE_SIZE];
    for (int n = 1; n <= CLI_INTEGERS_MAX; n++, text++) {
        const size_t size = strcspn(text, ",");
        if (size >= sizeof one) return false;
        snprintf(one, sizeof one, "%.*s", (int)size, text);
        text += size;
        if (!cli_is_choice(choices, one)) return false;
        if (*text == '\0') return true;
    }
    return false;
}

/* ---- Lists ---- */

static bool add_item(struct base_texts *list, const char *source, const char *text,
                     struct base_keep *keep, struct base_error *err)
{
    if (list->count == CLI_LIST_MAX)
        return base_fail_at(err, BASE_USAGE, source, -1, "given more than %d times", CLI_LIST_MAX);
    if (*text == '\0') return base_fail_at(err, BASE_USAGE, source, -1, "is empty");
    return base_texts_add(list, text, keep, err);
}

/* Adds one of the words of a list. An empty one is probably a typing error: it would allow an empty
 * answer. */
static bool add_word(struct base_texts *list, const char *source, const char *word, bool is_only,
                     struct base_keep *keep, struct base_error *err)
{
    if (list->count == CLI_LIST_MAX)
        return base_fail_at(err, BASE_USAGE, source, -1, "more than %d", CLI_LIST_MAX);
    if (*word == '\0')
        return base_fail_at(err, BASE_USAGE, source, -1, "choice %zu is empty: %s", list->count + 1,
                            is_only ? "give texts separated by commas"
                                    : "there is a comma too many");
    return base_texts_add(list, word, keep, err);
}

static bool split_words(struct base_texts *list, const char *source, const char *text,
                        struct base_keep *keep, struct base_error *err)
{
    const bool is_only = *text == '\0';
    *list = (struct base_texts){0};
    for (;; text++) {
        const size_t size = strcspn(text, ",");
        const char *word = base_keep_text(keep, text, size, err);
        if (!word || !add_word(list, source, word, is_only, keep, err)) return false;
        text += size;
        if (*text == '\0') return true;
    }
}

/* ---- From a text ---- */

bool cli_value_from_text(const struct cli_option *o, void *member, const char *source,
                         const char *text, struct base_keep *keep, struct base_error *err)
{
    switch (o->kind) {
    case CLI_FLAG:
        if (parse_flag(text, member)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1, "'%s' is neither on nor off", text);
    case CLI_TEXT:
        *(const char **)member = text;
        return true;
    case CLI_LIST:
        return add_item(member, source, text, keep, err);
    case CLI_WORDS:
        return split_words(member, source, text, keep, err);
    case CLI_INTEGER:
        if (parse_integer(o, text, member)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1,
                            "'%s' is not a whole number from %.0f to %.0f", text, o->low, o->high);
    case CLI_INTEGERS:
        if (parse_integers(o, text, member)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1,
                            "'%s' is not one to %d whole numbers from %.0f to %.0f, separated by "
                            "commas",
                            text, CLI_INTEGERS_MAX, o->low, o->high);
    case CLI_REAL:
        if (parse_real(o, text, member)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1, "'%s' is not a number from %g to %g", text,
                            o->low, o->high);
    case CLI_CHOICE:
        *(const char **)member = text;
        if (cli_is_choice(o->choices, text)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1, "'%s' is none of %s", text, o->choices);
    case CLI_CHOICES:
        *(const char **)member = text;
        if (are_choices(o->choices, text)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1,
                            "'%s' is no list, separated by commas, of %s", text, o->choices);
    }
    return false;
}

const char *cli_value_unescape(const char *source, const char *text, struct base_keep *keep,
                               struct base_error *err)
{
    BASE_LOCAL_BUFFER bytes = BASE_BUFFER_INIT;
    const char *out = NULL;
    cli_input_unescape(text, strlen(text), &bytes);
    if (cli_buffer_check(&bytes, err))
        out = base_keep_text(keep, bytes.size ? bytes.data : "", bytes.size, err);
    if (out && strlen(out) < bytes.size) {
        base_fail_at(err, BASE_USAGE, source, -1, "contains a NUL");
        out = NULL;
    }
    return out;
}

/* ---- From a JSON value ---- */

struct json_setter {
    const struct cli_option *option;
    char source[CLI_NAME_SIZE]; /* "--top-k" */
    void *member;
    struct base_keep *keep;
    bool escapes;
};

static bool fail_kind(const char *source, const char *wanted, struct base_error *err)
{
    return base_fail_at(err, BASE_USAGE, source, -1, "is not %s", wanted);
}

/* Returns the text of a JSON string, with bytes in place of its escapes; NULL with an error. */
static const char *text_of(const struct json_setter *s, const json_t *value, struct base_error *err)
{
    const char *text = json_string_value(value);
    const size_t size = json_string_length(value);
    if (strlen(text) == size)
        return s->escapes && s->option->escapes ? cli_value_unescape(s->source, text, s->keep, err)
                                                : text;
    return base_null(base_fail_at(err, BASE_USAGE, s->source, -1, "contains a NUL"));
}

static bool set_text(const struct json_setter *s, const json_t *value, struct base_error *err)
{
    const char *text = text_of(s, value, err);
    return text && cli_value_from_text(s->option, s->member, s->source, text, s->keep, err);
}

static bool set_texts(const struct json_setter *s, const json_t *list, const char *wanted,
                      struct base_error *err)
{
    if (json_array_size(list) == 0 && s->option->kind == CLI_WORDS)
        return add_word(s->member, s->source, "", true, s->keep, err);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *text = json_is_string(one) ? text_of(s, one, err) : NULL;
        if (!json_is_string(one)) return fail_kind(s->source, wanted, err);
        if (!text || !(s->option->kind == CLI_WORDS
                           ? add_word(s->member, s->source, text, false, s->keep, err)
                           : add_item(s->member, s->source, text, s->keep, err)))
            return false;
    }
    return true;
}

static bool set_integer(const struct json_setter *s, const json_t *value, struct base_error *err)
{
    const struct cli_option *o = s->option;
    const int64_t n = json_integer_value(value);
    if (!json_is_integer(value)) return fail_kind(s->source, "a whole number", err);
    *(int64_t *)s->member = n;
    return is_integer(o, n) || base_fail_at(err, BASE_USAGE, s->source, -1,
                                            "'%lld' is not a whole number from %.0f to %.0f",
                                            (long long)n, o->low, o->high);
}

static bool set_number(const struct json_setter *s, const json_t *value, struct base_error *err)
{
    const struct cli_option *o = s->option;
    const char *kept = text_json_number(value);
    if (kept) return cli_value_from_text(o, s->member, s->source, kept, s->keep, err);
    if (!json_is_number(value)) return fail_kind(s->source, "a number", err);
    const double number = json_number_value(value);
    return set_real(o, number, s->member) ||
           base_fail_at(err, BASE_USAGE, s->source, -1, "'%.17g' is not a number from %g to %g",
                        number, o->low, o->high);
}

bool cli_value_from_json(const struct cli_option *o, void *member, struct chat_request *request,
                         const json_t *value, bool escapes, struct base_keep *keep,
                         struct base_error *err)
{
    struct json_setter s = {.option = o, .member = member, .keep = keep, .escapes = escapes};
    snprintf(s.source, sizeof s.source, "--%s", o->name);
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)member = json_is_true(value);
        return json_is_boolean(value) || fail_kind(s.source, "true or false", err);
    case CLI_INTEGER:
        return set_integer(&s, value, err);
    case CLI_REAL:
        return set_number(&s, value, err);
    case CLI_LIST:
    case CLI_WORDS:
        if (json_is_array(value)) return set_texts(&s, value, "a list of texts", err);
        break;
    default:
        break;
    }
    if (json_is_string(value)) return set_text(&s, value, err);
    if (o->from_json) return o->from_json(request, value, keep, err);
    return fail_kind(
        s.source,
        o->kind == CLI_LIST || o->kind == CLI_WORDS ? "a text or a list of texts" : "a text", err);
}

bool cli_schema_from_json(struct chat_request *request, const json_t *value, struct base_keep *keep,
                          struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    if (!text_json_is_object(value) && !json_is_boolean(value))
        return fail_kind("--json-schema", "a schema, nor the text of one", err);
    text_json_write(&text, value, false);
    const char *copy =
        cli_buffer_check(&text, err) ? base_keep_text(keep, text.data, text.size, err) : NULL;
    request->generate.constraint.schema = copy;
    return copy != NULL;
}

bool cli_tools_from_json(struct chat_request *request, const json_t *value, struct base_keep *keep,
                         struct base_error *err)
{
    (void)keep;
    request->chat.tool_list = value;
    return json_is_array(value) || fail_kind("--tools", "a list of tools", err);
}

bool cli_variables_from_json(struct chat_request *request, const json_t *value,
                             struct base_keep *keep, struct base_error *err)
{
    (void)keep;
    request->chat.variables = value;
    return text_json_is_object(value) ||
           fail_kind("--template-var", "a text or a list of texts", err);
}
