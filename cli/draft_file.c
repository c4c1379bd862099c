/* cli/draft_file.c: see cli/draft_file.h. */
#include "cli/draft_file.h"
#include "cli/model_path.h"
#include <string.h>

enum cli_draft_source cli_draft_source(const struct cli_values *values)
{
    static const char *const names[] = {"off", "auto", "ngram", "mtp"}; /* in the enum's order */
    int i = 0;
    if (!values->draft || values->blas) return CLI_DRAFT_OFF;
    while (i < CLI_DRAFT_FILE && strcmp(values->draft, names[i]) != 0) i++;
    return (enum cli_draft_source)i;
}

static bool open_drafter(struct cli_drafter *d, const char *path, bool plan, struct engine *engine,
                         const struct model *model, struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    d->file = plan ? gguf_open_header(path, err) : gguf_open(path, err);
    if (!d->file) base_error_set_file(err, path);
    if (!d->file || !model_is_drafter(d->file)) return d->file;
    d->model = model_open_drafter(d->file, engine, err);
    if (!d->model) return false;
    return model_drafter_fits(d->model, model, &why) ||
           base_fail_at(err, why.code, "--draft", -1, "%s is not for this model: %s", path,
                        why.text);
}

bool cli_drafter_open(struct cli_drafter *d, const struct cli_values *values, struct engine *engine,
                      const struct model *model, struct base_error *err)
{
    struct base_buffer path = BASE_BUFFER_INIT;
    if (cli_draft_source(values) != CLI_DRAFT_FILE) return true;
    const bool ok = cli_model_path_of(values->draft, &path, err) &&
                    open_drafter(d, path.data, values->plan, engine, model, err);
    base_buffer_free(&path);
    if (ok && !d->model) cli_drafter_close(d);
    return ok;
}

void cli_drafter_close(struct cli_drafter *d)
{
    model_close(d->model);
    gguf_close(d->file);
    *d = (struct cli_drafter){0};
}
