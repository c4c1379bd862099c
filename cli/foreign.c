/* cli/foreign.c: suggestions for misspelt words, and words of other programs. See cli/options.h. */
#include "cli/options.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_SIZE = 64 };

/* Returns the edit distance (insert, delete, replace, swap of adjacent characters) of texts up to
 * NAME_MAX_SIZE characters. */
static int distance(const char *a, const char *b)
{
    int row[3][NAME_MAX_SIZE + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > NAME_MAX_SIZE || m > NAME_MAX_SIZE) return NAME_MAX_SIZE;
    for (int j = 0; j <= m; j++) row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *upper = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                upper[j - 2] + 1 < best)
                best = upper[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    if (strlen(word + strspn(word, "-/")) <= 3) return NULL;
    int bar = (int)strlen(word) / 3;
    for (size_t i = 0; i < n; i++) {
        int d = distance(word, names[i]);
        if (d >= (int)strlen(names[i]) || d > bar || (nearest && d == bar)) continue;
        nearest = names[i];
        bar = d;
    }
    return nearest;
}

bool cli_has_word(const char *list, const char *word, size_t n)
{
    for (const char *c = list; c && *c; c += strspn(c, " ")) {
        const size_t size = strcspn(c, " ");
        if (size == n && memcmp(c, word, n) == 0) return true;
        c += size;
    }
    return false;
}

const struct cli_foreign *cli_foreign_find(const char *word, size_t n)
{
    for (size_t i = 0; i < cli_foreign_count; i++)
        if (cli_has_word(cli_foreign_table[i].words, word, n)) return &cli_foreign_table[i];
    return NULL;
}

void cli_foreign_say(const struct cli_foreign *f, char *out, size_t room)
{
    const bool both = f->here && f->note;
    snprintf(out, room, "%s%s%s%s%s", f->here ? "here it is " : "", f->here ? f->here : "",
             both ? " (" : "", f->note ? f->note : "", both ? ")" : "");
}

/* ---- Commands ---- */

static const char *nearest_command(const char *word)
{
    const char *names[CLI_COMMAND_COUNT];
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) names[i] = cli_command_table[i]->name;
    return cli_nearest(word, names, CLI_COMMAND_COUNT);
}

bool cli_command_is_near(const char *word)
{
    return cli_foreign_find(word, strlen(word)) || nearest_command(word);
}

bool cli_command_unknown(const char *word, struct base_error *err)
{
    const struct cli_foreign *foreign = cli_foreign_find(word, strlen(word));
    const char *near = nearest_command(word);
    if (foreign) {
        char says[CLI_CLAUSE_SIZE];
        cli_foreign_say(foreign, says, sizeof says);
        return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; %s", says);
    }
    if (near)
        return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; did you mean %s?", near);
    return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; see infer --help");
}
