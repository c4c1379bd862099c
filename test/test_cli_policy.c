/* test/test_cli_policy.c: what the command line keeps and drops: lines of the history, entries of
 * the prefix cache, bytes of partial downloads, pauses between attempts, messages of a
 * conversation, types of tensors, hot rows. */
#include "test/support.h"

#include "chat/messages.h"
#include "cli/activations.h"
#include "cli/cache/cache_folder.h"
#include "cli/chat/chat_history.h"
#include "cli/cmd/quantize_target.h"
#include "cli/options.h"
#include "cli/pull/partial.h"
#include "test/support_files.h"
#include <fcntl.h>
#include <ftw.h>
#include <histedit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* ---- Files of a folder ---- */

static char *new_folder(void)
{
    char *folder = strdup("/tmp/infer-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(folder);
}

static const char *path_of(const char *folder, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

/* The number of a file's lines; *first: the number that its first line is. */
static int lines_of(const char *path, int *first)
{
    FILE *f = fopen(path, "rb");
    char line[256];
    int n = 0;
    assert_non_null(f);
    for (*first = -1; fgets(line, sizeof line, f); n++)
        if (n == 0) *first = atoi(line);
    fclose(f);
    return n;
}

/* ---- History ---- */

static const char *make_history(const char *folder, int n_lines)
{
    const char *path;
    char text[16];
    setenv("XDG_STATE_HOME", folder, 1);
    mkdir(path_of(folder, "infer"), 0700);
    path = path_of(folder, "infer/history");
    write_file(path, "", 0);
    FILE *f = fopen(path, "ab");
    for (int i = 0; i < n_lines; i++) {
        snprintf(text, sizeof text, "%05d\n", i);
        fputs(text, f);
    }
    fclose(f);
    return path;
}

static void the_history_has_the_latest_1000_lines(void **state)
{
    static const int sizes[] = {1, 999, 1000, 1001, 1900, 2100};
    char *folder = new_folder();
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *path = make_history(folder, sizes[i]);
        struct cli_history *h = cli_history_open(true);
        HistEventW event;
        const int kept = sizes[i] < 1000 ? sizes[i] : 1000;
        int first;
        history_w(cli_history_list(h), &event, H_GETSIZE);
        assert_int_equal(event.num, kept);
        history_w(cli_history_list(h), &event, H_FIRST);
        assert_int_equal(wcstol(event.str, NULL, 10), sizes[i] - 1); /* the latest line */
        history_w(cli_history_list(h), &event, H_LAST);
        assert_int_equal(wcstol(event.str, NULL, 10), sizes[i] - kept);
        /* The file is cut only when more than half of it is old. */
        const bool cut = sizes[i] > 2 * 1000;
        assert_int_equal(lines_of(path, &first), cut ? 1000 : sizes[i]);
        assert_int_equal(first, cut ? sizes[i] - 1000 : 0);
        cli_history_close(h);
    }
    remove_folder(folder);
}

static void commands_and_texts_of_several_lines_are_not_written(void **state)
{
    char *folder = new_folder();
    const char *path = make_history(folder, 3);
    struct cli_history *h = cli_history_open(true);
    struct cli_history *none = cli_history_open(false);
    HistEventW event;
    struct stat st;
    int first;
    (void)state;
    cli_history_add(h, "/save x", 7);
    cli_history_add(h, "a\nb", 3);
    assert_int_equal(lines_of(path, &first), 3);
    cli_history_add(h, "plain", 5);
    cli_history_add(none, "unseen", 6);
    assert_int_equal(lines_of(path, &first), 4);
    history_w(cli_history_list(h), &event, H_GETSIZE);
    assert_int_equal(event.num, 6);
    unlink(path);
    cli_history_add(h, "again", 5);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    cli_history_close(h);
    cli_history_close(none);
    remove_folder(folder);
}

/* ---- The folder of the prefix cache ---- */

static void name_entry(char name[CLI_CACHE_FILE_NAME], int i)
{
    snprintf(name, CLI_CACHE_FILE_NAME, "%016x-%016x-%016x.prefix", 1, i, i);
}

/* Writes a file of `size` bytes with the mark of an entry, which was used at that second. */
static void write_entry(const char *path, size_t size, time_t used)
{
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    static const char mark[100] = "infer prefix 01";
    assert_true(size <= sizeof mark);
    write_file(path, mark, size);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void add_entry(const char *folder, int i, size_t size, time_t used)
{
    char name[CLI_CACHE_FILE_NAME];
    name_entry(name, i);
    write_entry(path_of(folder, name), size, used);
}

static bool has_entry(const char *folder, int i)
{
    char name[CLI_CACHE_FILE_NAME];
    name_entry(name, i);
    return access(path_of(folder, name), F_OK) == 0;
}

static void open_cache(struct cli_cache_folder *f, const char *folder)
{
    struct base_error err = BASE_ERROR_INIT;
    bool missing;
    if (!cli_cache_folder_open(f, folder, true, &missing, &err)) fail_msg("%s", err.text);
}

static void the_least_recently_used_entries_go_until_the_rest_fits(void **state)
{
    static const int used[] = {40, 10, 30, 20}; /* of four entries of 100 bytes */
    static const struct {
        uint64_t size, limit;
        int n_left;
    } cases[] = {{0, 400, 4},   {0, 399, 3},   {100, 400, 3}, {1, 400, 3}, {200, 300, 1},
                 {150, 300, 1}, {300, 300, 0}, {301, 300, 0}, {0, 100, 1}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char *folder = new_folder();
        struct cli_cache_folder f;
        chmod(folder, 0700);
        for (int i = 0; i < 4; i++) add_entry(folder, i, 100, used[i]);
        open_cache(&f, folder);
        cli_cache_folder_make_room(&f, cases[c].size, cases[c].limit);
        for (int i = 0; i < 4; i++) /* the last used n_left ones */
            assert_int_equal(has_entry(folder, i), used[i] > 40 - 10 * cases[c].n_left);
        assert_int_equal(f.n_left, cases[c].n_left);
        assert_int_equal(f.bytes, 100 * (uint64_t)cases[c].n_left);
        cli_cache_folder_close(&f);
        remove_folder(folder);
    }
}

static void at_most_1024_entries_are_kept(void **state)
{
    enum { MOST = 1024, N = MOST + 3 };
    char *folder = new_folder();
    struct cli_cache_folder f;
    (void)state;
    chmod(folder, 0700);
    for (int i = 0; i < N; i++) add_entry(folder, i, 20, 1000 + i);
    open_cache(&f, folder);
    assert_int_equal(f.count, N);
    cli_cache_folder_make_room(&f, 0, UINT64_MAX);
    assert_int_equal(f.n_left, MOST);
    assert_false(has_entry(folder, N - MOST - 1));
    assert_true(has_entry(folder, N - MOST));
    cli_cache_folder_close(&f);
    remove_folder(folder);
}

static void only_old_unlocked_incomplete_files_are_removed(void **state)
{
    static const char *const names[] = {"new.1.part", "new.2.part", "new.3.part", "other"};
    char *folder = new_folder();
    struct cli_cache_folder f;
    (void)state;
    chmod(folder, 0700);
    for (int i = 0; i < 4; i++) {
        write_entry(path_of(folder, names[i]), 20, time(NULL) - (i == 1 ? 0 : 3600));
    }
    const int locked = open(path_of(folder, names[2]), O_RDONLY);
    assert_int_equal(flock(locked, LOCK_EX), 0);
    open_cache(&f, folder);
    for (int i = 0; i < 4; i++)
        assert_int_equal(access(path_of(folder, names[i]), F_OK), i == 0 ? -1 : 0);
    assert_int_equal(f.count, 0);
    close(locked);
    cli_cache_folder_close(&f);
    remove_folder(folder);
}

static void what_others_can_write_to_is_not_read(void **state)
{
    char *folder = new_folder();
    char name[CLI_CACHE_FILE_NAME];
    struct cli_cache_folder f;
    struct base_error err = BASE_ERROR_INIT;
    bool missing;
    (void)state;
    chmod(folder, 0700);
    for (int i = 0; i < 3; i++) add_entry(folder, i, 20, 30 - i);
    name_entry(name, 1);
    chmod(path_of(folder, name), 0620);
    name_entry(name, 2);
    chmod(path_of(folder, name), 0602);
    open_cache(&f, folder);
    for (int i = 0; i < 3; i++) {
        const int fd = cli_cache_file_open(&f, &f.file[i]);
        assert_int_equal(fd >= 0, i == 0);
        if (fd >= 0) close(fd);
    }
    cli_cache_folder_close(&f);
    for (mode_t mode = 0720; mode != 0; mode = mode == 0720 ? 0702 : 0) {
        chmod(folder, mode);
        assert_false(cli_cache_folder_open(&f, folder, true, &missing, &err));
        cli_cache_folder_close(&f);
        err = (struct base_error)BASE_ERROR_INIT;
    }
    chmod(folder, 0700);
    remove_folder(folder);
}

/* ---- Partial downloads ---- */

static const struct cli_version version = {.size = 100, .validator = "\"v1\""};

/* Fetches n bytes of a version, and then begins `next`. Returns the number of bytes that are kept.
 */
static uint64_t kept_for(const struct cli_version *first, uint64_t n,
                         const struct cli_version *next, off_t shorten)
{
    char *folder = new_folder();
    struct base_error err = BASE_ERROR_INIT;
    struct cli_partial p;
    char bytes[100] = "";
    assert_true(cli_partial_open(&p, folder, "m.gguf", &err));
    assert_true(cli_partial_begin(&p, first, &err));
    assert_true(cli_partial_write(&p, 0, bytes, (size_t)n, &err));
    assert_true(cli_partial_advance(&p, n, &err));
    cli_partial_close(&p);
    if (shorten >= 0) assert_int_equal(truncate(path_of(folder, "m.gguf.part"), shorten), 0);
    assert_true(cli_partial_open(&p, folder, "m.gguf", &err));
    assert_true(cli_partial_begin(&p, next, &err));
    const uint64_t kept = p.done;
    cli_partial_close(&p);
    if (kept == 0) { /* nothing is left of it */
        assert_int_equal(access(path_of(folder, "m.gguf.part"), F_OK), -1);
        assert_int_equal(access(path_of(folder, "m.gguf.part.state"), F_OK), -1);
    }
    remove_folder(folder);
    return kept;
}

static void bytes_of_the_same_version_are_kept(void **state)
{
    struct cli_version other = version, unknown = {.size = 100}, summed = {.size = 100};
    (void)state;
    assert_int_equal(kept_for(&version, 60, &version, -1), 60);
    strcpy(other.validator, "\"v2\"");
    assert_int_equal(kept_for(&version, 60, &other, -1), 0);
    other = version;
    other.size = 101;
    assert_int_equal(kept_for(&version, 60, &other, -1), 0);
    memset(summed.sha256, 'a', BASE_SHA256_HEX - 1);
    assert_int_equal(kept_for(&summed, 60, &summed, -1), 60);
    assert_int_equal(kept_for(&summed, 60, &version, -1), 0);
    /* Without a version it may be another file. */
    assert_int_equal(kept_for(&unknown, 60, &unknown, -1), 0);
    /* The state says more than the file has. */
    assert_int_equal(kept_for(&version, 60, &version, 59), 0);
    assert_int_equal(kept_for(&version, 60, &version, 60), 60);
    assert_int_equal(kept_for(&version, 100, &version, -1), 100);
}

static void a_file_of_another_size_or_checksum_is_discarded(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 3; wrong++) {
        char *folder = new_folder(), bytes[100] = "";
        struct base_error err = BASE_ERROR_INIT;
        struct cli_version v = version;
        struct base_sha256 hash;
        struct cli_partial p;
        const size_t n = wrong == 1 ? 99 : 100;
        bool over;
        base_sha256_init(&hash);
        base_sha256_add(&hash, bytes, sizeof bytes);
        base_sha256_hex(&hash, v.sha256);
        if (wrong == 1) v.sha256[0] = '\0'; /* only the size is known */
        if (wrong == 2) v.sha256[0] = v.sha256[0] == '0' ? '1' : '0';
        assert_true(cli_partial_open(&p, folder, "m.gguf", &err));
        assert_true(cli_partial_begin(&p, &v, &err));
        assert_true(cli_partial_write(&p, 0, bytes, n, &err));
        assert_true(cli_partial_advance(&p, n, &err));
        assert_true(cli_partial_hash(&p, &over, &err) && over);
        assert_int_equal(cli_partial_check(&p, &err), wrong == 0);
        assert_int_equal(p.done, wrong ? 0 : 100);
        cli_partial_close(&p);
        remove_folder(folder);
    }
}

static void pauses_double_unless_the_server_says_how_long(void **state)
{
    const struct cli_http_options o = {.hub = "https://hub.example", .timeout = 1};
    struct cli_http_request r = {.answer.wait = -1};
    struct base_error err = BASE_ERROR_INIT;
    struct cli_http *http = cli_http_new(&o, &err);
    (void)state;
    if (!http) support_skip("libcurl");
    cli_http_free(http);
    for (int n = 0; n < 8; n++) assert_true(cli_http_pause(&r, n) == 0.25 * (double)(1 << n));
    r.answer.wait = 0;
    assert_true(cli_http_pause(&r, 5) == 0);
    r.answer.wait = 120; /* two minutes at most */
    assert_true(cli_http_pause(&r, 5) == 120);
    r.answer.wait = 121;
    assert_true(cli_http_pause(&r, 1) == 0.5);
}

/* ---- Conversations ---- */

static json_t *talk(const char *roles)
{
    static const char *const name[128] = {
        ['s'] = "system", ['u'] = "user", ['a'] = "assistant", ['t'] = "tool"};
    json_t *list = json_array();
    for (; *roles; roles++) {
        json_t *m = json_pack("{s:s,s:s}", "role", name[(unsigned char)*roles], "content", "x");
        assert_int_equal(json_array_append_new(list, m), 0);
    }
    return list;
}

static void the_last_turn_begins_with_the_last_message_of_the_user(void **state)
{
    static const struct {
        const char *roles;
        size_t last_turn, n_system;
    } cases[] = {{"", 0, 0},    {"s", 1, 1},        {"u", 0, 0},        {"su", 1, 1},
                 {"sua", 1, 1}, {"suaua", 3, 1},    {"suauatat", 3, 1}, {"uaus", 2, 0},
                 {"aa", 2, 0},  {"suauatata", 3, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *list = talk(cases[i].roles);
        assert_int_equal(chat_messages_last_turn(list), cases[i].last_turn);
        assert_int_equal(chat_messages_n_system(list), cases[i].n_system);
        chat_messages_cut(list, cases[i].last_turn); /* drops the turn */
        assert_int_equal(json_array_size(list), cases[i].last_turn);
        json_decref(list);
    }
}

static void a_conversation_has_one_system_message_in_front(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    json_t *list = talk("ua");
    assert_true(chat_messages_set_system(list, "one", &cli_chat_caller, &err));
    assert_true(chat_messages_set_system(list, "two", &cli_chat_caller, &err));
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(chat_messages_role(list, 0), "system");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "content")),
                        "two");
    assert_true(chat_messages_set_system(list, NULL, &cli_chat_caller, &err));
    assert_int_equal(json_array_size(list), 2);
    /* A line's own system message comes before that of the command line. */
    const struct chat_request request = {.chat = {.caller = &cli_chat_caller, .system = "given"}};
    json_t *own = talk("su"), *both = chat_messages_of_line(own, &request, NULL, &err);
    assert_int_equal(json_array_size(both), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(both, 0), "content")),
                        "x");
    json_decref(own);
    json_decref(both);
    json_decref(list);
}

