/* cli/cache/prefix_cache.c: stored prefixes of texts. See cli/cache/prefix_cache.h. */
#include "cli/cache/prefix_cache.h"
#include "base/checksum.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "cli/cache/cache_entry.h"
#include "cli/cache/cache_folder.h"
#include "cli/cache/cache_key.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    LEAST = 32,     /* minimum number of tokens to store or load */
    WORTH = 8,      /* a text is stored if at least 1 / WORTH of its tokens are not stored yet */
    OPEN_MAX = 128, /* maximum number of open entries of a model, the latest ones */
    WRITES_MAX = 4,
    KEY_DIGITS = 16 + 1, /* characters of the key in a file's name */
    MEBIBYTE = 1 << 20
};

/* An open entry with this key. */
struct open_entry {
    struct cli_cache_file *file;
    int fd;                     /* -1: the entry cannot be used */
    struct cli_cache_head head; /* n_ids 0: not read yet */
    size_t common;              /* number of ids in common with the text */
};

struct cli_prefix_cache {
    const struct cli_values *values;
    struct cli_cache_folder folder;
    struct base_buffer file; /* the result of cli_prefix_file */
    uint64_t limit;          /* in bytes */
    char key[BASE_SHA256_HEX];
    const struct base_buffer *name; /* name of the model; NULL: no key */
    struct open_entry entry[OPEN_MAX];
    size_t n_entries;
    struct base_output out[WRITES_MAX];
    unsigned n_out, n_written;
};

/* ---- Opening ---- */

static void note_unused(const struct base_error *err)
{
    char text[1024];
    cli_note("the prefix cache is not used: %s", base_error_format(err, text, sizeof text));
}

/* Opens the files that will be written; they get their names later. */
static bool open_outputs(struct cli_prefix_cache *c, unsigned n, struct base_error *err)
{
    for (; c->n_out < n; c->n_out++) {
        struct base_output *o = &c->out[c->n_out];
        base_output_init(o);
        if (!cli_signals_guard(o)) return true; /* fewer files are enough */
        if (!base_output_create(o, c->file.data, 0600, err) || !cli_cache_mark(o->fd)) {
            base_fail(err, BASE_FAILED, "cannot write: %s", strerror(errno));
            base_output_close(o, false, NULL);
            cli_signals_release(o);
            return false;
        }
        (void)flock(o->fd, LOCK_EX | LOCK_NB);
    }
    return true;
}

