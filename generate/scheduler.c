/* generate/scheduler.c: many requests in one session. See generate/scheduler.h. */
#include "generate/scheduler.h"
#include "base/interrupt.h"
#include "generate/constraint_driver.h"
#include "generate/lone.h"
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_STEP = 512,
    LEAST_SHARED = 8,  /* minimum length of a shared prefix for which a job waits */
    PASSES_A_SLOT = 4, /* per slot: number of later jobs that may start before a waiting one */
};

/* The ids of a sequence of the session. */
struct sequence {
    int32_t *id; /* [n_ctx] */
    uint64_t last_used;
};

struct scheduler_slot {
    struct generate_request *request;       /* NULL: not created yet */
    const struct generate_options *options; /* those of the request */
    struct generate_job *job;               /* NULL: the slot is free */
    uint64_t since;                         /* order of arrival: a smaller number is earlier */
    size_t mark; /* length of a prefix of the prompt that others share and that is copied once it is
                  * evaluated; 0: none */
    bool failed;
    struct base_error error; /* the job's error, if it failed */
};

struct generate_scheduler {
    struct generate_model model;
    struct constrain_token_trie *trie; /* NULL until a job has a constraint */
    struct generate_store store;
    uint32_t n_slots, n_seq, n_ctx, n_step;
    bool encodes; /* all ids of a prompt but the last are a text for the model's encoder */
    struct sequence *sequence;   /* [n_seq] */
    struct scheduler_slot *slot; /* [n_slots] */
    uint32_t *order;             /* [n_slots]: slots with a job, the oldest first */
    uint32_t *owner;             /* [n_slots]: the slot of each row of logits */
    bool *tried;                 /* [n_seq] */
    struct model_token *token;   /* [n_step + n_slots + GENERATE_DRAFT_MAX] */
    struct generate_draft *draft;
    uint64_t drafted; /* `since` of the job whose text `draft` has */
    struct generate_job *first, **end;
    size_t n_waiting, n_running;
    uint64_t clock;
};

/* ---- Creation ---- */

static bool make_parts(struct generate_scheduler *s, struct base_error *err)
{
    s->sequence = calloc(s->n_seq, sizeof *s->sequence);
    s->slot = calloc(s->n_slots, sizeof *s->slot);
    s->order = calloc(s->n_slots, sizeof *s->order);
    s->owner = calloc(s->n_slots, sizeof *s->owner);
    s->tried = calloc(s->n_seq, sizeof *s->tried);
    s->token = calloc((size_t)s->n_step + s->n_slots + GENERATE_DRAFT_MAX, sizeof *s->token);
    bool ok = s->sequence && s->slot && s->order && s->owner && s->tried && s->token;
    for (uint32_t i = 0; ok && i < s->n_seq; i++)
        ok = (s->sequence[i].id = calloc(s->n_ctx, sizeof *s->sequence[i].id)) != NULL;
    return ok || base_fail(err, BASE_NO_MEMORY, "not enough memory for %u sequences", s->n_seq);
}

struct generate_scheduler *generate_scheduler_new(const struct generate_model *model,
                                                  const struct generate_scheduler_options *options,
                                                  struct base_error *err)
{
    struct generate_scheduler *s = calloc(1, sizeof *s);
    if (!s) return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory for a scheduler"));
    s->model = *model;
    s->n_seq = model_session_n_seq(model->session);
    s->n_ctx = model_session_n_ctx(model->session);
    s->n_slots = options->n_slots ? options->n_slots : s->n_seq;
    s->n_step = options->n_step ? options->n_step : DEFAULT_STEP;
    s->encodes = model_facts(model->model)->start_id >= 0;
    if (s->encodes && s->n_step < s->n_ctx) s->n_step = s->n_ctx; /* a prompt is one piece */
    s->store = options->store;
    s->draft = options->draft;
    s->end = &s->first;
    if (s->n_slots > s->n_seq)
        base_fail(err, BASE_USAGE, "%u slots of a session with %u sequences", s->n_slots, s->n_seq);
    else if (make_parts(s, err))
        return s;
    generate_scheduler_free(s);
    return NULL;
}

void generate_scheduler_free(struct generate_scheduler *s)
{
    if (!s) return;
    for (uint32_t i = 0; s->slot && i < s->n_slots; i++) generate_request_free(s->slot[i].request);
    for (uint32_t i = 0; s->sequence && i < s->n_seq; i++) free(s->sequence[i].id);
    free(s->sequence);
    free(s->slot);
    free(s->order);
    free(s->owner);
    free(s->tried);
    free(s->token);
    constrain_token_trie_free(s->trie);
    free(s);
}

