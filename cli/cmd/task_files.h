/* cli/cmd/task_files.h: reads multiple-choice tasks in the formats of llama-perplexity.
 *
 * Contains three forms of files, and the selection of N tasks, which equals llama-perplexity's, so
 * that results can be compared; no tokens, no evaluation.
 *
 *     lines    HellaSwag: six lines a task: context, number of the right ending (0 to 3), four
 *              endings. A choice is the context, a space, an ending.
 *     csv      Winogrande: number, sentence with a "_", two choices, the right one (1 or 2). A
 *              choice is the sentence with the choice for "_". Other lines are skipped with a note.
 *     binary   ARC, MMLU, TruthfulQA and others, little-endian: u32 number of tasks, u32 place[]
 *              in the file, then for each task its question, its answers (u32 count, count texts,
 *              i32 label[], 1: right) and as many again that are not used. A text is u32 size and
 *              bytes. A choice is the question, a space, an answer. */
#ifndef CLI_CMD_TASK_FILES_H
#define CLI_CMD_TASK_FILES_H

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum cli_task_form { CLI_TASKS_LINES, CLI_TASKS_CSV, CLI_TASKS_BINARY };

struct cli_task_text { /* bytes of the file */
    const char *data;
    size_t size;
};

struct cli_task_choice {
    struct cli_task_text text;
    bool right;
};

struct cli_task {
    struct cli_task_text before, after; /* the text before and after each choice */
    size_t first, n;                    /* slice of the list's choices */
};

struct cli_task_list { /* all zeros: an empty list */
    enum cli_task_form form;
    struct cli_task *task; /* [n] */
    size_t n, room;
    struct cli_task_choice *choice; /* [n_choices] */
    size_t n_choices, choice_room;
    size_t n_left_out, first_left_out; /* lines of a CSV that are neither empty nor tasks */
};

/* Reads the tasks of a file's bytes, which must outlive the list. Fails with BASE_USAGE for a file
 * of another form or without tasks. The caller frees the list, after a failure too. */
bool cli_task_list_read(struct cli_task_list *list, enum cli_task_form form,
                        const struct base_buffer *file, struct base_error *err);
void cli_task_list_free(struct cli_task_list *list);

/* Keeps n of the tasks, those that llama-perplexity draws, in its order. Keeps all in file order if
 * n is 0 or not below their number. */
bool cli_task_list_select(struct cli_task_list *list, size_t n, struct base_error *err);

/* Appends the text of a task's choice: the text before it, the choice, and with `whole` the text
 * after it. */
void cli_task_add_text(const struct cli_task_list *list, const struct cli_task *task, size_t choice,
                       bool whole, struct base_buffer *out);

#endif
