/* cli/cmd/cmd_edit.c: `infer edit`: changes metadata of a model, and names of tensors.
 *
 * The new file is written beside the old one and replaces it when it is complete. A model is never
 * changed in place, even if its head keeps its size, because a crash would destroy it. The bytes of
 * tensors are copied unchanged, and shared if the file system supports it. Of a split model only
 * the first part, which has the metadata, is written. The edited model can be opened if the
 * original can. */
#include "cli/cmd/edit_value.h"
#include "cli/load.h"
#include "cli/model_copy.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "text/jinja/jinja.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPLATE_KEY "tokenizer.chat_template"

struct rename {
    struct gguf_str old, new;
    bool is_key; /* a metadata key; otherwise a tensor's name */
};

struct edit {
    const struct cli_values *values;
    struct gguf_file *in;
    struct cli_edit_value set[CLI_LIST_MAX];
    size_t n_set;
    struct rename rename[CLI_LIST_MAX];
    size_t n_rename;
    struct base_buffer template;
    bool in_place, first_part; /* in_place: replaces the file itself; first_part: writes only it */
    int lock;                  /* in_place: the file, locked; -1: not open */
};

static bool is_same(struct gguf_str a, struct gguf_str b)
{
    return gguf_str_compare(a, b) == 0;
}

static bool is_deleted(const struct edit *e, struct gguf_str key)
{
    const struct base_texts *list = &e->values->delete;
    for (size_t i = 0; i < list->count; i++)
        if (gguf_str_is(key, list->item[i])) return true;
    return false;
}

/* Returns the new name of a key or a tensor, or its old one. */
static struct gguf_str renamed(const struct edit *e, struct gguf_str name, bool is_key)
{
    for (size_t i = 0; i < e->n_rename; i++) {
        const struct rename *r = &e->rename[i];
        if (r->is_key == is_key && is_same(r->old, name)) return r->new;
    }
    return name;
}

/* ---- The edits ---- */

/* Fails for keys that describe the layout of the file, not the model. */
static bool check_key(struct gguf_str key, const char *option, struct base_error *err)
{
    if (!gguf_str_begins(key, "split.")) return true;
    return base_fail_at(err, BASE_USAGE, option, -1,
                        "%.*s is written by infer split and removed by infer merge", (int)key.size,
                        key.data);
}

static bool check_alignment(const struct gguf_kv *kv, struct base_error *err)
{
    uint32_t value;
    if (!gguf_str_is(kv->key, "general.alignment")) return true;
    memcpy(&value, kv->data, kv->kind == GGUF_U32 ? sizeof value : 0);
    if (kv->kind == GGUF_U32 && gguf_alignment_valid(value)) return true;
    return base_fail_at(err, BASE_USAGE, "--set", -1,
                        "general.alignment is a u32, a power of two from 8 to 1048576");
}

static bool read_sets(struct edit *e, struct base_error *err)
{
    const struct base_texts *list = &e->values->set;
    for (size_t i = 0; i < list->count; i++) {
        const struct gguf_str key = {list->item[i], cli_edit_key_size(list->item[i])};
        const struct gguf_kv *old = is_deleted(e, key) ? NULL : gguf_kv_find_str(e->in, key);
        struct cli_edit_value *value = &e->set[e->n_set++];
        if (!cli_edit_value_parse(value, list->item[i], old, err) ||
            !check_key(key, "--set", err) || !check_alignment(&value->kv, err))
            return false;
    }
    return true;
}

static bool read_template(struct edit *e, struct base_error *err)
{
    const char *path = e->values->request.chat.template;
    if (!path) return true;
    if (!cli_source_read(path, &e->template, err)) return false;
    if (e->template.size == 0)
        return base_fail(err, BASE_USAGE,
                         "%s: is empty; --delete " TEMPLATE_KEY " removes a template", path);
    struct jinja_template *t =
        jinja_template_parse(e->template.data ? e->template.data : "", e->template.size, err);
    if (!t) base_error_set_file(err, path);
    jinja_template_free(t);
    return t != NULL;
}