void generate_scheduler_add(struct generate_scheduler *s, struct generate_job *job)
{
    job->next = NULL;
    job->n_passed = 0;
    job->cancelled = false;
    *s->end = job;
    s->end = &job->next;
    s->n_waiting++;
}

void generate_scheduler_cancel(struct generate_job *job)
{
    job->cancelled = true;
}

void generate_scheduler_release(struct generate_scheduler *s,
                                const struct generate_options *options)
{
    for (uint32_t i = 0; i < s->n_slots; i++) {
        struct scheduler_slot *slot = &s->slot[i];
        if (slot->options != options || slot->job) continue;
        generate_request_free(slot->request);
        slot->request = NULL;
        slot->options = NULL;
    }
}

size_t generate_scheduler_waiting(const struct generate_scheduler *s)
{
    return s->n_waiting;
}

size_t generate_scheduler_running(const struct generate_scheduler *s)
{
    return s->n_running;
}

/* ---- The queue ---- */

static struct generate_job *unlink_job(struct generate_scheduler *s, struct generate_job **at)
{
    struct generate_job *job = *at;
    *at = job->next;
    if (s->end == &job->next) s->end = at;
    s->n_waiting--;
    return job;
}

/* Ends a job without a slot. */
static bool end_waiting(struct generate_job *job, struct base_error *err)
{
    const struct generate_outcome outcome = {.ending = GENERATE_END_INTERRUPTED,
                                             .n_prompt = job->prompt.n,
                                             .complete = !job->options->constraint};
    return job->end(job->user, &outcome, NULL, err);
}

static bool drop_cancelled(struct generate_scheduler *s, struct base_error *err)
{
    for (struct generate_job **at = &s->first; *at;) {
        if (!(*at)->cancelled)
            at = &(*at)->next;
        else if (!end_waiting(unlink_job(s, at), err))
            return false;
    }
    for (uint32_t i = 0; i < s->n_slots; i++)
        if (s->slot[i].job && s->slot[i].job->cancelled)
            generate_request_interrupt(s->slot[i].request);
    return true;
}

/* ---- Shared prefixes ---- */

static size_t length_of(const struct generate_scheduler *s, uint32_t seq)
{
    return model_seq_length(s->model.session, seq);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    const size_t most = n_a < n_b ? n_a : n_b;
    size_t n = 0;
    while (n < most && a[n] == b[n]) n++;
    return n;
}

static struct model_adaptation adaptation_of(const struct generate_scheduler *s,
                                             const struct generate_prompt *p)
{
    struct model_adaptation a;
    model_adaptation_make(s->model.model, p->adapters, p->ids, p->n, &a);
    return a;
}

/* Returns the length of the prompt's prefix that a sequence has, without the last id, which is
 * always evaluated. A text for an encoder is shared as a whole. */
static size_t held_of(const struct generate_scheduler *s, uint32_t seq,
                      const struct generate_prompt *p)
{
    if (p->n == 0) return 0;
    const struct model_adaptation a = adaptation_of(s, p);
    const size_t n =
        common(s->sequence[seq].id, model_seq_adapted(s->model.session, seq, &a), p->ids, p->n - 1);
    return s->encodes && n < p->n - 1 ? 0 : n;
}

static size_t shared_by(const struct generate_scheduler *s, const struct generate_prompt *a,
                        const struct generate_prompt *b)
{
    const size_t n = a->n && b->n ? common(a->ids, a->n - 1, b->ids, b->n - 1) : 0;
    if (s->encodes && (n < a->n - 1 || n < b->n - 1)) return 0;
    if (n == 0 || model_adapter_count(s->model.model) == 0) return n;
    const struct model_adaptation of_a = adaptation_of(s, a), of_b = adaptation_of(s, b);
    return min_size(n, model_adaptation_common(s->model.model, &of_a, &of_b));
}

/* Returns the sequence, among those not tried, with the longest prefix of the prompt. */
static uint32_t best_source(const struct generate_scheduler *s, const struct generate_prompt *p,
                            size_t *n)
{
    uint32_t best = 0;
    *n = 0;
    for (uint32_t i = 0; i < s->n_seq; i++) {
        const size_t held = s->tried[i] ? 0 : held_of(s, i, p);
        if (held <= *n) continue;
        *n = held;
        best = i;
    }
    return best;
}

/* Returns whether a job should wait: the prompt of a running job, once evaluated, has a longer
 * prefix of this job's prompt than any sequence now. */
