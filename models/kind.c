/* models/kind.c: files that contain something other than a language model. See models/model.h. */
#include "models/model.h"

/* By general.type. */
static const struct kind {
    const char *name, *what;
} types[] = {
    {"adapter", "an adapter (LoRA), which changes another model: give that model's file, and this "
                "one as its adapter"},
    {"imatrix", "an importance matrix, for infer quantize"},
    {"mmproj", "the encoder for images or audio of another model (mmproj): give the model's own "
               "file"},
    {"vocab", "a vocabulary without weights"},
    {"activations", "counts of activations, which divide a model between processor and GPU"},
};

#define DRAFTER "a drafter, which reads the hidden states of another model"

/* By general.architecture. */
static const struct kind architectures[] = {
    {"clip", "an encoder for images or audio (mmproj): give the file of the model that it "
             "belongs to"},
    {"controlvector", "a control vector, which changes another model: give that model's file, and "
                      "this one as its control vector"},
    {"generic.gpu_index", "PowerInfer's division of a model between processor and GPU: give the "
                          "model's file"},
    {"whisper", "a model for recognizing speech"},
    {"wavtokenizer-dec", "the decoder of a model for speech"},
    {"qwen3tts", "the part of a model for speech that writes codes of sounds"},
    {"pockettts", "the part of a model for speech that writes codes of sounds"},
    {"eagle3", DRAFTER ": give that model's file, and this one as its draft"},
    {"dflash", DRAFTER ": give that model's file, and this one as its draft"},
    {"gemma4-assistant", DRAFTER},
    {"sd1", "a model for images"},
    {"sd3", "a model for images"},
    {"sdxl", "a model for images"},
    {"flux", "a model for images"},
    {"lumina2", "a model for images"},
    {"aura", "a model for images"},
    {"hidream", "a model for images"},
    {"qwen_image", "a model for images"},
    {"wan", "a model for videos"},
    {"ltxv", "a model for videos"},
    {"hyvid", "a model for videos"},
    {"cosmos", "a model for videos"},
};

static const char *find(const struct kind *table, size_t n, const struct gguf_file *file,
                        const char *key)
{
    struct gguf_str name = {NULL, 0};
    struct base_error ignored = BASE_ERROR_INIT; /* a wrong kind counts as absent */
    if (!gguf_get_str(file, key, &name, &ignored) || !name.data) return NULL;
    for (size_t i = 0; i < n; i++)
        if (gguf_str_is(name, table[i].name)) return table[i].what;
    return NULL;
}

bool model_kind_check(const struct gguf_file *file, struct base_error *err)
{
    const char *what = find(types, sizeof types / sizeof *types, file, "general.type");
    if (!what)
        what = find(architectures, sizeof architectures / sizeof *architectures, file,
                    "general.architecture");
    if (!what && gguf_kv_find(file, "imatrix.chunk_count")) what = types[1].what;
    if (!what && gguf_tensor_count(file) == 0)
        what =
            gguf_kv_find(file, "tokenizer.ggml.model") ? types[3].what : "metadata without weights";
    return !what || base_fail(err, BASE_MODEL, "no language model: the file is %s", what);
}