static bool check_deletes(const struct edit *e, struct base_error *err)
{
    const struct base_texts *list = &e->values->delete;
    for (size_t i = 0; i < list->count; i++) {
        const struct gguf_str key = {list->item[i], strlen(list->item[i])};
        if (!check_key(key, "--delete", err)) return false;
        if (!gguf_kv_find(e->in, list->item[i]))
            return base_fail_at(err, BASE_USAGE, "--delete", -1, "the file has no key '%s'",
                                list->item[i]);
    }
    return true;
}

static bool read_rename(struct edit *e, const char *text, struct base_error *err)
{
    const size_t n = cli_edit_key_size(text);
    struct rename *r = &e->rename[e->n_rename];
    if (n == 0 || text[n + 1] == '\0')
        return base_fail_at(err, BASE_USAGE, "--rename", -1, "'%s' is not OLD=NEW", text);
    *r = (struct rename){.old = {text, n}, .new = {text + n + 1, strlen(text + n + 1)}};
    r->is_key = gguf_kv_find_str(e->in, r->old) != NULL;
    const struct gguf_tensor *tensor = gguf_tensor_find_str(e->in, r->old);
    if (!r->is_key && !tensor)
        return base_fail_at(err, BASE_USAGE, "--rename", -1,
                            "the file has no key and no tensor '%.*s'", (int)n, text);
    if (!check_key(r->old, "--rename", err) || !check_key(r->new, "--rename", err)) return false;
    if (r->is_key && gguf_str_is(r->new, "general.alignment"))
        return base_fail_at(err, BASE_USAGE, "--rename", -1,
                            "general.alignment describes the layout of the file: use --set");
    if (r->is_key ? gguf_kv_find(e->in, r->new.data) && !is_deleted(e, r->new)
                  : gguf_tensor_find(e->in, r->new.data) != NULL)
        return base_fail_at(err, BASE_USAGE, "--rename", -1, "the file has a '%s' already",
                            r->new.data);
    if (!r->is_key && e->first_part && tensor->part > 0)
        return base_fail_at(err, BASE_USAGE, "--rename", -1,
                            "%.*s is in part %d of a split model: give -o, which makes one file",
                            (int)n, text, tensor->part + 1);
    e->n_rename++;
    return true;
}

/* Returns whether --set or --template gives the key a value. */
static bool is_set(const struct edit *e, struct gguf_str key)
{
    for (size_t i = 0; i < e->n_set; i++)
        if (is_same(e->set[i].kv.key, key)) return true;
    return e->values->request.chat.template && gguf_str_is(key, TEMPLATE_KEY);
}

static bool fail_collision(const char *option, struct gguf_str name, const char *what,
                           struct base_error *err)
{
    return base_fail_at(err, BASE_USAGE, option, -1, "'%.*s' %s", (int)name.size, name.data, what);
}

static bool check_rename(const struct edit *e, size_t i, struct base_error *err)
{
    static const char option[] = "--rename";
    const struct rename *r = &e->rename[i];
    for (size_t k = 0; k < i; k++) {
        const struct rename *other = &e->rename[k];
        if (other->is_key != r->is_key) continue;
        if (is_same(other->old, r->old))
            return fail_collision(option, r->old, "is renamed twice", err);
        if (is_same(other->new, r->new))
            return fail_collision(option, r->new, "would be the name of two", err);
    }
    if (!r->is_key) return true;
    if (is_deleted(e, r->old)) return fail_collision(option, r->old, "is deleted too", err);
    if (is_set(e, r->old)) return fail_collision(option, r->old, "is set too", err);
    return !is_set(e, r->new) || fail_collision(option, r->new, "is set too", err);
}

/* Fails if two edits concern one name, so that one of them would have no effect. A key may be
 * deleted and set, or deleted and the new name of another one. */
static bool check_collisions(const struct edit *e, struct base_error *err)
{
    const struct base_texts *deleted = &e->values->delete;
    for (size_t i = 0; i < deleted->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(deleted->item[i], deleted->item[k]) == 0)
                return base_fail_at(err, BASE_USAGE, "--delete", -1, "'%s' is deleted twice",
                                    deleted->item[i]);
    for (size_t i = 0; i < e->n_set; i++) {
        const struct gguf_str key = e->set[i].kv.key;
        bool twice = e->values->request.chat.template && gguf_str_is(key, TEMPLATE_KEY);
        for (size_t k = 0; k < i; k++) twice |= is_same(key, e->set[k].kv.key);
        if (twice) return fail_collision("--set", key, "is set twice", err);
    }
    for (size_t i = 0; i < e->n_rename; i++)
        if (!check_rename(e, i, err)) return false;
    return true;
}

