/* cli/cmd/cmd_check.c: `infer check`: tests whether a grammar, schema or expression accepts a text.
 * It uses no model. Status 0: accepted; 1: not accepted, with the position of the first byte that
 * does not fit. */
#include "cli/constrain.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/sandbox.h"

/* Fails with the position of byte `at`: lines and columns count from 1, columns count bytes. */
static bool refuse(const struct base_buffer *text, size_t at, const char *what,
                   struct base_error *err)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        column = text->data[i] == '\n' ? 1 : column + 1;
        line += text->data[i] == '\n';
    }
    return base_fail(err, BASE_FAILED, "not accepted: %s at line %zu, column %zu (byte %zu)", what,
                     line, column, at);
}

static bool check(const struct constraint *c, const struct base_buffer *text,
                  struct base_error *err)
{
    struct constrain_state *state = constrain_state_new(c, err);
    size_t used = 0;
    bool ok = state && constrain_state_feed(state, text->data, text->size, &used, err);
    if (ok && used < text->size)
        ok = refuse(text, used, "unexpected text", err);
    else if (ok && !constrain_state_may_end(state))
        ok = refuse(text, used, "the text ends too early", err);
    constrain_state_free(state);
    return ok;
}

/* Fails for a grammar with named tokens, which cannot be checked because a text has no tokens. */
static bool refuse_tokens(const struct constraint *c, struct base_error *err)
{
    for (uint32_t i = 0; i < constraint_token_count(c); i++) {
        const struct constrain_token *t = constraint_token(c, i);
        if (t)
            return base_fail(
                err, BASE_USAGE,
                "line %u, column %u: the token %.100s cannot be checked in a text: only "
                "a model writes tokens",
                t->line, t->column, t->text);
    }
    return true;
}

static bool cmd_check(struct cli_values *values, struct base_error *err)
{
    struct constraint *constraint = NULL;
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    bool ok = cli_constraint_open(&values->request.generate.constraint, true, false, &constraint,
                                  NULL, err);
    if (ok && !constraint)
        ok = base_fail(err, BASE_USAGE,
                       "nothing to check against: give --grammar, --json-schema, --json-object, "
                       "--regex or --choices");
    ok = ok && refuse_tokens(constraint, err);
    ok = ok && cli_input_read(values, &text, err);
    if (ok && !text.data) base_buffer_add_text(&text, "");
    if (ok && !values->no_sandbox) cli_sandbox_close(0);
    ok = ok && check(constraint, &text, err);
    constraint_free(constraint);
    return ok;
}

const struct cli_command cli_command_check = {
    .name = "check",
    .usage = "infer check --json-schema FILE|--grammar FILE|--regex RE < TEXT",
    .effect = "test whether a grammar, schema or expression accepts a text",
    .about = "Reads a text (-p, -f or standard input) and tests whether the constraint accepts\n"
             "it. Status 0: accepted; 1: not, with the position. Needs no model. A\n"
             "keyword of a schema that cannot be enforced is an error (status 2).",
    .positional = "prompt",
    .run = cmd_check,
};
