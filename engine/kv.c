/* engine/kv.c: forms of cached keys and values, through the devices. See engine/kv.h. */
#include "engine/kv.h"
#include "engine/backend.h"

static const struct engine_backend *backend_of(const struct engine_place *place)
{
    return place ? place->backend : &engine_backend_cpu;
}

bool engine_kv_form(const struct engine_place *place, enum engine_kv_q16 what,
                    const struct quant_type *type, uint32_t size, struct engine_kv_form *out,
                    struct base_error *err)
{
    if (!type->scalar.encode || size % type->block_len)
        return base_fail(err, BASE_USAGE,
                         "a cache of type %s does not fit heads of %u values (blocks of %u)",
                         type->name, size, type->block_len);
    *out = backend_of(place)->kv_form(what, type, size);
    if (!out->type)
        return base_fail(err, BASE_USAGE, "a cache of type %s cannot be on a %s", type->name,
                         backend_of(place)->name);
    return quant_row_bytes(out->type, (uint64_t)out->elements, &out->bytes) ||
           base_fail(err, BASE_NO_MEMORY, "a cache of rows of %u values is too large", size);
}

int64_t engine_kv_coded_elements(const struct engine_place *place, enum engine_kv_q16 what,
                                 int64_t size)
{
    struct engine_kv_form form;
    struct base_error unused = BASE_ERROR_INIT;
    const bool fits =
        size > 0 && size <= UINT32_MAX &&
        engine_kv_form(place, what, quant_type_by_id(QUANT_F16), (uint32_t)size, &form, &unused);
    return fits && form.is_coded ? form.elements : 0;
}

void engine_kv_copy(const struct engine_place *place, const struct engine_kv_form *form, char *to,
                    uint32_t to_row, const char *from, uint32_t from_row)
{
    backend_of(place)->kv_copy(place, form, to, to_row, from, from_row);
}