/* ---- Requests ---- */

static bool set_member(struct cli_given *given, const char *name, const json_t *value,
                       struct base_error *err)
{
    bool known;
    const struct cli_option *o = cli_option_of_request(CLI_BATCH, name, &known);
    return o && cli_request_set_json(given, o, value, false, err);
}

static void a_request_points_into_the_values_that_it_was_set_from(void **state)
{
    (void)state;
    char *argv[] = {"--temp", "0.5", "--stop", "x", "--json-object", "-n", "7", NULL};
    struct base_error err = BASE_ERROR_INIT;
    struct cli_values values;
    struct base_keep keep = {0};
    struct cli_given given;
    struct chat_request r;
    assert_true(cli_options_parse(CLI_BATCH, 7, argv, 0, &values, &err));
    json_t *line = json_pack("{s:[s,s], s:i, s:s, s:{s:i}}", "stop", "a", "b", "top_k", 3, "regex",
                             "z", "template_var", "v", 1);
    const char *name;
    json_t *value;
    cli_request_begin(&given, CLI_BATCH, &values, &r, &keep);
    json_object_foreach(line, name, value) assert_true(set_member(&given, name, value, &err));
    assert_true(cli_request_end(&given, &values, &err));
    assert_int_equal(r.generate.stop.count, 2); /* in place of the command's */
    assert_ptr_equal(r.generate.stop.item[1],
                     json_string_value(json_array_get(json_object_get(line, "stop"), 1)));
    assert_ptr_equal(r.generate.constraint.regex,
                     json_string_value(json_object_get(line, "regex")));
    assert_ptr_equal(r.chat.variables, json_object_get(line, "template_var"));
    assert_int_equal(r.generate.sample.top_k, 3);
    assert_true(r.chat.chat);                    /* which template_var implies */
    assert_false(r.generate.constraint.object);  /* which regex contradicts */
    assert_true(r.generate.sample.temp == 0.5F); /* the command's */
    assert_int_equal(r.generate.max_tokens, 7);
    assert_int_equal(values.request.generate.stop.count, 1); /* unchanged */
    assert_true(values.request.generate.constraint.object);
    cli_request_begin(&given, CLI_BATCH, &values, &r, &keep);
    assert_true(set_member(&given, "choices", json_object_get(line, "stop"), &err));
    assert_true(set_member(&given, "raw", json_true(), &err));
    assert_true(set_member(&given, "system", json_object_get(line, "regex"), &err));
    assert_false(cli_request_end(&given, &values, &err)); /* a system message implies a chat */
    assert_string_equal(err.item, "--system");
    base_keep_free(&keep);
    json_decref(line);
    cli_options_free(&values);
}

