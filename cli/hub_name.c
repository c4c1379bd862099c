/* cli/hub_name.c: names on a hub, and records of them. See cli/hub_name.h. */
#include "cli/hub_name.h"
#include "base/interrupt.h"
#include "base/os.h"
#include "base/output.h"
#include "base/utf8.h"
#include "cli/system.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8proc.h>

enum { NAME_MAX_SIZE = 200 /* bytes; NAME.part.state must be a name too */, RECORD_MAX = 1 << 18 };
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

/* ---- Names of files ---- */

/* Returns whether the character can be seen, or is a space, and has no effect on others. */
static bool is_visible(int32_t code)
{
    const utf8proc_property_t *p = utf8proc_get_property(code);
    if (code < 0x20 || p->ignorable || code == 0x2800 /* Braille without dots */) return false;
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return code == ' ';
    default:
        return true;
    }
}

bool cli_hub_is_name(const char *text, size_t size)
{
    if (size == 0 || size > NAME_MAX_SIZE || text[0] == '.' || text[0] == '-') return false;
    for (size_t i = 0; i < size;) {
        int32_t code;
        i += base_utf8_decode(text + i, size - i, &code);
        if (code == '/' || code == '\\' || !is_visible(code)) return false;
    }
    return true;
}

bool cli_hub_is_path(const char *path)
{
    for (;; path++) {
        const size_t size = strcspn(path, "/");
        if (!cli_hub_is_name(path, size)) return false;
        path += size;
        if (*path == '\0') return true;
    }
}

bool cli_hub_fits(const char *path, const char *quant)
{
    static const char borders[] = "-._/";
    const size_t n = strlen(quant);
    const char *slash = strrchr(path, '/');
    if (strcasecmp(path, quant) == 0 || (slash && strcasecmp(slash + 1, quant) == 0)) return true;
    for (const char *at = path; n > 0 && (at = strcasestr(at, quant)) != NULL; at++)
        if ((at == path || strchr(borders, at[-1])) && (at[n] && strchr(".-/", at[n]))) return true;
    return false;
}

void cli_hub_add_encoded(struct base_buffer *out, const char *text, const char *others)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (isascii(c) && (isalnum(c) || strchr("-._~", c) || strchr(others, c)))
            base_buffer_add(out, text, 1);
        else
            base_buffer_add_format(out, "%%%02X", c);
    }
}

static int digit(char c)
{
    const char *digits = "0123456789abcdef",
               *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

void cli_hub_add_decoded(struct base_buffer *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const int high = text[i] == '%' && i + 2 < size ? digit(text[i + 1]) : -1;
        const int low = high >= 0 ? digit(text[i + 2]) : -1;
        const char c = low >= 0 ? (char)(16 * high + low) : text[i];
        base_buffer_add(out, &c, 1);
        if (low >= 0) i += 2;
    }
}

/* ---- Names of models ---- */

void cli_hub_name_free(struct cli_hub_name *n)
{
    base_buffer_free(&n->repository);
    base_buffer_free(&n->revision);
    base_buffer_free(&n->quant);
}

void cli_hub_name_show(const struct cli_hub_name *n, struct base_buffer *out)
{
    base_buffer_add(out, n->repository.data, n->repository.size);
    if (n->revision.size && strcmp(n->revision.data, "main") != 0)
        base_buffer_add_format(out, "@%s", n->revision.data);
    if (n->quant.size) base_buffer_add_format(out, ":%s", n->quant.data);
}

/* Returns what follows "HOST/" in an address without scheme of one of the hubs, or NULL. */
static const char *after_host(const char *text, const char *const *hubs)
{
    for (; *hubs; hubs++) {
        const char *scheme = strstr(*hubs, "://"), *host = scheme ? scheme + 3 : *hubs;
        size_t n = strlen(host);
        while (n > 0 && host[n - 1] == '/') n--;
        if (n > 0 && strncasecmp(text, host, n) == 0 && text[n] == '/') return text + n + 1;
    }
    return NULL;
}

/* Reads the end of a page's address, rest[0..size): "/tree/REVISION", "/blob/REVISION/FILE". */
static bool read_page(struct cli_hub_name *n, const char *rest, size_t size)
{
    static const char *const pages[] = {"/tree/", "/blob/", "/resolve/"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        const size_t start = strlen(pages[i]);
        if (size <= start || strncmp(rest, pages[i], start) != 0) continue;
        size_t end = start + strcspn(rest + start, "/");
        if (end > size) end = size;
        cli_hub_add_decoded(&n->revision, rest + start, end - start);
        if (i == 0) return true;
        if (end + 1 < size) cli_hub_add_decoded(&n->quant, rest + end + 1, size - end - 1);
        return n->quant.size > 0;
    }
    return false;
}

