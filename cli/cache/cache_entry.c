/* cli/cache/cache_entry.c: the file of one stored sequence. See cli/cache/cache_entry.h. */
#include "cli/cache/cache_entry.h"
#include "base/checksum.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/size.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READERS = 4 }; /* threads that read a state in parallel */

static const char magic[16] = "infer prefix 01";

struct entry_header {
    char magic[16];
    uint64_t size, n_name, n_ids, state_size, reserved; /* reserved: 0 */
    char key[BASE_SHA256_HEX - 1];
    uint64_t checksum; /* of all bytes before the state, computed with this member as 0 */
};
_Static_assert(sizeof(struct entry_header) == CLI_CACHE_HEAD, "no padding");

/* ---- Sizes ---- */

struct entry_layout {
    uint64_t ids, checksums, n_pieces, state, end;
};

static bool find_layout(uint64_t n_name, uint64_t n_ids, uint64_t state_size,
                        struct entry_layout *p)
{
    uint64_t id_bytes, sums;
    p->n_pieces = state_size / CLI_CACHE_PIECE + (state_size % CLI_CACHE_PIECE != 0);
    return base_add(CLI_CACHE_HEAD, n_name, &p->ids) && base_align_up(p->ids, 8, &p->ids) &&
           base_mul(n_ids, sizeof(int32_t), &id_bytes) &&
           base_add(p->ids, id_bytes, &p->checksums) &&
           base_align_up(p->checksums, 8, &p->checksums) &&
           base_mul(p->n_pieces, sizeof(uint64_t), &sums) &&
           base_add(p->checksums, sums, &p->state) && base_add(p->state, state_size, &p->end) &&
           p->end <= INT64_MAX;
}

bool cli_cache_size(uint64_t n_name, uint64_t n_ids, uint64_t state_size, uint64_t *size)
{
    struct entry_layout p;
    if (n_name > CLI_CACHE_NAME_MAX) n_name = CLI_CACHE_NAME_MAX;
    if (!find_layout(n_name, n_ids, state_size, &p)) return false;
    *size = p.end;
    return true;
}

/* ---- Reading ---- */