/* ---- Types of tensors ---- */

/* A unit with n candidates of these sizes and errors. */
static struct cli_target_unit unit_of(int n, const uint64_t *bytes, const double *error)
{
    struct cli_target_unit u = {.chosen = -1};
    memcpy(u.bytes, bytes, (size_t)n * sizeof *bytes);
    memcpy(u.error, error, (size_t)n * sizeof *error);
    return u;
}
#define UNIT(n, b, e) unit_of(n, (const uint64_t[])b, (const double[])e)
#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static uint64_t chosen(struct cli_target_unit *unit, size_t n, uint64_t limit)
{
    struct base_error err = BASE_ERROR_INIT;
    const uint64_t bytes = cli_target_choose(unit, n, limit, &err);
    uint64_t sum = 0;
    assert_int_equal(err.code, BASE_OK);
    for (size_t i = 0; i < n; i++) sum += unit[i].bytes[unit[i].chosen];
    assert_int_equal(bytes, sum);
    return bytes;
}

/* Each type of the largest unit is tried, so the others are those that a test is about. */
#define LARGE UNIT(1, LIST(1000), LIST(0))

static void bytes_are_spent_where_they_reduce_the_error_most(void **state)
{
    (void)state;
    struct cli_target_unit u[3] = {
        UNIT(3, LIST(10, 20, 40), LIST(8, 5, 0)),   /* 0.3 and 0.25 a byte */
        UNIT(3, LIST(10, 30, 40), LIST(9, 4.5, 3)), /* 0.225 and 0.15 a byte */
        LARGE,
    };
    assert_int_equal(chosen(u, 3, 1020), 1020);
    assert_int_equal(chosen(u, 3, 1029), 1020);
    assert_int_equal(chosen(u, 3, 1030), 1030);
    assert_int_equal(u[0].chosen, 1);
    assert_int_equal(chosen(u, 3, 1050), 1050);
    assert_int_equal(u[0].chosen, 2);
    assert_int_equal(chosen(u, 3, 1079), 1070);
    assert_int_equal(u[1].chosen, 1);
    assert_int_equal(chosen(u, 3, 1080), 1080);
    assert_int_equal(chosen(u, 3, 1019), 1020); /* nothing fits: the smallest */
    assert_int_equal(u[0].chosen + u[1].chosen, 0);
}