/* Reads what follows USER/REPO: "@REVISION" and ":QUANT", or the end of a page's address. */
static bool read_rest(struct cli_hub_name *n, const char *rest, bool is_page)
{
    size_t size = strcspn(rest, is_page ? "?#" : "");
    while (is_page && size > 0 && rest[size - 1] == '/') size--;
    if (is_page && size > 0 && *rest == '/') return read_page(n, rest, size);
    if (size > 0 && *rest == '@') {
        size_t end = strcspn(rest, ":");
        if (end > size) end = size;
        base_buffer_add(&n->revision, rest + 1, end - 1);
        if (end == 1) return false;
        rest += end;
        size -= end;
    }
    if (size > 0 && *rest == ':') base_buffer_add(&n->quant, rest + 1, size - 1);
    return size == 0 || (*rest == ':' && size > 1);
}

static bool is_revision(const char *text)
{
    return text[strspn(text, letters)] == '\0' || (strchr(text, '/') && cli_hub_is_path(text));
}

/* Reads USER/REPO and what follows. */
static bool read_parts(struct cli_hub_name *n, const char *text, bool is_page)
{
    const size_t user = strspn(text, letters);
    const size_t repo = text[user] == '/' ? strspn(text + user + 1, letters) : 0;
    if (user == 0 || repo == 0 || text[0] == '.' || text[user + 1] == '.') return false;
    base_buffer_add(&n->repository, text, user + 1 + repo);
    if (!read_rest(n, text + user + 1 + repo, is_page)) return false;
    if (!n->revision.size && !n->revision.failed) base_buffer_add_text(&n->revision, "main");
    return n->revision.failed || n->quant.failed ||
           (is_revision(n->revision.data) && (!n->quant.size || cli_hub_is_path(n->quant.data)));
}

/* Sets the error for an address of another host: what to write for it. */
static bool fail_host(const char *text, struct base_error *err)
{
    struct cli_hub_name other;
    BASE_LOCAL_BUFFER form = BASE_BUFFER_INIT;
    struct base_error none = BASE_ERROR_INIT;
    if (cli_hub_name_read(&other, text, NULL, &none)) cli_hub_name_show(&other, &form);
    cli_hub_name_free(&other);
    base_fail_at(err, form.failed ? BASE_NO_MEMORY : BASE_USAGE, text, -1,
                 "not an address of the hub or of a .gguf file; for a model of the hub write %s",
                 form.size ? form.data : "USER/REPO[@REVISION][:QUANT]");
    return false;
}

bool cli_hub_name_read(struct cli_hub_name *n, const char *text, const char *const *hubs,
                       struct base_error *err)
{
    const char *scheme = strstr(text, "://"), *start = scheme ? scheme + 3 : text;
    const char *slash = strchr(start, '/');
    /* A name has two parts. More than two begin with a host if the first contains a point. */
    const bool has_host =
        slash &&
        (scheme || (strchr(slash + 1, '/') && memchr(start, '.', (size_t)(slash - start))));
    const char *rest = hubs ? after_host(start, hubs) : has_host ? slash + 1 : NULL;
    *n = (struct cli_hub_name){.revision = BASE_BUFFER_INIT};
    if (!rest && has_host && hubs) return fail_host(text, err);
    if (!read_parts(n, rest ? rest : text, rest != NULL))
        return base_fail_at(err, BASE_USAGE, text, -1,
                            "is neither USER/REPO[@REVISION][:QUANT] nor an address (https://..)%s",
                            strchr(text, '/') ? ""
                                              : "; names of other libraries are not on the hub");
    return cli_buffer_check(&n->repository, err) && cli_buffer_check(&n->revision, err) &&
           cli_buffer_check(&n->quant, err);
}

bool cli_hub_name_from_url(struct cli_hub_name *n, const char *url, struct base_error *err)
{
    *n = (struct cli_hub_name){.revision = BASE_BUFFER_INIT};
    base_buffer_add(&n->repository, url, strcspn(url, "?#"));
    return cli_buffer_check(&n->repository, err);
}

/* ---- Names of files ---- */

static const char suffix[] = ".gguf";
enum { PART_SIZE = 20 /* -00002-of-00003.gguf */ };

/* Returns the end "-00002-of-00003.gguf" of a part's name, or NULL. */
static const char *part_of(const char *name)
{
    const size_t n = strlen(name);
    const char *part = n > PART_SIZE ? name + n - PART_SIZE : NULL;
    return part && part[0] == '-' && strncmp(part + 6, "-of-", 4) == 0 ? part : NULL;
}

bool cli_model_is_listed(const char *name)
{
    const size_t n = strlen(name), end = sizeof suffix - 1;
    if (n <= end || strcasecmp(name + n - end, suffix) != 0) return false;
    const char *part = part_of(name);
    return !part || strncmp(part, "-00001", 6) == 0;
}

size_t cli_model_name_size(const char *name)
{
    const char *part = part_of(name);
    return part ? (size_t)(part - name) : strlen(name) - (sizeof suffix - 1);
}

/* ---- Records ---- */

