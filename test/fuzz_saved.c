/* test/fuzz_saved.c: a fuzz target: any bytes as the files that infer writes and reads again (a
 * conversation, tools, saved logits). A conversation is written and read again. */
#include "chat/messages.h"
#include "cli/chat/chat_files.h"
#include "cli/out/saved_logits.h"
#include "test/fuzz.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N_VOCAB = 3 };

static void use_logits(const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    struct cli_saved_reader r = {0};
    struct text_ids ids = TEXT_IDS_INIT;
    const float *rows;
    uint32_t chunk = 0;
    const bool ok = cli_saved_open(&r, path, N_VOCAB, &ids, &chunk, &err);
    fuzz_check(ok, &err);
    if (ok) {
        if (chunk < 4 || ids.count % chunk) abort();
        const uint64_t n = chunk - 1 - chunk / 2;
        for (uint64_t i = 0; i < ids.count / chunk; i++)
            if (!cli_saved_read_rows(&r, n, &rows, &err)) abort();
    }
    cli_saved_close(&r);
    text_ids_free(&ids);
}

static void use_messages(const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer first = BASE_BUFFER_INIT, second = BASE_BUFFER_INIT;
    json_t *list, *again;
    const bool ok = cli_messages_read(path, &list, &err);
    fuzz_check(ok, &err);
    if (!ok) return;
    text_json_write(&first, list, false);
    again = text_json_parse(first.data, first.size, NULL, &err);
    if (!again) abort();
    text_json_write(&second, again, false);
    if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0) abort();
    for (size_t i = 0; i <= json_array_size(list); i++) chat_messages_role(list, i);
    chat_messages_cut(list, chat_messages_last_turn(list));
    json_decref(list);
    json_decref(again);
    base_buffer_free(&first);
    base_buffer_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    char path[64];
    const struct chat_settings chat = {.tools = path};
    json_t *tools;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    use_logits(path);
    use_messages(path);
    fuzz_check(cli_tools_read(&chat, true, &tools, &err), &err);
    json_decref(tools);
    close(fd);
    return 0;
}
