/* test/support_session.c: an opened model. See test/support_session.h. */
#include "test/support_session.h"
#include "models/arch/arch.h"
#include "test/support.h"
#include "test/support_apart.h"
#include <float.h>
#include <string.h>

void support_session_open(struct support_session *s, const char *path,
                          const struct engine_options *engine,
                          const struct model_session_options *session)
{
    struct base_error err = BASE_ERROR_INIT;
    *s = (struct support_session){0};
    s->file = gguf_open(path, &err);
    s->engine = engine_new(engine, &err);
    s->model = s->file && s->engine
                   ? support_apart_open(s->file, s->engine, support_apart_now, &err)
                   : NULL;
    s->session = s->model ? model_session_new(s->model, session, &err) : NULL;
    if (!s->session) fail_msg("%s: %s: %s", path, err.item, err.text);
}

void support_session_close(struct support_session *s)
{
    model_session_free(s->session);
    model_close(s->model);
    engine_free(s->engine);
    gguf_close(s->file);
}

bool support_rows_keep(void *rows, uint64_t first, uint64_t n, const float *logits,
                       struct base_error *err)
{
    const struct support_rows *r = rows;
    (void)err;
    memcpy(r->data + first * r->n_vocab, logits, n * r->n_vocab * sizeof *logits);
    return true;
}

bool support_saved_keep(void *buffer, const void *bytes, uint64_t n, struct base_error *err)
{
    (void)err;
    base_buffer_add(buffer, bytes, n);
    return true;
}

bool support_saved_pass_over(void *saved, uint64_t n, struct base_error *err)
{
    struct support_saved *s = saved;
    if (n > s->bytes->size - s->at) return base_fail(err, BASE_FAILED, "past the end");
    s->at += n;
    return true;
}

bool support_saved_read(void *saved, void *bytes, uint64_t n, struct base_error *err)
{
    const struct support_saved *s = saved;
    const char *from = s->bytes->data + s->at;
    if (!support_saved_pass_over(saved, n, err)) return false;
    memcpy(bytes, from, n);
    return true;
}

double support_nmse(const float *got, const float *want, size_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        if (want[i] <= -FLT_MAX && got[i] == want[i]) continue; /* of an id that is forbidden */
        double d = (double)got[i] - (double)want[i];
        error += d * d;
        power += (double)want[i] * (double)want[i];
    }
    return error / power;
}

const char *support_arch(size_t i)
{
    const struct model_arch *a;
    const char *name = model_arch_name(i, &a);
    return name && !a->source && !a->diffusion && !a->encoder ? name
                                                              : NULL; /* these are the last ones */
}

static bool same_kind(const struct model_arch *a, const struct model_arch *b)
{
    const struct model_plan *p = &a->plan, *q = &b->plan;
    return p->mixer == q->mixer && p->recurrent == q->recurrent && p->mixer_2 == q->mixer_2 &&
           p->ffn == q->ffn && p->per_layer == q->per_layer && p->altup == q->altup &&
           p->loops == q->loops && p->stacks == q->stacks && p->ngram == q->ngram &&
           p->switched == q->switched &&
           (a->attn.indexed >= MODEL_INDEXED_MEANS ? a->attn.indexed : 0) ==
               (b->attn.indexed >= MODEL_INDEXED_MEANS ? b->attn.indexed : 0) &&
           a->attn.window.rule == b->attn.window.rule &&
           a->attn.window.chunked == b->attn.window.chunked && a->attn.sharing == b->attn.sharing;
}

bool support_arch_is_first(size_t i)
{
    const struct model_arch *a, *b;
    model_arch_name(i, &a);
    for (size_t j = 0; j < i; j++) {
        model_arch_name(j, &b);
        if (same_kind(a, b)) return false;
    }
    return true;
}