static bool read_edits(struct edit *e, struct base_error *err)
{
    const struct cli_values *v = e->values;
    if (v->set.count + v->delete.count + v->rename.count == 0 && !v->request.chat.template)
        return base_fail(err, BASE_USAGE,
                         "nothing to change: give --set, --delete, --rename or --template");
    if (!check_deletes(e, err) || !read_sets(e, err) || !read_template(e, err)) return false;
    for (size_t i = 0; i < v->rename.count; i++)
        if (!read_rename(e, v->rename.item[i], err)) return false;
    return check_collisions(e, err);
}

/* ---- The input ---- */

/* Returns whether the path is still that of the file that was read. */
static bool is_there(const struct gguf_file *file, struct stat *st)
{
    const struct gguf_part_facts part = gguf_part_facts(file, 0);
    return stat(gguf_path(file), st) == 0 && (uint64_t)st->st_dev == part.device &&
           st->st_ino == part.inode;
}

/* Locks the file that will be replaced; waits while another process edits it. File systems without
 * locks are not locked. */
static bool lock(struct edit *e, struct base_error *err)
{
    e->lock = open(gguf_path(e->in), O_RDONLY | O_CLOEXEC);
    if (e->lock < 0 || flock(e->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    cli_note("%s: waits for another process that edits it", gguf_path(e->in));
    while (flock(e->lock, LOCK_EX) != 0 && errno == EINTR)
        if (!base_goes_on(err)) return false;
    return true;
}

static void close_input(struct edit *e)
{
    gguf_close(e->in);
    if (e->lock >= 0) close(e->lock);
    e->in = NULL;
    e->lock = -1;
}

/* Opens the model. One that is edited in place is locked; if it was replaced before that, the new
 * file is opened. */
static bool open_input(struct edit *e, const char *path, struct base_error *err)
{
    struct stat st;
    for (;;) {
        e->in = gguf_open(path, err);
        if (!e->in) base_error_set_file(err, path);
        const size_t n = strlen(err->text);
        if (!e->in && access(path, F_OK) != 0 && !strchr(path, '/'))
            snprintf(err->text + n, sizeof err->text - n,
                     "; edit needs a path: names of `infer models` are not looked up");
        if (!e->in || !e->in_place) return e->in != NULL;
        if (!lock(e, err)) return false;
        if (is_there(e->in, &st)) break;
        close_input(e);
    }
    if (st.st_nlink == 1) return true;
    return base_fail_file(
        err, BASE_USAGE, path,
        "has %llu names (hard links), and only this one would be changed: give -o",
        (unsigned long long)st.st_nlink);
}

/* ---- The file ---- */

/* Declares the edited model to a new writer; `part`: only this part (-1: everything as one
 * file). */
static struct gguf_writer *declare(const struct edit *e, int part, struct base_error *err)
{
    struct gguf_writer *w = gguf_writer_new(err);
    if (w) gguf_writer_copy_magic(w, e->in);
    for (uint64_t i = 0; w && i < gguf_kv_count(e->in); i++) {
        struct gguf_kv kv = *gguf_kv_at(e->in, i);
        if (is_deleted(e, kv.key)) continue;
        if (part < 0 && gguf_str_begins(kv.key, "split.")) continue;
        kv.key = renamed(e, kv.key, true);
        gguf_writer_copy_kv(w, &kv);
    }
    for (size_t i = 0; w && i < e->n_set; i++) gguf_writer_copy_kv(w, &e->set[i].kv);
    if (w && e->values->request.chat.template)
        gguf_writer_str(w, TEMPLATE_KEY, e->template.data ? e->template.data : "",
                        e->template.size);
    for (uint64_t i = 0; w && i < gguf_tensor_count(e->in); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(e->in, i);
        if (part < 0 || t->part == part)
            gguf_writer_tensor(w, renamed(e, t->name, false), t->type, t->n_dims, t->ne);
    }
    return w;
}

/* Returns whether a model, and its tokenizer if it has one, can be opened. */
static bool opens(const struct gguf_file *file, bool tokenizer, struct base_error *err)
{
    if (!tokenizer) return cli_model_check(file, err);
    struct text_tokenizer *t = text_tokenizer_open(file, err);
    text_tokenizer_close(t);
    return t != NULL;
}

/* Checks that the edited model can be opened if the original can. */
static bool check_opens(const struct edit *e, const struct gguf_file *after, bool tokenizer,
                        struct base_error *err)
{
    struct base_error before = BASE_ERROR_INIT, wrong = BASE_ERROR_INIT;
    if (!opens(e->in, tokenizer, &before)) {
        if (before.code == BASE_NO_MEMORY || before.code == BASE_INTERRUPTED) *err = before;
        return err->code == BASE_OK;
    }
    if (opens(after, tokenizer, &wrong)) return true;
    if (wrong.code == BASE_NO_MEMORY || wrong.code == BASE_INTERRUPTED) *err = wrong;
    return base_fail_at(err, BASE_USAGE, wrong.item, -1,
                        "the %s could not be opened afterwards: %s",
                        tokenizer ? "vocabulary" : "model", wrong.text);
}

static bool check_result(const struct edit *e, struct base_error *err)
{
    struct gguf_writer *w = declare(e, -1, err);
    struct gguf_file *after = w ? gguf_writer_preview(w, err) : NULL;
    const bool ok = after && check_opens(e, after, false, err) && check_opens(e, after, true, err);
    gguf_close(after);
    gguf_writer_free(w);
    return ok;
}

static bool check_there(const struct edit *e, struct base_error *err)
{
    struct stat st;
    if (is_there(e->in, &st)) return true;
    return base_fail_file(err, BASE_MODEL, gguf_path(e->in),
                          "was replaced by another file while it was edited");
}

static bool write_file(const struct edit *e, struct gguf_writer *w, struct base_error *err)
{
    const struct cli_values *v = e->values;
    const char *out = e->in_place ? gguf_path(e->in) : v->output;
    struct base_output *o = gguf_writer_output(w);
    if (e->in_place ? !cli_signals_guard(o) && !base_fail(err, BASE_FAILED, "too many outputs")
                    : !cli_output_claim(o, out, v, e->in, err))
        return false;
    if (!gguf_writer_begin(w, out, err)) return false;
    if (!v->no_sandbox) cli_sandbox_close(CLI_SANDBOX_FILES);
    return cli_model_copy(w, e->in, e->first_part ? 0 : -1, err) &&
           (!e->in_place || check_there(e, err)) && gguf_writer_end(w, err);
}

static bool cmd_edit(struct cli_values *values, struct base_error *err)
{
    struct edit e = {.values = values, .in_place = !values->output, .lock = -1};
    const char *in = values->argument[0];
    if (!values->no_sandbox) cli_sandbox_limit(values->output ? values->output : in);
    bool ok = open_input(&e, in, err);
    e.first_part = ok && e.in_place && gguf_part_count(e.in) > 1;
    struct gguf_writer *w = NULL;
    ok = ok && read_edits(&e, err) && check_result(&e, err) &&
         (w = declare(&e, e.first_part ? 0 : -1, err)) && write_file(&e, w, err);
    if (w) ok = cli_output_close(gguf_writer_output(w), ok, err);
    gguf_writer_free(w);
    for (size_t i = 0; i < e.n_set; i++) cli_edit_value_free(&e.set[i]);
    base_buffer_free(&e.template);
    close_input(&e);
    return ok;
}

const struct cli_command cli_command_edit = {
    .name = "edit",
    .usage = "infer edit MODEL.gguf [-o OUT.gguf] [options]",
    .effect = "change the metadata of a model file",
    .about = "Sets, deletes and renames keys of the metadata and puts in a chat template;\n"
             "tensors can be renamed too. Without -o the file is replaced when the new one is\n"
             "complete. A key of the file keeps its type, a new one needs TYPE: int, float,\n"
             "bool or str, as of --override-kv, or u8 to f64; with [] after it VALUE is a JSON\n"
             "array. An edit after which the model could not be opened is an error.",
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = {"FILE"},
    .run = cmd_edit,
};
