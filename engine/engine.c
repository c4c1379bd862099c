/* engine/engine.c: the engine object. See engine/engine.h. */
#include "engine/engine.h"
#include "engine/backend.h"
#include <stdlib.h>

struct engine_options engine_options_default(void)
{
    return (struct engine_options){.level = cpu_level_best()};
}

struct engine *engine_new(const struct engine_options *options, struct base_error *err)
{
    const struct engine_backend *host =
        options->plan_only ? &engine_backend_plan : &engine_backend_cpu;
    struct engine *e = calloc(1, sizeof(*e));
    if (!e) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for the engine"));
    e->options = *options;
    e->place[e->n_places++] = (struct engine_place){.backend = host};
    if (host->open(e, err)) return e;
    engine_free(e);
    return NULL;
}

void engine_free(struct engine *e)
{
    if (!e) return;
    e->place[0].backend->close(e);
    free(e);
}

const struct engine_place *engine_add_place(struct engine *e, const struct engine_backend *backend,
                                            void *device, struct base_error *err)
{
    if (e->n_places == ENGINE_PLACES_MAX)
        return base_null(base_fail(err, BASE_FAILED, "more than %d places", ENGINE_PLACES_MAX));
    struct engine_place *place = &e->place[e->n_places];
    *place = (struct engine_place){.index = e->n_places++, .backend = backend, .device = device};
    return place;
}

void engine_set_observer(struct engine *e, const struct engine_observer *observer)
{
    e->observer = observer;
}

void engine_set_read_ahead(struct engine *e, bool on)
{
    e->reads_ahead = on;
}
