/* quant/super/book_types.c: scalar kernels and rows of the super-block types of ik_llama.cpp whose
 * codes are indices into a book or starts of a generator. Layouts: iq2_k.h and the other headers.
 * They are only read. */
#include "quant/super/iq1_kt.h"
#include "quant/super/iq2_k.h"
#include "quant/super/iq2_kl.h"
#include "quant/super/iq2_ks.h"
#include "quant/super/iq2_kt.h"
#include "quant/super/iq3_k.h"
#include "quant/super/iq3_ks.h"
#include "quant/super/iq3_kt.h"
#include "quant/super/iq4_k.h"
#include "quant/super/iq4_ks.h"
#include "quant/super/iq4_kss.h"
#include "quant/super/iq4_kt.h"
#include "quant/super/iq5_k.h"
#include "quant/super/iq5_ks.h"
#include "quant/super/iq6_k.h"

#define BOOK_TYPE(NAME, ID, HEADER)                                                                \
    SUPER_KERNELS(NAME)                                                                            \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID, .id = QUANT_##ID, .header_bytes = (HEADER), SUPER_MEMBERS_READ(NAME)};

BOOK_TYPE(iq2_k, IQ2_K, 0)
BOOK_TYPE(iq3_k, IQ3_K, 0)
BOOK_TYPE(iq4_k, IQ4_K, 0)
BOOK_TYPE(iq5_k, IQ5_K, 0)
BOOK_TYPE(iq6_k, IQ6_K, 0)
BOOK_TYPE(iq2_ks, IQ2_KS, 2)
BOOK_TYPE(iq3_ks, IQ3_KS, 2)
BOOK_TYPE(iq4_ks, IQ4_KS, 4)
BOOK_TYPE(iq5_ks, IQ5_KS, 4)
BOOK_TYPE(iq4_kss, IQ4_KSS, 4)
BOOK_TYPE(iq2_kl, IQ2_KL, 2)
BOOK_TYPE(iq1_kt, IQ1_KT, 4)
BOOK_TYPE(iq2_kt, IQ2_KT, 4)
BOOK_TYPE(iq3_kt, IQ3_KT, 4)
BOOK_TYPE(iq4_kt, IQ4_KT, 4)
