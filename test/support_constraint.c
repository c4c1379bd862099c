/* test/support_constraint.c: see test/support_constraint.h. */
#include "test/support_constraint.h"
#include "test/support.h"

struct constraint *support_compile(enum support_kind kind, const char *text, size_t size,
                                   struct base_error *err)
{
    if (kind == GRAMMAR) return constraint_from_grammar(text, size, err);
    if (kind == REGEX) return constraint_from_regex(text, size, err);
    return constraint_from_schema(text, size, &(struct constrain_schema_options){0}, err);
}

int support_accepts(const struct constraint *c, const char *text, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constrain_state *s = constrain_state_new(c, &err);
    size_t used;
    if (!s) {
        assert_int_equal(err.code, BASE_FAILED);
        return -1;
    }
    bool ok = constrain_state_feed(s, text, size, &used, &err);
    if (!ok) assert_int_equal(err.code, BASE_FAILED);
    int result = !ok ? -1 : used == size && constrain_state_may_end(s);
    constrain_state_free(s);
    return result;
}
