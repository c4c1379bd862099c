/* text/chat/reply_mask.c: separates marks within a call from data that consists of the same
 * letters. See text/chat/reply_formats.h. */
#include "text/chat/reply_formats.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Letters that repeat a token of the same call are data. MASK takes the place of their first byte,
 * '<', while the call is read. */
enum { MASK = 0x7f };

/* Masks the letters s[0..n) in the copy, where they are no token. */
static void mask_all(struct base_buffer *copy, const char *token, const char *s, size_t n)
{
    char *end = copy->data + copy->size, *found = copy->data;
    while ((found = memmem(found, (size_t)(end - found), s, n)) != NULL) {
        if (!token[found - copy->data]) *found = MASK;
        found++;
    }
}

/* Copies the call with such letters masked, for the first texts of tokens. */
static void mask_letters(const char *s, const char *token, size_t size, struct base_buffer *copy)
{
    enum { MAX_TEXTS = 16 };
    const char *done[MAX_TEXTS];
    size_t n_done = 0;
    base_buffer_add(copy, s, size);
    for (size_t i = 0; i < size && n_done < MAX_TEXTS && !copy->failed; i++) {
        const size_t n = (unsigned char)token[i];
        bool known = !n || s[i] != '<' || n > size - i;
        for (size_t k = 0; k < n_done && !known; k++)
            known = (unsigned char)token[done[k] - s] == n && memcmp(done[k], s + i, n) == 0;
        if (known) continue;
        done[n_done++] = s + i;
        mask_all(copy, token, s + i, n);
    }
}

static bool unmask(json_t *value)
{
    const char *key;
    json_t *item;
    bool ok = true;
    for (size_t i = 0; i < json_array_size(value); i++) ok &= unmask(json_array_get(value, i));
    json_object_foreach(value, key, item) ok &= unmask(item);
    const size_t n = json_string_length(value);
    if (!n || !memchr(json_string_value(value), MASK, n)) return ok;
    char *copy = malloc(n);
    if (!copy) return false;
    memcpy(copy, json_string_value(value), n);
    for (size_t i = 0; i < n; i++)
        if (copy[i] == MASK) copy[i] = '<';
    ok = json_string_setn(value, copy, n) == 0;
    free(copy);
    return ok;
}

bool text_reply_read_masked(const char *s, const char *token, size_t size, const json_t *tools,
                            json_t *calls)
{
    BASE_LOCAL_BUFFER copy = BASE_BUFFER_INIT;
    if (memchr(s, MASK, size)) return text_reply_read_calls(s, size, tools, calls);
    mask_letters(s, token, size, &copy);
    const bool ok = !copy.failed && text_reply_read_calls(copy.data, size, tools, calls);
    if (copy.failed || (ok && !unmask(calls))) errno = ENOMEM;
    return ok;
}
