/* gguf/layout.c: measures the layout of tensor data in a file. See gguf/values.h.
 *
 * The specification describes a data section that consists of the data of each tensor, padded with
 * zeros to the alignment, in the order of the directory. This program also reads other layouts;
 * some programs do not. */
#include "gguf/part.h"
#include "gguf/values.h"

#include "base/size.h"

/* Counts the bytes in from..to that should be zeros and are not. */
static void check_zeros(struct gguf_layout *l, const unsigned char *bytes, uint64_t from,
                        uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        if (bytes[i] == 0) continue;
        if (l->padding++ == 0) l->padding_at = i;
    }
}

struct gguf_layout gguf_layout_measure(const struct gguf_file *file, int part)
{
    struct gguf_layout l = {0};
    const struct gguf_part_facts facts = gguf_part_facts(file, part);
    const struct gguf_part_places places = gguf_part_places(file, part);
    uint64_t at = places.data_start, count = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t->part != part) continue;
        if (count++ == 0) check_zeros(&l, facts.bytes, places.head_end, places.data_start);
        if (t->offset != at && !l.odd) l.odd = t;
        if (t->offset < at) l.unordered = true;
        if (t->offset > at) l.gaps += t->offset - at;
        const uint64_t end = t->offset + t->size;
        uint64_t padded = end;
        base_align_up(end, places.alignment, &padded);
        if (padded > facts.size) padded = facts.size;
        /* After a gap or out of order, the bytes that follow may be those of another tensor. */
        if (!l.odd) check_zeros(&l, facts.bytes, end, padded);
        at = padded;
    }
    const uint64_t last = count ? places.data_end : places.head_end;
    uint64_t end = last;
    base_align_up(last, places.alignment, &end);
    if (facts.size > end) l.tail = facts.size - end;
    if (l.unordered) l.gaps = 0; /* the bytes may belong to other tensors */
    return l;
}