static bool read_at(int fd, void *bytes, uint64_t size, uint64_t offset, struct base_error *err)
{
    char *to = bytes;
    while (size > 0) {
        const ssize_t n = pread(fd, to, size, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            if (!base_goes_on(err)) return false;
            continue;
        }
        if (n < 0) return base_fail(err, BASE_FAILED, "cannot read: %s", strerror(errno));
        if (n == 0) return base_fail(err, BASE_FAILED, "the file is truncated");
        to += n;
        size -= (uint64_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

static uint64_t checksum_of_head(char *bytes, size_t size)
{
    struct entry_header *h = (struct entry_header *)(void *)bytes;
    const uint64_t own = h->checksum;
    h->checksum = 0;
    const uint64_t sum = base_checksum(bytes, size, 0);
    h->checksum = own;
    return sum;
}

/* Checks that the fixed part fits the file, and computes the offsets of the other parts. */
static bool check_sizes(const struct entry_header *h, uint64_t size, struct entry_layout *p,
                        struct base_error *err)
{
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return base_fail(err, BASE_FAILED, "not an entry of the prefix cache");
    if (h->n_name > CLI_CACHE_NAME_MAX || h->n_ids == 0 || h->n_ids > INT32_MAX ||
        !find_layout(h->n_name, h->n_ids, h->state_size, p) || p->end != size || h->size != size)
        return base_fail(err, BASE_FAILED, "the sizes do not fit the file");
    return true;
}

bool cli_cache_head_read(int fd, struct cli_cache_head *h, struct base_error *err)
{
    struct entry_header fixed;
    struct entry_layout p;
    struct stat st;
    *h = (struct cli_cache_head){0};
    if (fstat(fd, &st) != 0 || st.st_size < CLI_CACHE_HEAD)
        return base_fail(err, BASE_FAILED, "the file is truncated");
    if (!read_at(fd, &fixed, sizeof fixed, 0, err) ||
        !check_sizes(&fixed, (uint64_t)st.st_size, &p, err))
        return false;
    base_buffer_reserve(&h->bytes, p.state);
    if (h->bytes.failed) return base_fail(err, BASE_NO_MEMORY, "no memory for an entry");
    if (!read_at(fd, h->bytes.data, p.state, 0, err)) goto failed;
    h->bytes.size = p.state;
    /* The file may have changed between the two reads. */
    if (memcmp(h->bytes.data, &fixed, sizeof fixed) != 0 ||
        checksum_of_head(h->bytes.data, p.state) != fixed.checksum) {
        base_fail(err, BASE_FAILED, "the checksum of its head is wrong");
        goto failed;
    }
    h->name = h->bytes.data + CLI_CACHE_HEAD;
    h->id = (const int32_t *)(const void *)(h->bytes.data + p.ids);
    h->checksum = (const uint64_t *)(const void *)(h->bytes.data + p.checksums);
    h->n_name = fixed.n_name;
    h->n_ids = fixed.n_ids;
    h->state_size = fixed.state_size;
    h->size = p.end;
    memcpy(h->key, fixed.key, sizeof fixed.key);
    return true;
failed:
    cli_cache_head_free(h);
    return false;
}

void cli_cache_head_free(struct cli_cache_head *h)
{
    base_buffer_free(&h->bytes);
    *h = (struct cli_cache_head){0};
}

/* Reads the state piece by piece. */
struct entry_reader {
    int fd;
    const struct cli_cache_head *head;
    uint64_t at;    /* offset of the next byte */
    uint64_t piece; /* number of the piece in `bytes`; UINT64_MAX: none */
    char *bytes;    /* [CLI_CACHE_PIECE] */
};

static bool need_piece(struct entry_reader *r, uint64_t piece, struct base_error *err)
{
    const uint64_t start = piece * CLI_CACHE_PIECE, left = r->head->state_size - start;
    const uint64_t size = left < CLI_CACHE_PIECE ? left : CLI_CACHE_PIECE;
    if (piece == r->piece) return true;
    r->piece = UINT64_MAX;
    if (!base_goes_on(err) || !read_at(r->fd, r->bytes, size, r->head->bytes.size + start, err))
        return false;
    if (base_checksum(r->bytes, size, piece) != r->head->checksum[piece])
        return base_fail(err, BASE_FAILED, "the checksum of piece %llu is wrong",
                         (unsigned long long)piece);
    r->piece = piece;
    return true;
}

static bool skip(void *user, uint64_t n, struct base_error *err)
{
    struct entry_reader *r = user;
    if (n > r->head->state_size - r->at)
        return base_fail(err, BASE_FAILED, "the state is truncated");
    r->at += n;
    return true;
}

static bool copy(void *user, void *bytes, uint64_t n, struct base_error *err)
{
    struct entry_reader *r = user;
    char *to = bytes;
    if (n > r->head->state_size - r->at) return skip(user, n, err);
    while (n > 0) {
        const uint64_t in = r->at % CLI_CACHE_PIECE;
        const uint64_t part = n < CLI_CACHE_PIECE - in ? n : CLI_CACHE_PIECE - in;
        if (!need_piece(r, r->at / CLI_CACHE_PIECE, err)) return false;
        memcpy(to, r->bytes + in, part);
        to += part;
        n -= part;
        r->at += part;
    }
    return true;
}

uint32_t cli_cache_state_load(int fd, const struct cli_cache_head *h, struct model_session *s,
                              uint32_t seq, uint32_t least, uint32_t most, struct base_error *err)
{
    struct entry_reader reader[READERS];
    struct model_source source = {.read = copy, .pass_over = skip};
    uint32_t n = 0;
    for (unsigned i = 0; i < READERS; i++) { /* fewer readers are enough */
        char *bytes = malloc(CLI_CACHE_PIECE);
        if (!bytes) break;
        reader[i] = (struct entry_reader){.fd = fd, .head = h, .piece = UINT64_MAX, .bytes = bytes};
        source.user[source.n_users++] = &reader[i];
    }
    if (source.n_users == 0)
        base_fail(err, BASE_NO_MEMORY, "no memory for an entry");
    else
        n = model_seq_load(s, seq, least, most, &source, err);
    for (unsigned i = 0; i < source.n_users; i++) free(reader[i].bytes);
    return n;
}

/* ---- Writing ---- */

bool cli_cache_mark(int fd)
{
    return pwrite(fd, magic, sizeof magic, 0) == sizeof magic;
}

bool cli_cache_is_marked(int fd)
{
    char begin[sizeof magic];
    return pread(fd, begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, magic, sizeof magic) == 0;
}

static bool count(void *user, const void *bytes, uint64_t n, struct base_error *err)
{
    uint64_t *size = user;
    (void)bytes;
    return base_add(*size, n, size) || base_fail(err, BASE_FAILED, "the state is too large");
}

bool cli_cache_state_size(struct model_session *s, uint32_t seq, uint64_t *size,
                          struct base_error *err)
{
    const struct model_sink sink = {count, size};
    *size = 0;
    return model_seq_save(s, seq, &sink, err);
}

struct entry_writer {
    int fd;
    char *bytes; /* [CLI_CACHE_PIECE]; `used` bytes are not written yet */
    size_t used;
    uint64_t *checksum; /* [n_pieces] */
    uint64_t piece, n_pieces;
};

static bool fail_write(struct base_error *err)
{
    if (base_interrupted()) return base_goes_on(err);
    return base_fail(err, BASE_FAILED, "cannot write: %s", strerror(errno));
}

static bool flush(struct entry_writer *w, struct base_error *err)
{
    if (w->used == 0) return true;
    if (w->piece == w->n_pieces) return base_fail(err, BASE_FAILED, "the state has grown");
    w->checksum[w->piece] = base_checksum(w->bytes, w->used, w->piece);
    w->piece++;
    if (!base_write_all(w->fd, w->bytes, w->used)) return fail_write(err);
    w->used = 0;
    return base_goes_on(err);
}

static bool write_state(void *user, const void *bytes, uint64_t n, struct base_error *err)
{
    struct entry_writer *w = user;
    const char *from = bytes;
    while (n > 0) {
        const uint64_t room = CLI_CACHE_PIECE - w->used, part = n < room ? n : room;
        memcpy(w->bytes + w->used, from, part);
        w->used += part;
        from += part;
        n -= part;
        if (w->used == CLI_CACHE_PIECE && !flush(w, err)) return false;
    }
    return true;
}

/* Writes the state after space for the head, then the head with the checksums. */
static bool write_parts(struct entry_writer *w, char *head, const struct entry_layout *p,
                        struct model_session *s, uint32_t seq, struct base_error *err)
{
    const struct model_sink sink = {write_state, w};
    if (lseek(w->fd, (off_t)p->state, SEEK_SET) < 0) return fail_write(err);
    if (!model_seq_save(s, seq, &sink, err) || !flush(w, err)) return false;
    if (w->piece != w->n_pieces) return base_fail(err, BASE_FAILED, "the state has shrunk");
    ((struct entry_header *)(void *)head)->checksum = checksum_of_head(head, p->state);
    if (lseek(w->fd, 0, SEEK_SET) < 0 || !base_write_all(w->fd, head, p->state))
        return fail_write(err);
    return true;
}

bool cli_cache_write(int fd, const struct cli_cache_text *text, struct model_session *s,
                     uint32_t seq, uint64_t state_size, struct base_error *err)
{
    struct entry_layout p;
    const size_t n_name = text->n_name < CLI_CACHE_NAME_MAX ? text->n_name : CLI_CACHE_NAME_MAX;
    if (!find_layout(n_name, text->n_ids, state_size, &p))
        return base_fail(err, BASE_FAILED, "the state is too large");
    char *head = calloc(1, p.state);
    struct entry_writer w = {.fd = fd, .bytes = malloc(CLI_CACHE_PIECE), .n_pieces = p.n_pieces};
    bool ok = head && w.bytes;
    if (ok) {
        struct entry_header *h = (struct entry_header *)(void *)head;
        *h = (struct entry_header){
            .size = p.end, .n_name = n_name, .n_ids = text->n_ids, .state_size = state_size};
        memcpy(h->magic, magic, sizeof magic);
        memcpy(h->key, text->key, sizeof h->key);
        memcpy(head + CLI_CACHE_HEAD, text->name, n_name);
        memcpy(head + p.ids, text->id, text->n_ids * sizeof *text->id);
        w.checksum = (uint64_t *)(void *)(head + p.checksums);
        ok = write_parts(&w, head, &p, s, seq, err);
    } else {
        base_fail(err, BASE_NO_MEMORY, "no memory for an entry");
    }
    free(head);
    free(w.bytes);
    return ok;
}
