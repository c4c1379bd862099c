/* engine/kv.h: the form in which a device caches keys and values.
 *
 * A cache tensor of a layer has the shape [heads][units][elements]. A unit is what the device
 * interleaves: the rows of `rows` consecutive slots, from a multiple of that on. */
#pragma once

#include "engine/graph.h"

struct engine_kv_form {
    enum engine_kv_q16 what;       /* keys or values */
    uint32_t size;                 /* elements of a row */
    uint32_t rows;                 /* of a unit */
    const struct quant_type *type; /* of the cache tensor, */
    int64_t elements;              /* and its ne[0] */
    uint64_t bytes;                /* of a unit */
    bool is_coded;                 /* stored by engine_set_kv_q16; otherwise by engine_set_rows */
};

/* The form of the keys or values of `size` elements, cached as `type`, in a place (NULL: place 0).
 * Fails with BASE_USAGE if rows are no whole blocks of the type. */
bool engine_kv_form(const struct engine_place *place, enum engine_kv_q16 what,
                    const struct quant_type *type, uint32_t size, struct engine_kv_form *out,
                    struct base_error *err);

/* The ne[0] of an int16-quantized cache (engine_set_kv_q16) of rows of `size` elements in a place;
 * 0: its device has none. */
int64_t engine_kv_coded_elements(const struct engine_place *place, enum engine_kv_q16 what,
                                 int64_t size);

/* Copies row `from_row` of a unit to row `to_row` of a unit of this form; both units lie in the
 * place. */
void engine_kv_copy(const struct engine_place *place, const struct engine_kv_form *form, char *to,
                    uint32_t to_row, const char *from, uint32_t from_row);
