/* gguf/index.c: the sorted name index. Allocates the array of pointers; the names are in the mapped
 * file. Called by gguf/part.c and gguf/file.c. */
#include "gguf/index.h"

#include <stdlib.h>

/* Equal names keep their order in the file, so the second of two is the duplicate. */
static int compare_sorted(const void *a, const void *b)
{
    const struct gguf_str *x = *(const struct gguf_str *const *)a;
    const struct gguf_str *y = *(const struct gguf_str *const *)b;
    int order = gguf_str_compare(*x, *y);
    return order ? order : (x > y) - (x < y);
}

bool gguf_index_init(struct gguf_index *index, const void *records, uint64_t count, size_t stride,
                     struct base_error *err)
{
    *index = (struct gguf_index){0};
    if (count == 0) return true;
    index->name = calloc(count, sizeof *index->name);
    if (!index->name) return base_fail(err, BASE_NO_MEMORY, "no memory for the index of names");
    for (uint64_t i = 0; i < count; i++)
        index->name[i] = (const struct gguf_str *)((const char *)records + i * stride);
    qsort(index->name, count, sizeof *index->name, compare_sorted);
    index->count = count;
    return true;
}

void gguf_index_free(struct gguf_index *index)
{
    free(index->name);
    *index = (struct gguf_index){0};
}

const void *gguf_index_find(const struct gguf_index *index, struct gguf_str name)
{
    uint64_t low = 0, high = index->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = gguf_str_compare(name, *index->name[middle]);
        if (order == 0) return index->name[middle];
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const void *gguf_index_duplicate(const struct gguf_index *index)
{
    for (uint64_t i = 1; i < index->count; i++)
        if (gguf_str_compare(*index->name[i - 1], *index->name[i]) == 0) return index->name[i];
    return NULL;
}
