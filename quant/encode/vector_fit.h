/* quant/encode/vector_fit.h: private to quant/: the search for scales and entries of types whose
 * groups of 2, 4 or 8 elements are entries of a book of vectors, with one d for a row: IQ2_KL and
 * IQ1_KT to IQ4_KT.
 *
 * A book has up to 65536 vectors and no structure that a search could use. Its vectors are
 * therefore sorted into cells: the values of each element are divided into levels that are equally
 * frequent, and a cell is a combination of levels. The distance of elements from a cell is a sum
 * over its halves and a bound for the errors of its vectors; cells far away are not read. */
#pragma once

#include "quant/encode/fit.h"
#include <pthread.h>

enum { VECTOR_LEVELS = 8, VECTOR_HALVES = 81, VECTOR_PADDING = 16, VECTOR_SUBS = 8 };

/* A book, whose cells are filled when it is first used. */
struct quant_vectors {
    int len, n;                               /* elements of a vector; vectors */
    int n_levels, n_halves;                   /* n_levels to the power of len / 2 */
    void (*vector)(int entry, int8_t *value); /* writes the values of an entry */
    pthread_once_t once;
    void (*fill)(void);
    float low[VECTOR_LEVELS], high[VECTOR_LEVELS]; /* least and largest value of a level */
    uint32_t *first; /* [n_halves * n_halves + 1], by cell: first half * n_halves + second */
    int8_t *value;   /* [len][n + VECTOR_PADDING], sorted by cell */
    uint16_t *entry; /* [n + VECTOR_PADDING] */
};

#define QUANT_VECTORS(NAME, LEN, N, LEVELS, HALVES, VECTOR)                                        \
    static int8_t NAME##_value[(LEN) * ((N) + VECTOR_PADDING)];                                    \
    static uint16_t NAME##_entry[(N) + VECTOR_PADDING];                                            \
    static uint32_t NAME##_first[(HALVES) * (HALVES) + 1];                                         \
    static void NAME##_fill(void);                                                                 \
    static struct quant_vectors NAME = {.len = (LEN),                                              \
                                        .n = (N),                                                  \
                                        .n_levels = (LEVELS),                                      \
                                        .n_halves = (HALVES),                                      \
                                        .vector = (VECTOR),                                        \
                                        .once = PTHREAD_ONCE_INIT,                                 \
                                        .fill = NAME##_fill,                                       \
                                        .first = NAME##_first,                                     \
                                        .value = NAME##_value,                                     \
                                        .entry = NAME##_entry};                                    \
    static void NAME##_fill(void)                                                                  \
    {                                                                                              \
        quant_vectors_fill(&NAME);                                                                 \
    }

void quant_vectors_fill(struct quant_vectors *book);

/* Finds an entry with a small weighted squared error for the elements x of a group, and returns
 * that error, or infinity if none below `limit` is found. */
typedef float quant_vector_search(const struct quant_vectors *book, const float *x, const float *w,
                                  float limit, uint16_t *entry);
quant_vector_search quant_vector_search_scalar, quant_vector_search_avx2,
    quant_vector_search_avx512, quant_vector_search_neon;

/* The fields of a super-block of 8 sub-blocks, before their bits are packed. */
struct quant_vector_fit {
    uint8_t scale[VECTOR_SUBS]; /* numbers of scales */
    uint8_t book[VECTOR_SUBS];
    uint16_t entry[FIT_LEN / 2]; /* by group */
    uint8_t sign[FIT_LEN / 8];   /* bit i / 32 of i % 32: element i is negative */
};

/* x ~ d * scale * value, or with magnitudes d * scale * sign * |value|. */
struct quant_vector_form {
    struct quant_vectors *book[2]; /* of each sub-block one; NULL: there is one book */
    const int8_t *scales;          /* NULL: first_scale, first_scale + 1 .. */
    int first_scale, n_scales;
    bool magnitudes;
    bool by_size;  /* weights: quant_fit_prepare */
    bool by_root;  /* weights with importance: that times sqrt(mean square + x^2) */
    bool tempered; /* with by_root: importance^0.75 */
    /* Trial scales, of each sign: from root mean square / low to largest element / high. */
    float low, high;
    int n_trials;
    size_t block_bytes, header_bytes; /* header: d of a row, binary16 (2) or binary32 (4) */
    void (*pack)(const struct quant_vector_fit *fit, void *block); /* to a block of zeros */
};
/* Encodes k elements, a multiple of FIT_LEN, as a row. */
void quant_vector_encode(const struct quant_search *search, const struct quant_vector_form *form,
                         int64_t k, const float *in, const float *importance, void *row);
