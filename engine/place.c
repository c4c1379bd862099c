/* engine/place.c: memory of places, through their devices. See engine/place.h. */
#include "engine/place.h"
#include "base/interrupt.h"
#include "engine/backend.h"
#include <string.h>

bool engine_buffer_new(const struct engine_place *place, enum engine_buffer_kind kind,
                       uint64_t size, struct engine_buffer *out, struct base_error *err)
{
    *out = (struct engine_buffer){.place = place, .kind = kind};
    return place->backend->buffer_new(place, size, out, err);
}

void engine_buffer_free(struct engine_buffer *buffer)
{
    if (buffer->base) buffer->place->backend->buffer_free(buffer);
    *buffer = (struct engine_buffer){0};
}

void engine_place_write(const struct engine_place *place, char *to, const void *from, uint64_t size)
{
    if (place->index == 0)
        memcpy(to, from, size);
    else
        place->backend->write(place, to, from, size);
}

void engine_place_read(const struct engine_place *place, void *to, const char *from, uint64_t size)
{
    if (place->index == 0)
        memcpy(to, from, size);
    else
        place->backend->read(place, to, from, size);
}

bool engine_place_upload(struct engine *e, const struct engine_place *place,
                         const struct engine_upload *uploads, size_t n, struct base_error *err)
{
    if (place->index > 0 && place->backend->upload)
        return place->backend->upload(e, place, uploads, n, err);
    for (size_t i = 0; i < n && base_goes_on(err); i++)
        engine_place_write(place, uploads[i].to, uploads[i].from, uploads[i].size);
    return base_goes_on(err);
}