static bool waits(struct generate_scheduler *s, const struct generate_job *job)
{
    size_t now;
    if (job->n_passed >= PASSES_A_SLOT * s->n_slots) return false;
    memset(s->tried, 0, s->n_seq * sizeof *s->tried);
    best_source(s, &job->prompt, &now);
    for (uint32_t i = 0; i < s->n_slots; i++) {
        const struct generate_job *other = s->slot[i].job;
        if (other && shared_by(s, &other->prompt, &job->prompt) >= now + LEAST_SHARED) return true;
    }
    return false;
}

/* Returns the length of the prompt's prefix that saves the waiting jobs the most tokens, if it is
 * above `held`; otherwise 0. */
static size_t worth_keeping(const struct generate_scheduler *s, const struct generate_prompt *p,
                            size_t held)
{
    size_t best = 0;
    uint64_t most = 0;
    for (const struct generate_job *a = s->first; a; a = a->next) {
        const size_t n = shared_by(s, p, &a->prompt);
        uint64_t saved = 0;
        if (n < held + LEAST_SHARED || n == best) continue;
        for (const struct generate_job *b = s->first; b; b = b->next)
            if (shared_by(s, p, &b->prompt) >= n) saved += n - held;
        if (saved <= most) continue;
        most = saved;
        best = n;
    }
    return best;
}

/* Copies the first n tokens of `from` to `to`, or as many as the session can. Returns their
 * number. */
static size_t fork_sequence(struct generate_scheduler *s, uint32_t from, uint32_t to, size_t n)
{
    n = model_seq_fork(s->model.session, from, to, (uint32_t)n);
    if (from != to) memcpy(s->sequence[to].id, s->sequence[from].id, n * sizeof(int32_t));
    s->sequence[from].last_used = s->sequence[to].last_used = ++s->clock;
    return n;
}

/* Copies the longest prefix of the prompt that any sequence has to sequence `to`, which gets the
 * prompt's adapters. Returns its length. */
static size_t fork_longest(struct generate_scheduler *s, uint32_t to,
                           const struct generate_prompt *p)
{
    model_seq_adapt_to(s->model.session, to, p->adapters, p->ids, p->n);
    memset(s->tried, 0, s->n_seq * sizeof *s->tried);
    for (;;) {
        size_t n;
        const uint32_t from = best_source(s, p, &n);
        if (n == 0) {
            model_seq_truncate(s->model.session, to, 0);
            return 0;
        }
        n = fork_sequence(s, from, to, n);
        if (n > 0) return n;
        s->tried[from] = s->tried[to] = true; /* the sliding window is past that prefix */
    }
}

/* Loads a longer prefix of the prompt into sequence `to` if the store has one. */
static void load_stored(struct generate_scheduler *s, uint32_t to, struct generate_prompt *p)
{
    const size_t n = s->store.load(s->store.user, s->model.session, to, p->ids, p->n, p->n_held);
    if (n > 0) memcpy(s->sequence[to].id, p->ids, n * sizeof *p->ids);
    p->n_held = length_of(s, to);
}

/* Called when a slot has exactly the prefix that others share: copies it to a sequence of its
 * own. */
static void copy_shared(struct generate_scheduler *s, uint32_t i)
{
    uint32_t to = s->n_slots;
    for (uint32_t k = to + 1; k < s->n_seq; k++)
        if (s->sequence[k].last_used < s->sequence[to].last_used) to = k;
    const struct generate_prompt *p = &s->slot[i].job->prompt;
    model_seq_adapt_to(s->model.session, to, p->adapters, p->ids, p->n);
    const size_t n = fork_sequence(s, i, to, s->slot[i].mark);
    if (s->store.save && n == s->slot[i].mark)
        s->store.save(s->store.user, s->model.session, to, s->sequence[to].id, n, p->n_held);
    s->slot[i].mark = 0;
}

/* ---- Slots ---- */

/* Returns the free slot for a job: the one with a prefix of its prompt, otherwise the least
 * recently used one. */
static uint32_t free_slot(struct generate_scheduler *s, const struct generate_prompt *p)
{
    size_t held;
    memset(s->tried, 0, s->n_seq * sizeof *s->tried);
    const uint32_t source = best_source(s, p, &held);
    uint32_t best = s->n_slots;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        if (s->slot[i].job) continue;
        if (held && source == i) return i;
        if (best == s->n_slots || s->sequence[i].last_used < s->sequence[best].last_used) best = i;
    }
    return best;
}

