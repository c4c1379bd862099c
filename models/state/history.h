/* models/state/history.h: the ids of sequences, for models whose graph depends on ids before a
 * token. */
#pragma once

#include "models/params.h"

struct model_past {
    int32_t id;
    uint32_t n_on; /* ids up to this one that choose an adapter, */
    uint64_t sum;  /* and the sum of these adapters' numbers */
};

struct model_history {
    const struct model_params *params;
    struct model_past *past; /* [n_seq][n_ctx]; NULL: no part of the model depends on it */
};

extern const struct model_state_kind model_state_history;
