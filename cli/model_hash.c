/* cli/model_hash.c: computes the hash of a model and caches it. See cli/model_hash.h. */
#include "cli/model_hash.h"
#include "base/buffer.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "cli/progress.h"
#include "cli/user_folder.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 1 << 20 /* bytes between two checks for Ctrl-C */, YOUNG_SECONDS = 2 };

/* Appends the path of the file's entry in the cache to *path; `make` creates the cache's folder.
 * Returns false without memory or a home folder. */
static bool entry_path(const struct gguf_file *file, bool make, struct base_buffer *path)
{
    BASE_LOCAL_BUFFER key = BASE_BUFFER_INIT;
    struct base_sha256 h;
    char name[BASE_SHA256_HEX];
    if (!cli_user_path("XDG_CACHE_HOME", ".cache", "sha256", path)) return false;
    if (make && !path->failed) (void)cli_user_make_folder(path->data, 0777);
    for (int i = 0; i < gguf_part_count(file); i++) {
        const struct gguf_part_facts part = gguf_part_facts(file, i);
        base_buffer_add_format(&key, "%llu %llu %llu %lld\n", (unsigned long long)part.device,
                               (unsigned long long)part.inode, (unsigned long long)part.size,
                               (long long)part.changed_ns);
    }
    base_sha256_init(&h);
    base_sha256_add(&h, key.data, key.size);
    base_sha256_hex(&h, name);
    base_buffer_add_format(path, "/%s", name);
    return !key.failed && !path->failed;
}

static bool is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") == BASE_SHA256_HEX - 1 &&
           text[BASE_SHA256_HEX - 1] == '\0';
}

enum { PIECES = 16, PIECE_BYTES = 4096 }; /* hashed of a larger model, evenly spaced */

void cli_model_hash_pieces(const struct gguf_file *file, bool all, char out[BASE_SHA256_HEX])
{
    struct base_sha256 h;
    base_sha256_init(&h);
    for (int i = 0; i < gguf_part_count(file); i++) {
        const struct gguf_part_facts part = gguf_part_facts(file, i);
        if (all || part.size <= PIECE_BYTES)
            base_sha256_add(&h, part.bytes, (size_t)part.size);
        else
            for (uint64_t k = 0; k < PIECES; k++)
                base_sha256_add(
                    &h, (const char *)part.bytes + (part.size - PIECE_BYTES) / (PIECES - 1) * k,
                    PIECE_BYTES);
    }
    base_sha256_hex(&h, out);
}

bool cli_model_hash_cached(const struct gguf_file *file, char out[BASE_SHA256_HEX])
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    bool ok = false;
    memset(out, 0, BASE_SHA256_HEX);
    struct stat st;
    /* O_NONBLOCK, because opening a pipe of the entry's name must not wait. */
    const int fd = entry_path(file, false, &path)
                       ? open(path.data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
                       : -1;
    if (fd >= 0) {
        ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && cli_user_owns(&st) &&
             read(fd, out, BASE_SHA256_HEX - 1) == BASE_SHA256_HEX - 1 && is_hash(out);
        close(fd);
    }
    if (!ok) out[0] = '\0';
    return ok;
}

/* Returns whether the file changed so recently that it may change again within the resolution of
 * its time stamp. */
static bool is_young(const struct gguf_file *file)
{
    for (int i = 0; i < gguf_part_count(file); i++)
        if (gguf_part_facts(file, i).changed_ns / 1000000000 >= time(NULL) - YOUNG_SECONDS)
            return true;
    return false;
}

static void remember(const struct gguf_file *file, const char *hash)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    struct base_output out;
    if (!is_young(file) && entry_path(file, true, &path)) {
        const bool ok = base_output_create(&out, path.data, 0644, NULL) &&
                        base_output_write(&out, hash, BASE_SHA256_HEX - 1, NULL);
        base_output_close(&out, ok, NULL);
    }
}

bool cli_model_hash(const struct gguf_file *file, char out[BASE_SHA256_HEX], struct base_error *err)
{
    struct base_sha256 h;
    if (cli_model_hash_cached(file, out)) return true;
    base_sha256_init(&h);
    cli_progress_begin("hashing", "bytes", gguf_size(file));
    for (int i = 0; i < gguf_part_count(file); i++) {
        const struct gguf_part_facts part = gguf_part_facts(file, i);
        for (uint64_t done = 0; done < part.size;) {
            const uint64_t step = part.size - done < STEP ? part.size - done : STEP;
            if (!base_goes_on(err)) {
                cli_progress_end();
                return false;
            }
            base_sha256_add(&h, (const char *)part.bytes + done, (size_t)step);
            done += step;
            cli_progress_add(step);
        }
    }
    cli_progress_end();
    base_sha256_hex(&h, out);
    remember(file, out);
    return true;
}