/* Builds one token trie for all requests with a constraint, if there is none yet. */
static bool has_trie(struct generate_scheduler *s, struct base_error *err)
{
    if (s->model.trie) return true;
    s->trie = generate_trie_new(s->model.tokenizer, model_facts(s->model.model)->n_vocab, err);
    s->model.trie = s->trie;
    return s->trie != NULL;
}

static bool begin_request(struct generate_scheduler *s, uint32_t i, struct generate_job *job,
                          struct base_error *err)
{
    struct scheduler_slot *slot = &s->slot[i];
    if (slot->options != job->options) {
        generate_request_free(slot->request);
        slot->request = NULL;
        slot->options = job->options;
        if (!job->options->constraint || has_trie(s, err))
            slot->request = generate_request_new(job->options, &s->model, i, err);
    }
    if (!slot->request) {
        slot->options = NULL;
        return false;
    }
    job->prompt.n_held = fork_longest(s, i, &job->prompt);
    if (s->store.load) load_stored(s, i, &job->prompt);
    return generate_request_begin(slot->request, &job->prompt, err);
}

/* Assigns a slot to the job. If the job cannot begin, it ends with its error after the step. */
static void admit(struct generate_scheduler *s, struct generate_job *job)
{
    const uint32_t i = free_slot(s, &job->prompt);
    struct scheduler_slot *slot = &s->slot[i];
    slot->job = job;
    slot->since = ++s->clock;
    slot->mark = 0;
    slot->error = BASE_ERROR_INIT;
    s->sequence[i].last_used = s->clock;
    s->n_running++;
    slot->failed = !begin_request(s, i, job, &slot->error);
    if (!slot->failed && s->n_seq > s->n_slots && !s->encodes)
        slot->mark = worth_keeping(s, &job->prompt, job->prompt.n_held);
}

static void admit_waiting(struct generate_scheduler *s)
{
    for (struct generate_job **at = &s->first; *at && s->n_running < s->n_slots;) {
        if (waits(s, *at)) {
            at = &(*at)->next;
            continue;
        }
        for (struct generate_job *before = s->first; before != *at; before = before->next)
            before->n_passed++;
        admit(s, unlink_job(s, at));
    }
}

/* Sorts the slots with a job, the oldest first. Returns their number. */
static uint32_t sort_slots(struct generate_scheduler *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        if (!s->slot[i].job) continue;
        uint32_t k = n++;
        for (; k > 0 && s->slot[s->order[k - 1]].since > s->slot[i].since; k--)
            s->order[k] = s->order[k - 1];
        s->order[k] = i;
    }
    return n;
}

/* ---- A step ---- */

/* Returns the ids that the slot's request needs evaluated, *n > 0; or NULL. */
static const int32_t *next_ids(const struct scheduler_slot *slot, size_t *n)
{
    *n = 0;
    return slot->failed ? NULL : generate_request_next_ids(slot->request, n);
}

/* Adds `n` of the slot's `total` next ids to the batch. Returns the size of the batch. */
static size_t add_tokens(struct generate_scheduler *s, uint32_t i, const int32_t *ids, size_t n,
                         size_t total, size_t n_tokens, uint32_t *n_rows)
{
    int32_t *held = s->sequence[i].id + length_of(s, i);
    for (size_t k = 0; k < n; k++) {
        s->token[n_tokens++] = (struct model_token){ids[k], i, k + 1 == total};
        held[k] = ids[k];
    }
    if (n == total) s->owner[(*n_rows)++] = i;
    return n_tokens;
}

/* Collects the tokens of a step: one of each generating text, then parts of prompts. Returns their
 * number. */
static size_t gather(struct generate_scheduler *s)
{
    const uint32_t n_slots = sort_slots(s);
    uint32_t n_rows = 0;
    size_t n_tokens = 0, n;
    for (uint32_t k = 0; k < n_slots; k++) {
        const int32_t *ids = next_ids(&s->slot[s->order[k]], &n);
        if (n == 1) n_tokens = add_tokens(s, s->order[k], ids, 1, 1, n_tokens, &n_rows);
    }
    for (uint32_t k = 0, n_read = 0; k < n_slots; k++) {
        const uint32_t i = s->order[k];
        const size_t mark = s->slot[i].mark;
        const size_t room = s->n_step > n_tokens ? s->n_step - n_tokens : n_read == 0;
        const int32_t *ids = next_ids(&s->slot[i], &n);
        if (n < 2 || room == 0 || (s->encodes && n > room && n_read > 0)) continue;
        size_t piece = s->encodes ? n : min_size(n, room);
        n_read++;
        if (mark > length_of(s, i)) piece = min_size(piece, mark - length_of(s, i));
        n_tokens = add_tokens(s, i, ids, piece, n, n_tokens, &n_rows);
    }
    return n_tokens;
}