/*  infer origin 1
 *  USER/REPO, or an address
 *  REVISION
 *  path of the first file in the repository
 *  QUANT as it was named
 *  SIZE TIME NAME        of each file */
static const char first_line[] = CLI_ORIGIN_BEGIN "1", ending[] = ".origin";
enum { LINE_REPOSITORY = 1, LINE_REVISION, LINE_PATH, LINE_QUANT, LINE_FILES };

/* Returns whether the files have the recorded sizes and times. */
static bool is_unchanged(int folder, char *line)
{
    while (line && *line) {
        struct stat st;
        unsigned long long size;
        long long time;
        int at = 0;
        char *next = strchr(line, '\n');
        if (next) *next++ = '\0';
        if (sscanf(line, "%llu %lld %n", &size, &time, &at) != 2 || at == 0 ||
            fstatat(folder, line + at, &st, 0) != 0 || (unsigned long long)st.st_size != size ||
            (long long)base_os_written_ns(&st) != time)
            return false;
        line = next;
    }
    return true;
}

/* Returns whether the record answers the name. */
static bool is_of(char *text, const struct cli_hub_name *n, int folder, bool unchanged)
{
    char *line[LINE_FILES + 1] = {text};
    for (int i = 1; i <= LINE_FILES; i++) {
        char *end = strchr(line[i - 1], '\n');
        if (!end) return false;
        *end = '\0';
        line[i] = end + 1;
    }
    const char *quant = n->quant.size ? n->quant.data : NULL;
    if (strcmp(line[0], first_line) != 0 ||
        strcmp(line[LINE_REPOSITORY], n->repository.data) != 0 ||
        strcmp(line[LINE_REVISION], n->revision.size ? n->revision.data : "") != 0)
        return false;
    if (quant && !cli_hub_fits(line[LINE_PATH], quant)) return false;
    return !unchanged ||
           ((quant || !*line[LINE_QUANT] || cli_hub_fits(line[LINE_PATH], CLI_HUB_USUAL)) &&
            is_unchanged(folder, line[LINE_FILES]));
}

/* Reads the record of a model in the folder. */
static bool read_record(int folder, const char *model, struct base_buffer *text)
{
    struct stat st;
    base_buffer_clear(text);
    base_buffer_add_format(text, "%s%s", model, ending);
    if (text->failed) return false;
    const int fd = openat(folder, text->data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    base_buffer_clear(text);
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= RECORD_MAX) {
        char piece[4096];
        for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0 && text->size <= RECORD_MAX;)
            base_buffer_add(text, piece, (size_t)n);
    }
    close(fd);
    return !text->failed && text->size > 0;
}

bool cli_origin_find(const struct cli_hub_name *n, const char *folder, const char *as,
                     bool unchanged, struct base_buffer *path, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT, found = BASE_BUFFER_INIT;
    size_t count = 0;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !list) close(fd);
    for (const struct dirent *e; list && (e = readdir(list)) != NULL && base_goes_on(err);)
        if (!(unchanged && count) && cli_model_is_listed(e->d_name) &&
            (!as || strcmp(as, e->d_name) == 0) && read_record(fd, e->d_name, &text) &&
            is_of(text.data, n, fd, unchanged))
            base_buffer_add_format(&found, "%s%s", count++ ? ", " : "", e->d_name);
    if (list) closedir(list);
    if (count == 1) base_buffer_add_format(path, "%s/%s", folder, found.data);
    if (count > 1) {
        BASE_LOCAL_BUFFER name = BASE_BUFFER_INIT;
        cli_hub_name_show(n, &name);
        base_fail_at(err, BASE_MODEL, name.failed ? NULL : name.data, -1,
                     "several files came from it: %s", found.failed ? "" : found.data);
    }
    path->failed |= found.failed | text.failed;
    return count == 1 && cli_buffer_check(path, err);
}

void cli_origin_write(const struct cli_hub_name *n, const char *path, const char *folder,
                      const char *const *names, size_t count)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT, file = BASE_BUFFER_INIT;
    struct base_output out;
    base_buffer_add_format(&text, "%s\n%s\n%s\n%s\n%s\n", first_line, n->repository.data,
                           n->revision.size ? n->revision.data : "", path,
                           n->quant.size ? n->quant.data : "");
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        struct stat st;
        base_buffer_clear(&file);
        base_buffer_add_format(&file, "%s/%s", folder, names[i]);
        ok = !file.failed && stat(file.data, &st) == 0;
        if (ok)
            base_buffer_add_format(&text, "%llu %lld %s\n", (unsigned long long)st.st_size,
                                   (long long)base_os_written_ns(&st), names[i]);
    }
    base_buffer_clear(&file);
    base_buffer_add_format(&file, "%s/%s%s", folder, names[0], ending);
    if (ok && !text.failed && !file.failed && text.size <= RECORD_MAX) {
        ok = base_output_create(&out, file.data, 0666, NULL) &&
             base_output_write(&out, text.data, text.size, NULL);
        base_output_close(&out, ok, NULL);
    }
}
