/* example.c: answers a question: ./example MODEL.gguf "What is the capital of France?"
 *     cc -o example example.c $(pkg-config --cflags --libs infer) */
#include <infer.h>
#include <stdio.h>
#include <string.h>

static bool print(void *user, const char *text, size_t size)
{
    (void)user;
    return fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    struct infer_error err = {INFER_OK, ""};
    struct infer_model *model = NULL;
    struct infer_session *session = NULL;
    int32_t ids[4096];
    char messages[8192];
    ptrdiff_t n = -1;

    if (argc != 3 || strlen(argv[2]) > 8000 || strpbrk(argv[2], "\"\\\n")) {
        fprintf(stderr, "usage: example MODEL.gguf QUESTION (without quotes)\n");
        return INFER_USAGE;
    }
    snprintf(messages, sizeof messages, "[{\"role\":\"user\",\"content\":\"%s\"}]", argv[2]);

    model = infer_model_open(argv[1], 0, &err);
    if (model) session = infer_session_open(model, 0, &err);
    if (session) n = infer_tokenize_chat(model, messages, ids, 4096, &err);
    if (n >= 0 && n <= 4096)
        infer_generate(session, ids, (size_t)n, "temp=0", 64, print, NULL, &err);
    if (err.status) fprintf(stderr, "example: %s\n", err.text);

    infer_session_close(session);
    infer_model_close(model);
    return (int)err.status;
}
