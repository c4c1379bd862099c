/* quant/float/lanes.h: private to quant/: the tree that reduces the 16 lanes of the float types. */
#ifndef QUANT_FLOAT_LANES_H
#define QUANT_FLOAT_LANES_H

#include "quant/types.h"

/* The canonical sum of 16 lanes (quant/quant.h). */
static inline float quant_lanes_tree(float lane[16])
{
    for (int h = 8; h >= 1; h /= 2)
        for (int i = 0; i < h; i++) lane[i] += lane[i + h];
    return lane[0];
}

#endif