bool cli_prefix_check(const struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER parent = BASE_BUFFER_INIT;
    const char *path = values->cache ? values->cache : "";
    size_t n = strlen(path);
    if (strcmp(path, "auto") == 0) return true;
    while (n > 0 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    if (n < 2) return true; /* the working folder, or the root */
    base_buffer_add(&parent, path, n - 1);
    bool ok = cli_buffer_check(&parent, err);
    if (ok && access(parent.data, F_OK) != 0)
        ok = base_fail_at(err, BASE_USAGE, "--cache", -1, "%s: %s", parent.data, strerror(errno));
    return ok;
}

struct cli_prefix_cache *cli_prefix_open(const struct cli_values *values, unsigned n_writes)
{
    struct base_error err = BASE_ERROR_INIT;
    bool missing;
    if (!values->cache || !*values->cache) return NULL;
    struct cli_prefix_cache *c = calloc(1, sizeof *c);
    if (!c) {
        base_fail(&err, BASE_NO_MEMORY, "not enough memory");
        note_unused(&err);
        return NULL;
    }
    c->values = values;
    c->limit = (uint64_t)values->cache_size * MEBIBYTE;
    bool ok = cli_cache_folder_open(&c->folder, values->cache, true, &missing, &err);
    if (ok) {
        base_buffer_add_format(&c->file, "%s/prefix", c->folder.path.data);
        ok = cli_buffer_check(&c->file, &err);
    }
    if (ok) {
        cli_cache_folder_make_room(&c->folder, 0, c->limit);
        ok = open_outputs(c, n_writes < WRITES_MAX ? n_writes : WRITES_MAX, &err);
        /* Stored entries can still be read. */
        if (!ok) cli_note("the prefix cache is not written: %s", err.text);
        return c;
    }
    note_unused(&err);
    cli_prefix_close(c);
    return NULL;
}

static void close_outputs(struct cli_prefix_cache *c)
{
    for (; c->n_written < c->n_out; c->n_written++) {
        base_output_close(&c->out[c->n_written], false, NULL);
        cli_signals_release(&c->out[c->n_written]);
    }
}

void cli_prefix_close(struct cli_prefix_cache *c)
{
    if (!c) return;
    close_outputs(c);
    for (size_t i = 0; i < c->n_entries; i++) {
        if (c->entry[i].fd >= 0) close(c->entry[i].fd);
        cli_cache_head_free(&c->entry[i].head);
    }
    base_buffer_free(&c->file);
    cli_cache_folder_close(&c->folder);
    free(c);
}

const char *cli_prefix_file(const struct cli_prefix_cache *c)
{
    return c ? c->file.data : NULL;
}

unsigned cli_prefix_allows(const struct cli_prefix_cache *c)
{
    return c ? CLI_SANDBOX_RENAME : 0;
}

void cli_prefix_choose(struct cli_prefix_cache *c, const struct cli_model *model)
{
    const char *why;
    if (!c) return;
    if (!cli_cache_key(c->values, model, c->key, &why)) {
        cli_note("the prefix cache is not used: %s", why);
        return;
    }
    c->name = &model->name;
    for (size_t i = 0; i < c->folder.count && c->n_entries < OPEN_MAX; i++) {
        struct cli_cache_file *file = &c->folder.file[i];
        if (memcmp(file->name, c->key, KEY_DIGITS - 1) != 0) continue;
        const int fd = cli_cache_file_open(&c->folder, file);
        if (fd >= 0) c->entry[c->n_entries++] = (struct open_entry){.file = file, .fd = fd};
    }
}

/* ---- Loading ---- */

/* Excludes an entry that is damaged or has another full key. */
static void give_up(const struct cli_prefix_cache *c, struct open_entry *e,
                    const struct base_error *err)
{
    if (c->values->verbose && err->code)
        cli_note("the prefix cache: an entry is not used: %s", err->text);
    close(e->fd);
    e->fd = -1;
    cli_cache_head_free(&e->head);
}

static void name_file(const struct cli_prefix_cache *c, const int32_t *ids, size_t n,
                      char name[CLI_CACHE_FILE_NAME])
{
    snprintf(name, CLI_CACHE_FILE_NAME, "%.16s-%016llx-%016llx.prefix", c->key,
             (unsigned long long)base_checksum(ids, LEAST * sizeof *ids, 1),
             (unsigned long long)base_checksum(ids, n * sizeof *ids, 2));
}

/* Returns the length of the common prefix of ids[n] and the entry, whose ids are read by the first
 * call. */
static size_t common_of(struct cli_prefix_cache *c, struct open_entry *e, const int32_t *ids,
                        size_t n)
{
    struct base_error err = BASE_ERROR_INIT;
    if (e->head.n_ids == 0 && (!cli_cache_head_read(e->fd, &e->head, &err) ||
                               memcmp(e->head.key, c->key, sizeof c->key) != 0)) {
        give_up(c, e, &err);
        return 0;
    }
    const size_t most = e->head.n_ids < n ? (size_t)e->head.n_ids : n;
    size_t common = 0;
    while (common < most && e->head.id[common] == ids[common]) common++;
    return common;
}

static int by_common(const void *a, const void *b)
{
    const struct open_entry *x = a, *y = b;
    if (x->common != y->common) return x->common < y->common ? 1 : -1;
    return (x->file > y->file) - (x->file < y->file);
}

/* Finds the entries with a prefix that is long enough in common with the text, sorted by its
 * length. */
static void find_common(struct cli_prefix_cache *c, const int32_t *ids, size_t n)
{
    char name[CLI_CACHE_FILE_NAME];
    name_file(c, ids, n, name);
    for (size_t i = 0; i < c->n_entries; i++) {
        struct open_entry *e = &c->entry[i];
        const bool same = e->fd >= 0 && memcmp(e->file->name, name, 2 * KEY_DIGITS) == 0;
        e->common = same ? common_of(c, e, ids, n) : 0;
    }
    qsort(c->entry, c->n_entries, sizeof *c->entry, by_common);
}

size_t cli_prefix_load(struct cli_prefix_cache *c, struct model_session *session, uint32_t seq,
                       const int32_t *ids, size_t n, size_t n_held)
{
    if (!c || !c->name || n <= LEAST) return 0;
    const uint32_t usual = model_seq_usual(session, seq);
    const bool encodes = model_facts(model_session_model(session))->start_id >= 0;
    const size_t whole = encodes ? n - 1 : 0; /* of the text for an encoder no part is loaded */
    if (n - 1 > usual) n = (size_t)usual + 1;
    if (n <= LEAST) return 0;
    const uint32_t length = model_seq_length(session, seq);
    size_t best = 0;
    find_common(c, ids, n - 1);
    /* Other texts may diverge from the stored one at the same place as this text, and the same text
     * may occur again: with these marks the stored sequence can be cut back to both places. */
    const uint32_t common = c->n_entries ? (uint32_t)c->entry[0].common : 0;
    model_seq_mark(session, seq, (const uint32_t[MODEL_MARKS]){common, (uint32_t)n - 1});
    for (size_t i = 0; i < c->n_entries; i++) {
        struct open_entry *e = &c->entry[i];
        struct base_error err = BASE_ERROR_INIT;
        const size_t held = best > n_held ? best : n_held;
        if (e->common < held + LEAST || e->common < whole) break;
        const uint32_t got = cli_cache_state_load(
            e->fd, &e->head, session, seq, (uint32_t)held + LEAST, (uint32_t)e->common, &err);
        if (got > 0) {
            best = got;
            /* Records the use of the entry: its time changes, its size does not. */
            (void)!ftruncate(e->fd, (off_t)e->head.size);
        } else if (err.code == BASE_INTERRUPTED) {
            return 0;
        } else if (err.code) {
            give_up(c, e, &err);
            if (model_seq_length(session, seq) != length) best = n_held = 0;
        }
    }
    return best;
}

/* ---- Storing ---- */

static bool is_known(const struct cli_prefix_cache *c, const char *name)
{
    for (size_t i = 0; i < c->n_entries; i++)
        if (c->entry[i].fd >= 0 && strcmp(c->entry[i].file->name, name) == 0) return true;
    return false;
}

static bool store(struct cli_prefix_cache *c, struct model_session *session, uint32_t seq,
                  const int32_t *ids, size_t n, const char *name, struct base_error *err)
{
    uint64_t state, size;
    struct base_output *o = &c->out[c->n_written];
    const struct cli_cache_text text = {c->key, c->name->data, c->name->size, ids, n};
    if (!cli_cache_state_size(session, seq, &state, err)) return false;
    if (!cli_cache_size(text.n_name, n, state, &size) || size > c->limit) {
        if (c->values->verbose)
            cli_note("the prefix cache: %zu tokens are more than --cache-size allows", n);
        return false;
    }
    cli_cache_folder_make_room(&c->folder, size, c->limit);
    c->n_written++;
    bool ok = cli_cache_write(o->fd, &text, session, seq, state, err);
    snprintf(o->path, sizeof o->path, "%s/%s", c->folder.path.data, name);
    ok = base_output_close(o, ok, err);
    cli_signals_release(o);
    if (ok) c->folder.bytes += size;
    if (ok && c->values->verbose)
        cli_note("the prefix cache: stored %zu tokens, %.1f MB", n, (double)size / 1e6);
    return ok;
}

bool cli_prefix_save(struct cli_prefix_cache *c, struct model_session *session, uint32_t seq,
                     const int32_t *ids, size_t n, size_t n_stored)
{
    struct base_error err = BASE_ERROR_INIT;
    char name[CLI_CACHE_FILE_NAME];
    if (!c || !c->name || n < LEAST || c->n_written == c->n_out || base_interrupted()) return false;
    if ((n - n_stored) * WORTH < n || model_seq_usual(session, seq) < n) return false;
    name_file(c, ids, n, name);
    if (is_known(c, name)) return false;
    const bool ok = store(c, session, seq, ids, n, name, &err);
    if (err.code && err.code != BASE_INTERRUPTED) {
        cli_note("the prefix cache is not written: %s", err.text);
        close_outputs(c); /* so that there is only one note */
    }
    return ok;
}

/* ---- Store of a scheduler ---- */

static size_t load_for(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                       size_t n, size_t n_held)
{
    return cli_prefix_load(user, session, seq, ids, n, n_held);
}

static void save_for(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                     size_t n, size_t n_held)
{
    cli_prefix_save(user, session, seq, ids, n, n_held);
}

struct generate_store cli_prefix_store(struct cli_prefix_cache *c)
{
    if (!c) return (struct generate_store){0};
    return (struct generate_store){.load = load_for, .save = save_for, .user = c};
}