static void take_row(struct scheduler_slot *slot, const float *logits)
{
    struct generate_piece piece;
    struct generate_job *job = slot->job;
    do {
        slot->failed = !generate_request_take(slot->request, logits, &piece, &slot->error) ||
                       (piece.id >= 0 && !job->sink(job->user, &piece, &slot->error));
        logits = NULL;
    } while (!slot->failed && !job->cancelled && generate_request_is_forced(slot->request));
}

static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct generate_scheduler *s = user;
    const size_t n_vocab = model_facts(s->model.model)->n_vocab;
    for (uint64_t i = 0; i < rows; i++) {
        if (!base_goes_on(err)) return false;
        take_row(&s->slot[s->owner[first + i]], logits + i * n_vocab);
    }
    return true;
}

static bool step_together(struct generate_scheduler *s, struct base_error *err)
{
    const size_t n_tokens = gather(s);
    return n_tokens == 0 ||
           model_eval_batch(s->model.session, s->token, n_tokens, take_rows, s, err);
}

/* Returns the slot of the only job, if it is generating; otherwise NULL. */
static struct scheduler_slot *lone_slot(const struct generate_scheduler *s)
{
    size_t n;
    if (!s->draft || s->n_running != 1) return NULL;
    struct scheduler_slot *slot = s->slot;
    while (!slot->job) slot++;
    next_ids(slot, &n);
    return n > 0 && n <= s->n_step && generate_request_has_read(slot->request) ? slot : NULL;
}

/* Passes a piece to the job's sink. A job that is cancelled during its sink gets no further
 * piece. */
static bool pass_piece(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct scheduler_slot *slot = user;
    if (!slot->job->sink(slot->job->user, piece, err)) return false;
    if (slot->job->cancelled && !generate_request_is_over(slot->request))
        generate_request_interrupt(slot->request);
    return true;
}

/* Runs a step with draft tokens. Returns false if the evaluation failed. */
static bool step_alone(struct generate_scheduler *s, struct scheduler_slot *slot,
                       struct base_error *err)
{
    const uint32_t seq = (uint32_t)(slot - s->slot);
    const size_t before = length_of(s, seq);
    struct base_error own = BASE_ERROR_INIT;
    size_t n, held;
    const int32_t *ids = next_ids(slot, &n);
    struct generate_lone l = {.request = slot->request,
                              .draft = s->draft,
                              .sink = pass_piece,
                              .user = slot,
                              .tokens = s->token};
    if (s->drafted != slot->since) generate_draft_begin(s->draft);
    s->drafted = slot->since;
    if (!generate_lone_step(&l, ids, n, &own) && !l.failed) {
        *err = own;
        return false;
    }
    slot->failed = l.failed;
    slot->error = own;
    ids = generate_request_held(slot->request, &held);
    for (size_t i = before; i < held; i++) s->sequence[seq].id[i] = ids[i];
    return true;
}

/* Ends a job. Frees its slot first, because its `end` may add jobs. */
static bool end_job(struct generate_scheduler *s, struct scheduler_slot *slot,
                    struct base_error *err)
{
    struct generate_job *job = slot->job;
    struct generate_outcome outcome;
    struct generate_piece piece;
    if (!slot->failed)
        slot->failed = !generate_request_end(slot->request, &piece, &outcome, &slot->error) ||
                       (piece.size > 0 && !job->sink(job->user, &piece, &slot->error));
    slot->job = NULL;
    s->n_running--;
    return job->end(job->user, slot->failed ? NULL : &outcome, slot->failed ? &slot->error : NULL,
                    err);
}

static bool end_jobs(struct generate_scheduler *s, struct base_error *err)
{
    size_t n;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        struct scheduler_slot *slot = &s->slot[i];
        if (!slot->job) continue;
        next_ids(slot, &n);
        if (n == 0 && !end_job(s, slot, err)) return false;
    }
    return true;
}

bool generate_scheduler_step(struct generate_scheduler *s, struct base_error *err)
{
    if (!base_goes_on(err) || !drop_cancelled(s, err)) return false;
    admit_waiting(s);
    struct scheduler_slot *lone = lone_slot(s);
    if (!(lone ? step_alone(s, lone, err) : step_together(s, err))) return false;
    for (uint32_t i = 0; i < s->n_slots; i++)
        if (s->slot[i].job && s->slot[i].mark && s->slot[i].mark == length_of(s, i))
            copy_shared(s, i);
    return end_jobs(s, err);
}
