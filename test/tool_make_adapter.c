/* test/tool_make_adapter.c: writes an adapter with random factors for a model, for tests and
 * benches. Options are support_adapter's fields as name=value. */
#include "test/support_adapter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tool_make_adapter MODEL.gguf OUT.gguf [rank=N] [alpha=X] [seed=N] [type=F32]\n"
    "    [only='WORD ...'] [without='WORD ...'] [invocation='ID ...']\n";

static bool set_option(struct support_adapter *a, const char *option)
{
    const char *value = strchr(option, '=');
    const size_t n = value ? (size_t)(value++ - option) : 0;
    const struct {
        const char *name;
        const char **field;
    } texts[] = {{"only", &a->only}, {"without", &a->without}, {"invocation", &a->invocation}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i].name) == n && memcmp(option, texts[i].name, n) == 0)
            return *texts[i].field = value, true;
    if (strncmp(option, "rank=", 5) == 0) return a->rank = (uint32_t)atoi(value), a->rank > 0;
    if (strncmp(option, "seed=", 5) == 0) return a->seed = (uint64_t)atoi(value), true;
    if (strncmp(option, "alpha=", 6) == 0) return a->alpha = strtof(value, NULL), true;
    if (strncmp(option, "type=", 5) == 0) return (a->type = quant_type_by_name(value)) != NULL;
    return false;
}

int main(int argc, char **argv)
{
    struct support_adapter a = {.rank = 4, .type = quant_type_by_id(QUANT_F32)};
    struct base_error err = BASE_ERROR_INIT;
    char line[800];
    bool ok = argc >= 3;
    for (int i = 3; ok && i < argc; i++) ok = set_option(&a, argv[i]);
    if (!ok) {
        fputs(usage, stderr);
        return 2;
    }
    if (support_adapter_write(&a, argv[1], argv[2], &err)) return 0;
    fprintf(stderr, "tool_make_adapter: %s\n", base_error_format(&err, line, sizeof line));
    return err.code;
}
