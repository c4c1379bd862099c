/* models/arch/pooling.h: which of a sequence's hidden states its embedding is made of. */
#pragma once

enum model_pooling {                  /* values of the key pooling_type */
                     MODEL_POOL_NONE, /* each of them is one */
                     MODEL_POOL_MEAN,
                     MODEL_POOL_CLS,  /* that of the first token */
                     MODEL_POOL_LAST, /* that of the last token */
                     MODEL_POOL_RANK  /* scores: one of them through the classifier */
};
