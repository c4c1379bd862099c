/* cli/adapters.c: the files of --lora and --control-vector. See cli/adapters.h. */
#include "cli/adapters.h"
#include "base/utf8.h"
#include "cli/system.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- FILE[:SCALE][:FROM-TO] ---- */

/* Cuts the part after the last colon off text[*n] if it is a finite number. */
static void cut_scale(const char *text, size_t *n, float *scale)
{
    const char *colon = base_find_last(text, ':', *n);
    char *end;
    if (!colon || colon == text) return;
    const float x = strtof(colon + 1, &end);
    if (end == colon + 1 || end != text + *n || !isfinite(x)) return;
    *scale = x;
    *n = (size_t)(colon - text);
}

/* Cuts the part after the last colon off text[*n] if it is a range of layers. */
static void cut_range(const char *text, size_t *n, uint32_t *first, uint32_t *last)
{
    const char *colon = base_find_last(text, ':', *n);
    char from[8], to[8];
    int used = 0;
    if (!colon || colon == text || sscanf(colon + 1, "%6[0-9]-%6[0-9]%n", from, to, &used) != 2 ||
        colon + 1 + used != text + *n)
        return;
    *first = (uint32_t)strtoul(from, NULL, 10);
    *last = (uint32_t)strtoul(to, NULL, 10);
    *n = (size_t)(colon - text);
}

/* Whether the path is that of no file, but its part before some colon is. */
static bool follows_file(const char *path)
{
    bool found = false;
    for (size_t n = strlen(path); n > 0 && !found && access(path, F_OK) != 0; n--) {
        char *file = path[n] == ':' ? strndup(path, n) : NULL;
        found = file && access(file, F_OK) == 0;
        free(file);
    }
    return found;
}

static bool parse(const char *text, bool is_vector, struct cli_adapter *a, struct base_error *err)
{
    size_t n = strlen(text);
    *a = (struct cli_adapter){.scale = 1.0f, .last = UINT32_MAX, .is_vector = is_vector};
    if (access(text, F_OK) != 0) { /* the name of a file may have colons */
        if (is_vector) cut_range(text, &n, &a->first, &a->last);
        cut_scale(text, &n, &a->scale);
    }
    if (a->first > a->last)
        return base_fail_at(err, BASE_USAGE, text, -1, "no layer is in the range %u to %u",
                            a->first, a->last);
    a->path = strndup(text, n);
    if (!a->path) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    return !follows_file(a->path) ||
           base_fail_at(err, BASE_USAGE, text, -1, "what follows the file is no :SCALE%s",
                        is_vector ? "[:FROM-TO]" : "");
}

/* ---- Opening ---- */

static bool apply(const struct cli_adapter *item, struct model *model, struct base_error *err)
{
    return item->is_vector
               ? model_steer(model, item->file, item->scale, item->first, item->last, err)
               : model_adapter_add(model, item->file, item->scale, err);
}

static bool open_one(struct cli_adapters *a, const char *text, bool is_vector, struct model *model,
                     struct base_error *err)
{
    struct cli_adapter *item = &a->item[a->count++];
    if (!parse(text, is_vector, item, err)) return false;
    item->file = gguf_open(item->path, err);
    if (!item->file) {
        base_error_set_file(err, item->path);
        return false;
    }
    return apply(item, model, err);
}

bool cli_adapters_apply(const struct cli_adapters *a, struct model *model, struct base_error *err)
{
    for (size_t i = 0; i < a->count; i++)
        if (!apply(&a->item[i], model, err)) return false;
    return true;
}

bool cli_adapters_open(struct cli_adapters *a, const struct cli_values *values, struct model *model,
                       struct base_error *err)
{
    const struct base_texts *lists[] = {&values->request.generate.lora, &values->control_vector};
    const size_t n = lists[0]->count + lists[1]->count;
    if (n == 0) return true;
    a->item = calloc(n, sizeof *a->item);
    if (!a->item) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            if (!open_one(a, lists[k]->item[i], k == 1, model, err)) return false;
    for (uint32_t i = 0; i < model_adapter_count(model); i++) {
        const uint32_t n_norms = model_adapter_facts(model, i)->n_norms;
        if (n_norms > 0)
            cli_note("%s: %u tensors for norms have no effect", a->item[i].path, n_norms);
    }
    return true;
}

void cli_adapters_close(struct cli_adapters *a)
{
    for (size_t i = 0; i < a->count; i++) {
        gguf_close(a->item[i].file);
        free(a->item[i].path);
    }
    free(a->item);
    *a = (struct cli_adapters){0};
}

/* ---- Those of one text ---- */

/* Whether name[n] is the path, or the file's name, with or without ".gguf". */
static bool is_named(const char *path, const char *name, size_t n)
{
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    const size_t whole = strlen(own);
    if (strlen(path) == n && memcmp(path, name, n) == 0) return true;
    return n <= whole && memcmp(own, name, n) == 0 && (n == whole || strcmp(own + n, ".gguf") == 0);
}

bool cli_adapters_choose(const struct cli_adapters *a, const struct base_texts *list,
                         float scale[MODEL_ADAPTERS_MAX], struct base_error *err)
{
    memset(scale, 0, MODEL_ADAPTERS_MAX * sizeof *scale);
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->item[i];
        bool found = false;
        /* The whole text first: a name may end like a scale. */
        for (int cut = 0; cut < 2 && !found; cut++) {
            size_t n = strlen(text);
            float factor = 1.0f;
            if (cut) cut_scale(text, &n, &factor);
            for (size_t k = 0; k < a->count && !found; k++) {
                found = !a->item[k].is_vector && is_named(a->item[k].path, text, n);
                if (found) scale[k] += factor;
            }
        }
        if (!found)
            return base_fail_at(err, BASE_USAGE, "--lora", -1,
                                "'%s' is no adapter of the command line", text);
    }
    return true;
}

void cli_adapters_note(const struct cli_adapters *a, const struct model *model)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct cli_adapter *item = &a->item[i];
        if (item->is_vector) {
            cli_note("control vector %s, scale %g", item->path, (double)item->scale);
            continue;
        }
        const struct model_adapter_facts *f = model_adapter_facts(model, (uint32_t)i);
        cli_note("adapter %s, scale %g, %u matrices%s%s%.*s", item->path, (double)item->scale,
                 f->n_matrices, f->n_invocation ? ", from its invocation on" : "",
                 f->task.size ? ", task " : "", f->task.size < 64 ? (int)f->task.size : 64,
                 f->task.data);
    }
}