static void bytes_that_reduce_no_error_are_not_spent(void **state)
{
    (void)state;
    /* Number 1 is not possible, 2 has a larger error than a smaller one, 3 is between two better
     * ones, 5 is larger than 4, which has no error. */
    struct cli_target_unit u[2] = {UNIT(6, LIST(10, 0, 20, 30, 40, 90), LIST(8, 0, 9, 6, 0, 0)),
                                   LARGE};
    assert_int_equal(chosen(u, 2, UINT64_MAX), 1040);
    assert_int_equal(u[0].chosen, 4);
    struct cli_target_unit others[2] = {UNIT(3, LIST(10, 30, 40), LIST(8, 7.9, 0)),
                                        UNIT(2, LIST(50, 60), LIST(8, 7))};
    assert_int_equal(chosen(others, 2, 85), 70);
    assert_int_equal(others[0].chosen, 0);
    assert_int_equal(chosen(others, 2, 90), 90);
    assert_int_equal(others[0].chosen, 2);
    struct cli_target_unit equal = UNIT(3, LIST(20, 10, 10), LIST(1, 1, 1));
    assert_int_equal(chosen(&equal, 1, UINT64_MAX), 10);
    assert_int_equal(equal.chosen, 1);
}

static void a_small_step_that_fits_follows_a_large_one_that_does_not(void **state)
{
    (void)state;
    struct cli_target_unit u[4] = {
        UNIT(2, LIST(10, 20), LIST(9, 0)),  /* 0.9 a byte */
        UNIT(2, LIST(10, 60), LIST(30, 0)), /* 0.6 */
        UNIT(3, LIST(10, 14, 18), LIST(2, 1, 0.5)),
        UNIT(2, LIST(10, 20), LIST(9, 0)),
    };
    assert_int_equal(chosen(u, 4, 70), 68);
    assert_int_equal(u[0].chosen + u[3].chosen, 2);
    assert_int_equal(u[1].chosen, 0);
    assert_int_equal(u[2].chosen, 2);
    /* The step of the largest unit has the smaller gain a byte, but the steps before it would
     * prevent it. */
    assert_int_equal(chosen(u, 4, 90), 90);
    assert_int_equal(u[0].chosen + u[3].chosen, 0);
    assert_int_equal(u[1].chosen, 1);
}

