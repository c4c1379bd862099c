/* models/weights.h: a model's tensors: bound once at open, checked against the shapes that the
 * model's numbers imply. Private to models/. */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "models/model.h"
#include "models/params.h"

struct model_weights {
    struct engine_tensor *tensors; /* the params' structs point to these; owned */
    void **copies; /* vectors as F32, transposed taps, experts in one array; owned */
    uint32_t n_tensors, n_copies;
    uint32_t n_unused[MODEL_UNUSED_COUNT]; /* tensors that are no part of the text model */
};

/* Binds every tensor of the file to the fields that the rows of `p` name. A missing or misshapen
 * one, or one of a type without arithmetic, is BASE_MODEL with its name; so is one that no row
 * names, unless it is not part of the text model (images, audio, drafts, heads for other uses): it
 * would change the result. On failure *w is empty. */
bool model_weights_bind(struct model_weights *w, struct model_params *p,
                        const struct gguf_file *file, struct base_error *err);
void model_weights_free(struct model_weights *w);

#endif
