/* models/weights.h: a model's tensors, bound once when the model is opened and checked against the
 * shapes that its numbers imply. Private to models/. */
#pragma once

#include "models/model.h"
#include "models/params.h"

struct model_weights {
    struct engine_tensor *tensors;     /* owned; the params' structs point to these */
    const struct engine_place **place; /* [n_tensors]; NULL: place 0 */
    void **copies; /* owned: vectors as F32, transposed taps, experts in one array,
                       rows that were interleaved */
    struct engine_buffer buffers[ENGINE_PLACES_MAX]; /* of the weights in other places */
    uint32_t n_tensors, n_copies;
    uint64_t placed_bytes;    /* of the file's tensors that only other places read */
    uint64_t column_bytes;    /* of copies by columns that were made, or planned */
    uint64_t separated_bytes; /* of rows that are interleaved in the file, separated or planned */
    uint64_t row_bytes;       /* of copies of rows, instead of which the file is not read again */
    const uint32_t *
        *rows; /* [n_tensors]: the rows of `of`, in the file, that are copied; or NULL */
    struct engine_tensor **of;
    bool plans_rows;                       /* they are not read: the place has no memory */
    uint32_t n_unused[MODEL_UNUSED_COUNT]; /* tensors that are not part of the text model */
};

/* Binds every tensor of the file to the field that the rows of `p` name. Fails with BASE_MODEL,
 * which names the tensor, if one is missing, has the wrong shape or a type without arithmetic. A
 * tensor that no row names is an error too, because the result would be wrong without it, unless it
 * is not part of the text model (images, audio, drafts, heads for other uses). After a failure *w
 * is empty. Weights of other places are copied there, by the engine's threads. */
bool model_weights_bind(struct model_weights *w, struct model_params *p,
                        const struct gguf_file *file, struct engine *e, struct base_error *err);
void model_weights_free(struct model_weights *w);
