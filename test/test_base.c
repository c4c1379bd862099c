/* test/test_base.c: errors, checked sizes, arena, buffer, UTF-8. */
#include "test/support.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/keep.h"
#include "base/list.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/utf8.h"
#include <stdlib.h>
#include <string.h>

static void the_first_error_is_kept(void **state)
{
    (void)state;
    char line[600];
    struct base_error err = BASE_ERROR_INIT;
    assert_false(base_fail_at(&err, BASE_MODEL, "blk.0\n\x1b[31m", 12, "bad %s", "type"));
    assert_false(base_fail(&err, BASE_FAILED, "later"));
    base_error_set_file(&err, "m.gguf");
    base_error_set_file(&err, "other.gguf");
    assert_int_equal(err.code, BASE_MODEL);
    assert_string_equal(base_error_format(&err, line, sizeof line),
                        "m.gguf: blk.0\n\x1b[31m: bad type (at byte 12)");
    assert_false(base_fail(NULL, BASE_FAILED, "no one listens"));
}

static void long_file_names_keep_their_end(void **state)
{
    (void)state;
    char name[1000];
    memset(name, 'a', sizeof name);
    strcpy(name + sizeof name - 6, "/end!");
    struct base_error err = BASE_ERROR_INIT;
    base_fail(&err, BASE_MODEL, "x");
    base_error_set_file(&err, name);
    assert_int_equal(strlen(err.file), sizeof err.file - 1);
    assert_string_equal(err.file + strlen(err.file) - 5, "/end!");
}

static void sums_and_products_of_sizes_do_not_overflow(void **state)
{
    (void)state;
    uint64_t out = 7;
    assert_false(base_add(UINT64_MAX, 1, &out));
    assert_false(base_mul(UINT64_MAX / 2, 3, &out));
    assert_false(base_align_up(UINT64_MAX - 3, 32, &out));
    assert_int_equal(out, 7);
    assert_true(base_align_up(33, 32, &out));
    assert_int_equal(out, 64);
}

static void arena_is_bounded_aligned_and_zeroed(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct base_arena *arena = base_arena_new(4096, &err);
    assert_non_null(arena);
    char *a = base_arena_take(arena, 10, 1, &err);
    char *b = base_arena_take(arena, 64, 64, &err);
    assert_non_null(a);
    assert_int_equal((uintptr_t)b % 64, 0);
    for (int i = 0; i < 64; i++) assert_int_equal(b[i], 0);
    assert_null(base_arena_take(arena, 4096, 1, &err));
    assert_int_equal(err.code, BASE_NO_MEMORY);
    base_arena_free(arena);
    base_arena_free(NULL);
    assert_null(base_arena_new(UINT64_MAX - 10, NULL));
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    struct base_buffer b = BASE_BUFFER_INIT;
    base_buffer_add_json(&b, "a\"\\\n\x01\xff\xc3\xa4\x7f", 9);
    assert_string_equal(b.data, "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa4\\u007f\"");
    base_buffer_clear(&b);
    base_buffer_add_format(&b, "%d-%s", 42, "x");
    assert_string_equal(b.data, "42-x");
    base_buffer_free(&b);
}

static void utf8_every_code_point_round_trips(void **state)
{
    (void)state;
    for (int32_t code = 0; code <= 0x10ffff; code++) {
        char s[4];
        int32_t back;
        size_t n = base_utf8_encode(code, s);
        size_t used = base_utf8_decode(s, n, &back);
        if (code >= 0xd800 && code < 0xe000) { /* surrogates are not characters */
            assert_int_equal(back, -1);
            continue;
        }
        if (used != n || back != code) fail_msg("U+%04X", (unsigned)code);
        for (size_t cut = 1; cut < n; cut++)
            if (base_utf8_open_tail(s, cut) != cut) fail_msg("U+%04X cut at %zu", code, cut);
        if (base_utf8_open_tail(s, n) != 0) fail_msg("U+%04X is whole", (unsigned)code);
    }
}

static void utf8_rejects_what_is_not_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\xc0\x80",         "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf0\x80\x80\x80", "\xff",         "\x80",         "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t code;
        assert_int_equal(base_utf8_decode(bad[i], strlen(bad[i]), &code), 1);
        assert_int_equal(code, -1);
    }
    assert_int_equal(base_utf8_open_tail("a\xff", 2), 0);
    assert_int_equal(base_utf8_open_tail("\xed\xa0", 2), 0);
    assert_int_equal(base_utf8_open_tail("a\xf0\x9f", 3), 2);
}

/* FIPS 180-4 examples, and every length around a block boundary, added in two pieces. */
static void sha256_of_known_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
        int times;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 1},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 1},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", 1},
        {"aaaaaaaaaa", "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", 100000},
    };
    char hex[BASE_SHA256_HEX], other[BASE_SHA256_HEX];
    struct base_sha256 h;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_sha256_init(&h);
        for (int k = 0; k < cases[i].times; k++)
            base_sha256_add(&h, cases[i].text, strlen(cases[i].text));
        base_sha256_hex(&h, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7);
    for (size_t size = 0; size < sizeof bytes; size++) {
        base_sha256_init(&h);
        base_sha256_add(&h, bytes, size);
        base_sha256_hex(&h, hex);
        for (size_t cut = 0; cut <= size; cut += 13) {
            base_sha256_init(&h);
            base_sha256_add(&h, bytes, cut);
            base_sha256_add(&h, bytes + cut, size - cut);
            base_sha256_hex(&h, other);
            assert_string_equal(hex, other);
        }
    }
}

static void list_grows_and_keeps_its_items(void **state)
{
    (void)state;
    uint32_t *item = NULL;
    size_t count = 0, room = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(BASE_LIST_ROOM(item, count, room));
        item[count++] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) assert_int_equal(item[i], i);
    const uint32_t *old = item;
    assert_false(base_list_grow(&item, &room, SIZE_MAX / 2));
    assert_ptr_equal(item, old);
    free(item);
}

static void texts_stay_in_place_while_their_list_grows(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct base_keep keep = {0};
    struct base_texts list = {0};
    for (size_t i = 0; i < 100; i++) {
        const char letter = (char)('!' + i % 90);
        const char *text = base_keep_text(&keep, &letter, 1, &err);
        assert_non_null(text);
        assert_true(base_texts_add(&list, text, &keep, &err));
        const struct base_texts copy = list; /* sees the texts so far */
        assert_ptr_equal(copy.item[i], text);
    }
    assert_int_equal(list.count, 100);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(list.item[i][0], '!' + i % 90);
        assert_int_equal(list.item[i][1], '\0');
    }
    assert_null(base_keep_text(&keep, "", SIZE_MAX, &err));
    assert_int_equal(err.code, BASE_NO_MEMORY);
    base_keep_free(&keep);
    assert_null(keep.latest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(long_file_names_keep_their_end),
        cmocka_unit_test(sums_and_products_of_sizes_do_not_overflow),
        cmocka_unit_test(arena_is_bounded_aligned_and_zeroed),
        cmocka_unit_test(sha256_of_known_texts),
        cmocka_unit_test(list_grows_and_keeps_its_items),
        cmocka_unit_test(json_strings_are_escaped),
        cmocka_unit_test(texts_stay_in_place_while_their_list_grows),
        cmocka_unit_test(utf8_every_code_point_round_trips),
        cmocka_unit_test(utf8_rejects_what_is_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
