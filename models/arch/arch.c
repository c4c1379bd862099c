/* models/arch/arch.c: the table of architectures, a list of families. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"
#include <string.h>

static const struct model_arch *const families[] = {
    model_arch_llama,     model_arch_gemma,  model_arch_gpt,    model_arch_window,
    model_arch_experts,   model_arch_latent, model_arch_hybrid, model_arch_source,
    model_arch_diffusion, model_arch_encoder};

const char *model_arch_name(size_t i, const struct model_arch **row)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct model_arch *a = families[f]; a->name[0]; a++)
            for (int n = 0; n < MODEL_MAX_NAMES && a->name[n]; n++)
                if (i-- == 0) {
                    if (row) *row = a;
                    return a->name[n];
                }
    return NULL;
}

const struct model_arch *model_arch_find(struct gguf_str name, const char **stored)
{
    const struct model_arch *row;
    const char *known;
    for (size_t i = 0; (known = model_arch_name(i, &row)); i++)
        if (strlen(known) == name.size && !memcmp(known, name.data, name.size)) {
            *stored = known;
            return row;
        }
    return NULL;
}

const struct model_arch *model_arch_find_drafter(struct gguf_str name, const char **stored)
{
    for (const struct model_arch *a = model_arch_drafter; a->name[0]; a++)
        if (gguf_str_is(name, a->name[0])) {
            *stored = a->name[0];
            return a;
        }
    return NULL;
}

const struct model_arch *model_arch_known(const struct model_arch *arch, uint32_t n_layer,
                                          uint32_t n_vocab, uint32_t n_expert)
{
    for (int i = 0; i < MODEL_MAX_KNOWN && arch->known[i].as; i++) {
        const struct model_known *k = &arch->known[i];
        if (n_layer >= k->min_layers && (!k->max_layers || n_layer <= k->max_layers) &&
            (!k->n_vocab || k->n_vocab == n_vocab) && (!k->n_expert || k->n_expert == n_expert))
            return k->as;
    }
    return arch;
}