static void a_target_is_reached_from_below(void **state)
{
    (void)state;
    enum { N = 40 };
    struct cli_target_unit u[N] = {0};
    uint64_t seed = 1, least = 0, most = 0;
    for (int i = 0; i < N; i++) {
        const uint64_t size = 1000 + (seed = seed * 6364136223846793005u + 1) % 9000;
        for (int t = 0; t < 6; t++) {
            u[i].bytes[t] = size * (uint64_t)(t + 2) / 8;
            u[i].error[t] = 1.0 / (double)(1 << (2 * t));
        }
        least += u[i].bytes[0];
        most += u[i].bytes[5];
    }
    for (uint64_t limit = least; limit < most; limit += (most - least) / 97) {
        const uint64_t bytes = chosen(u, N, limit);
        assert_true(bytes <= limit);
        assert_true(bytes + limit / 100 >= limit);
    }
}

/* ---- Hot rows ---- */

static void check_hot(const struct model_hot *hot, uint32_t n_hot, const uint32_t row[3])
{
    assert_int_equal(hot->n, 3);
    assert_int_equal(hot->n_hot, n_hot);
    assert_memory_equal(hot->row, row, 3 * sizeof *row);
}

static void the_rows_with_the_largest_counts_are_hot(void **state)
{
    int32_t count[2][3] = {{5, 9, 0}, {7, 0, 9}};
    struct cli_activations_layer layer[] = {{3, count[0]}, {3, count[1]}};
    const struct cli_activations counted = {.n_layers = 2, .n = 6, .layer = layer};
    struct base_error err = BASE_ERROR_INIT;
    struct cli_activations a;
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/infer-counts-%d.gguf", (int)getpid());
    struct gguf_writer *w = gguf_writer_new(&err);
    assert_true(cli_activations_write(&counted, w, path, &err));
    gguf_writer_free(w);
    assert_true(cli_activations_read(&a, path, 3, &err)); /* the last layer has no counts */
    unlink(path);
    cli_activations_choose(&a, 0, 0.5);
    check_hot(&a.hot[0], 1, (uint32_t[]){1, 0, 2});
    check_hot(&a.hot[1], 2, (uint32_t[]){0, 2, 1});
    assert_int_equal(a.hot[2].n, 0);
    cli_activations_choose(&a, 1, 0.34); /* of the layers from 1 on */
    assert_int_equal(a.hot[0].n, 0);
    check_hot(&a.hot[1], 1, (uint32_t[]){2, 0, 1});
    cli_activations_choose(&a, 0, 0.85); /* of equal counts the first */
    check_hot(&a.hot[0], 3, (uint32_t[]){0, 1, 2});
    check_hot(&a.hot[1], 2, (uint32_t[]){0, 2, 1});
    cli_activations_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_history_has_the_latest_1000_lines),
        cmocka_unit_test(commands_and_texts_of_several_lines_are_not_written),
        cmocka_unit_test(the_least_recently_used_entries_go_until_the_rest_fits),
        cmocka_unit_test(at_most_1024_entries_are_kept),
        cmocka_unit_test(only_old_unlocked_incomplete_files_are_removed),
        cmocka_unit_test(what_others_can_write_to_is_not_read),
        cmocka_unit_test(bytes_of_the_same_version_are_kept),
        cmocka_unit_test(a_file_of_another_size_or_checksum_is_discarded),
        cmocka_unit_test(pauses_double_unless_the_server_says_how_long),
        cmocka_unit_test(the_last_turn_begins_with_the_last_message_of_the_user),
        cmocka_unit_test(a_conversation_has_one_system_message_in_front),
        cmocka_unit_test(a_request_points_into_the_values_that_it_was_set_from),
        cmocka_unit_test(the_rows_with_the_largest_counts_are_hot),
        cmocka_unit_test(bytes_are_spent_where_they_reduce_the_error_most),
        cmocka_unit_test(bytes_that_reduce_no_error_are_not_spent),
        cmocka_unit_test(a_small_step_that_fits_follows_a_large_one_that_does_not),
        cmocka_unit_test(a_target_is_reached_from_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
