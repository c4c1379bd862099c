/* cli/options_tables.c: the rows: commands and options. Order is the order of --help. */
#include "cli/commands.h"
#include "cli/options.h"

#define RUN        (1u << CLI_RUN)
#define TOKENIZE   (1u << CLI_TOKENIZE)
#define LOGITS     (1u << CLI_LOGITS)
#define PERPLEXITY (1u << CLI_PERPLEXITY)
#define BENCH      (1u << CLI_BENCH)
#define INSPECT    (1u << CLI_INSPECT)
#define QUANTIZE   (1u << CLI_QUANTIZE)
#define CHECK      (1u << CLI_CHECK)
#define EVALUATING (RUN | LOGITS | PERPLEXITY | BENCH)
#define READING    (RUN | TOKENIZE | LOGITS)
#define TEXTUAL    (READING | CHECK)
#define ALL        ((1u << CLI_COMMAND_COUNT) - 1)

#define AT(member) offsetof(struct cli_values, member)
#define CACHE_TYPES "f32|f16|bf16|q8_0|q4_0|q4_1|q5_0|q5_1|iq4_nl"

const struct cli_command cli_command_table[CLI_COMMAND_COUNT] = {
    [CLI_RUN] = {"run", "infer [run] [-m MODEL] -p TEXT [options]",
                 "write one completion of exactly the given text (the default)",
                 "Writes one completion of exactly the given text to standard output and exits.\n"
                 "The text is -p, or a file (-f), or standard input; with -p and piped input it is\n"
                 "the text, then the input. The same command gives the same bytes each time.",
                 0, 0, cli_cmd_run},
    [CLI_TOKENIZE] = {"tokenize", "infer tokenize [-m MODEL] -p TEXT [options]",
                      "print the token ids of a text, or the text of ids",
                      "Prints the token ids of the text (-p, -f or standard input), separated by\n"
                      "spaces, one line per input. Needs the vocabulary only, not the weights.",
                      0, 0, cli_cmd_tokenize},
    [CLI_LOGITS] = {"logits", "infer logits [-m MODEL] --ids \"1 2 3\" [-o FILE] [options]",
                    "write the logits of every position, or the best of the last",
                    "With -o writes little-endian float32 [ids][vocabulary]. Without -o prints the\n"
                    "best tokens of the last position as JSON.",
                    0, 0, cli_cmd_logits},
    [CLI_PERPLEXITY] = {"perplexity", "infer perplexity [-m MODEL] -f FILE [options]",
                        "how well a model predicts a text; KL divergence",
                        "Cuts the text into chunks, evaluates each from an empty context and scores\n"
                        "its second half. Prints the perplexity and its standard error. --save-logits\n"
                        "and --kl compare two models (or two quantizations) position by position.",
                        0, 0, cli_cmd_perplexity},
    [CLI_BENCH] = {"bench", "infer bench [-m MODEL] [options]",
                   "tokens per second beside the limits of this machine",
                   "Measures reading a prompt and generating, through the code that `run` uses.\n"
                   "Beside each figure: its share of the machine's int8 multiply rate and of its\n"
                   "streaming read bandwidth, both measured in the same run.\n"
                   "Of -p, -n, -d and -np with several numbers (-p 128,512) every combination is\n"
                   "measured. With -np N each step evaluates one token of each of N sequences, and\n"
                   "tokens/s counts all of them; each has its own cells after a common beginning\n"
                   "of -d tokens, whose cells they share. Prompts are read one at a time.",
                   0, 0, cli_cmd_bench},
    [CLI_INSPECT] = {"inspect", "infer inspect [MODEL] [options]",
                     "show what a GGUF file holds",
                     "Prints metadata, tokenizer and tensors of a GGUF file; long arrays shortened.",
                     0, 1, cli_cmd_inspect},
    [CLI_QUANTIZE] = {"quantize", "infer quantize IN.gguf OUT.gguf TYPE [options]",
                      "convert a model's weights to another type",
                      "Converts the matrices of a model to TYPE: F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0\n"
                      "Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K and so on, or a mix: Q3_K_M Q4_K_M Q5_K_M (more\n"
                      "bits where they matter most). Norms and other vectors stay F32. A row that is\n"
                      "no multiple of a type's block takes the nearest type that fits, with -v saying\n"
                      "so.",
                      3, 3, cli_cmd_quantize},
    [CLI_CHECK] = {"check", "infer check --json-schema FILE|--grammar FILE|--regex RE < TEXT",
                   "say whether a grammar, schema or expression accepts a text",
                   "Reads a text (-p, -f or standard input) and says by its status whether the\n"
                   "constraint accepts it: 0 accepted, 1 not, with the place. Needs no model. A\n"
                   "keyword of a schema that cannot be enforced is an error (status 2).",
                   0, 0, cli_cmd_check},
    [CLI_VERSION] = {"version", "infer version", "print the version", "Prints the version.", 0, 0,
                     cli_cmd_version},
    [CLI_HELP] = {"help", "infer help [COMMAND]", "this text, or a command's options",
                  "Prints the list of commands, or a command's options.", 0, 1, cli_cmd_help},
};

const char *const cli_group_title[CLI_GROUP_COUNT] = {
    [CLI_GROUP_INPUT] = "Input",     [CLI_GROUP_SAMPLING] = "Generation",
    [CLI_GROUP_CONSTRAINT] = "Constraints", [CLI_GROUP_OUTPUT] = "Output",   [CLI_GROUP_MEASURE] = "Measurement",
    [CLI_GROUP_ENGINE] = "Engine",   [CLI_GROUP_GENERAL] = "General",
};

const struct cli_option cli_option_table[] = {
    /* ---- Input ---- */
    {.name = "model", .alias = {"-m"}, .kind = CLI_TEXT,
     .commands = READING | PERPLEXITY | BENCH | INSPECT, .group = CLI_GROUP_INPUT, .value = "FILE",
     .help = "the model, a GGUF file", .at = AT(model)},
    {.name = "prompt", .alias = {"-p"}, .kind = CLI_TEXT, .commands = TEXTUAL,
     .group = CLI_GROUP_INPUT, .value = "TEXT", .excludes = "file ids",
     .help = "the text; piped input is added to it", .at = AT(prompt)},
    {.name = "file", .alias = {"-f"}, .kind = CLI_TEXT, .commands = TEXTUAL | PERPLEXITY,
     .group = CLI_GROUP_INPUT, .value = "FILE", .excludes = "prompt ids kl",
     .help = "the text from a file (-: standard input)", .at = AT(file)},
    {.name = "ids", .kind = CLI_TEXT, .commands = LOGITS, .group = CLI_GROUP_INPUT,
     .value = "\"1 2 3\"", .excludes = "prompt file no-bos no-special escape",
     .help = "token ids in place of a text", .at = AT(ids)},
    {.name = "ids", .kind = CLI_TEXT, .commands = PERPLEXITY, .group = CLI_GROUP_INPUT,
     .value = "FILE", .excludes = "file kl no-special",
     .help = "token ids from a file (-: standard input)", .at = AT(ids)},
    {.name = "escape", .alias = {"-e"}, .kind = CLI_FLAG, .commands = TEXTUAL,
     .group = CLI_GROUP_INPUT, .help = "\\n, \\t, \\xHH ... in -p and --stop are bytes",
     .at = AT(escape)},
    {.name = "decode", .kind = CLI_FLAG, .commands = TOKENIZE, .group = CLI_GROUP_INPUT,
     .excludes = "no-bos no-special", .help = "the input is ids, the output their text",
     .at = AT(decode)},
    {.name = "lines", .kind = CLI_FLAG, .commands = TOKENIZE, .group = CLI_GROUP_INPUT,
     .help = "each line of the text is an input of its own", .at = AT(lines)},
    {.name = "no-bos", .kind = CLI_FLAG, .commands = READING | PERPLEXITY,
     .group = CLI_GROUP_INPUT, .help = "do not add a beginning-of-text token", .at = AT(no_bos)},
    {.name = "no-special", .kind = CLI_FLAG, .commands = READING | PERPLEXITY,
     .group = CLI_GROUP_INPUT, .help = "names of special tokens in the text are text",
     .at = AT(no_special)},

    /* ---- Generation ---- */
    {.name = "predict", .alias = {"-n", "--n-predict"}, .kind = CLI_INTEGER, .commands = RUN,
     .group = CLI_GROUP_SAMPLING, .value = "N", .standard = "-1", .low = -1, .high = INT32_MAX,
     .help = "tokens at most; -1: to end or full context", .at = AT(n_predict)},
    {.name = "seed", .alias = {"-s"}, .kind = CLI_INTEGER, .commands = RUN,
     .group = CLI_GROUP_SAMPLING, .value = "N", .standard = "0", .low = -1, .high = 0x1p62,
     .help = "of the random numbers; -1: another each time", .at = AT(seed)},
    {.name = "temp", .alias = {"--temperature"}, .kind = CLI_REAL, .commands = RUN,
     .group = CLI_GROUP_SAMPLING, .value = "X", .standard = "0.8", .low = 0, .high = 1000,
     .help = "temperature; 0: always the best token", .at = AT(temp)},
    {.name = "top-k", .kind = CLI_INTEGER, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .value = "N", .standard = "40", .low = 0, .high = INT32_MAX,
     .help = "draw from the N best tokens; 0: off", .at = AT(top_k)},
    {.name = "top-p", .kind = CLI_REAL, .commands = RUN, .group = CLI_GROUP_SAMPLING, .value = "X",
     .standard = "0.95", .low = 0, .high = 1,
     .help = "draw from the best with X together; 1: off", .at = AT(top_p)},
    {.name = "min-p", .kind = CLI_REAL, .commands = RUN, .group = CLI_GROUP_SAMPLING, .value = "X",
     .standard = "0.05", .low = 0, .high = 1,
     .help = "drop what is X times less likely; 0: off", .at = AT(min_p)},
    {.name = "repeat-penalty", .kind = CLI_REAL, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .value = "X", .standard = "1", .low = 0.01, .high = 1000,
     .help = "divides logits of recent tokens; 1: off", .at = AT(repeat_penalty)},
    {.name = "frequency-penalty", .kind = CLI_REAL, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .value = "X", .standard = "0", .low = -1000, .high = 1000,
     .help = "subtracted per recent occurrence", .at = AT(frequency_penalty)},
    {.name = "presence-penalty", .kind = CLI_REAL, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .value = "X", .standard = "0", .low = -1000, .high = 1000,
     .help = "subtracted once when recent", .at = AT(presence_penalty)},
    {.name = "repeat-last-n", .kind = CLI_INTEGER, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .value = "N", .standard = "64", .low = -1, .high = INT32_MAX,
     .help = "how many tokens are recent; -1: all", .at = AT(repeat_last_n)},
    {.name = "stop", .kind = CLI_LIST, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .value = "TEXT", .help = "end before this text; may be given again", .at = AT(stop)},
    {.name = "ignore-eos", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_SAMPLING,
     .help = "never choose an end-of-text token", .at = AT(ignore_eos)},

    /* ---- Constraints ---- */
    {.name = "grammar", .kind = CLI_TEXT, .commands = CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "FILE", .excludes = "json-schema json-object regex choices",
     .help = "a GBNF grammar (a file or the text)", .at = AT(grammar)},
    {.name = "json-schema", .kind = CLI_TEXT, .commands = CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "FILE", .excludes = "grammar json-object regex choices",
     .help = "a JSON schema, draft 2020-12 (a file or the text)", .at = AT(json_schema)},
    {.name = "schema-lenient", .kind = CLI_LIST, .commands = CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "WORD", .help = "a keyword that may go unenforced; repeatable",
     .at = AT(schema_lenient)},
    {.name = "json-object", .kind = CLI_FLAG, .commands = CHECK, .group = CLI_GROUP_CONSTRAINT,
     .excludes = "grammar json-schema regex choices", .help = "any JSON object",
     .at = AT(json_object)},
    {.name = "regex", .kind = CLI_TEXT, .commands = CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "RE", .excludes = "grammar json-schema json-object choices",
     .help = "a regular expression for the whole text", .at = AT(regex)},
    {.name = "choices", .kind = CLI_TEXT, .commands = CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "A,B,C", .excludes = "grammar json-schema json-object regex",
     .help = "one of these texts", .at = AT(choices)},

    /* ---- Measurement ---- */
    {.name = "n-prompt", .alias = {"-p"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "512", .low = 0, .high = INT32_MAX,
     .help = "prompt tokens to read; 0: skip", .at = AT(n_prompt)},
    {.name = "n-gen", .alias = {"-n"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "128", .low = 0, .high = INT32_MAX,
     .help = "tokens to generate; 0: skip", .at = AT(n_gen)},
    {.name = "n-depth", .alias = {"-d"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "0", .low = 0, .high = INT32_MAX,
     .help = "tokens that are in the context before", .at = AT(n_depth)},
    {.name = "n-parallel", .alias = {"-np"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "1", .low = 1, .high = 256,
     .help = "sequences that generate together", .at = AT(n_parallel)},
    {.name = "repetitions", .alias = {"-r"}, .kind = CLI_INTEGER, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N", .standard = "5", .low = 1, .high = 1000,
     .help = "measurements of each; the median is shown", .at = AT(repetitions)},
    {.name = "profile", .kind = CLI_FLAG, .commands = BENCH, .group = CLI_GROUP_MEASURE,
     .help = "after each test, on stderr: where its time goes", .at = AT(profile)},
    {.name = "chunk", .alias = {"-c", "--ctx-size", "--ctx"}, .kind = CLI_INTEGER,
     .commands = PERPLEXITY, .group = CLI_GROUP_MEASURE, .value = "N", .standard = "512", .low = 4,
     .high = INT32_MAX, .help = "tokens per chunk", .at = AT(chunk)},
    {.name = "save-logits", .kind = CLI_TEXT, .commands = PERPLEXITY, .group = CLI_GROUP_MEASURE,
     .value = "FILE", .help = "keep ids and logits for --kl", .at = AT(save_logits)},
    {.name = "kl", .kind = CLI_TEXT, .commands = PERPLEXITY, .group = CLI_GROUP_MEASURE,
     .value = "FILE", .excludes = "file ids chunk no-bos no-special save-logits",
     .help = "compare with logits that were saved", .at = AT(kl)},

    /* ---- Output ---- */
    {.name = "output", .alias = {"-o"}, .kind = CLI_TEXT, .commands = LOGITS,
     .group = CLI_GROUP_OUTPUT, .value = "FILE", .excludes = "top",
     .help = "all logits as float32 (-: standard output)", .at = AT(output)},
    {.name = "top", .kind = CLI_INTEGER, .commands = LOGITS, .group = CLI_GROUP_OUTPUT,
     .value = "N", .standard = "10", .low = 1, .high = 1000,
     .help = "how many of the best tokens to print", .at = AT(top)},
    {.name = "output-type", .kind = CLI_TEXT, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .value = "TYPE", .help = "type of the output matrix", .at = AT(output_type)},
    {.name = "embedding-type", .kind = CLI_TEXT, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .value = "TYPE", .help = "type of the token embeddings", .at = AT(embedding_type)},
    {.name = "metadata", .kind = CLI_FLAG, .commands = INSPECT, .group = CLI_GROUP_OUTPUT,
     .help = "metadata only", .excludes = "tensors", .at = AT(metadata)},
    {.name = "tensors", .kind = CLI_FLAG, .commands = INSPECT, .group = CLI_GROUP_OUTPUT,
     .help = "the tensors only", .at = AT(tensors)},
    {.name = "echo", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .excludes = "json", .help = "write the prompt before the completion", .at = AT(echo)},
    {.name = "special", .kind = CLI_FLAG, .commands = RUN | TOKENIZE, .group = CLI_GROUP_OUTPUT,
     .help = "show special tokens in the output", .at = AT(special)},
    {.name = "json", .kind = CLI_FLAG, .commands = RUN | TOKENIZE | PERPLEXITY | INSPECT,
     .group = CLI_GROUP_OUTPUT, .help = "one JSON object in place of text", .at = AT(json)},
    {.name = "format", .kind = CLI_CHOICE, .commands = BENCH, .group = CLI_GROUP_OUTPUT,
     .value = "FORMAT", .standard = "md", .choices = "md|json|csv|jsonl",
     .help = "md, json, csv or jsonl", .at = AT(format)},
    {.name = "plot", .kind = CLI_FLAG, .commands = BENCH, .group = CLI_GROUP_OUTPUT,
     .help = "bars below the table: shares of the limits", .at = AT(plot)},
    {.name = "svg", .kind = CLI_TEXT, .commands = BENCH, .group = CLI_GROUP_OUTPUT,
     .value = "FILE", .help = "the bars as a picture too (-: standard output)", .at = AT(svg)},

    /* ---- Engine ---- */
    {.name = "ctx-size", .alias = {"-c", "--ctx"}, .kind = CLI_INTEGER, .commands = RUN | LOGITS,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "0", .low = 0, .high = INT32_MAX,
     .help = "context in tokens; 0: as needed", .at = AT(ctx_size)},
    {.name = "batch-size", .alias = {"-b", "--batch"}, .kind = CLI_INTEGER, .commands = EVALUATING,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "512", .low = 1, .high = 1 << 20,
     .help = "prompt tokens evaluated at once", .at = AT(batch_size)},
    {.name = "threads", .alias = {"-t"}, .kind = CLI_INTEGER, .commands = EVALUATING | QUANTIZE,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "0", .low = 0, .high = 1024,
     .help = "worker threads; 0: what this process may use", .at = AT(threads)},
    {.name = "cache-type-k", .alias = {"-ctk"}, .kind = CLI_CHOICE, .commands = EVALUATING,
     .group = CLI_GROUP_ENGINE, .value = "TYPE", .standard = "f16", .choices = CACHE_TYPES,
     .help = "type of cached keys: f32, f16, q8_0, ...", .at = AT(cache_type_k)},
    {.name = "cache-type-v", .alias = {"-ctv"}, .kind = CLI_CHOICE, .commands = EVALUATING,
     .group = CLI_GROUP_ENGINE, .value = "TYPE", .standard = "f16", .choices = CACHE_TYPES,
     .help = "type of cached values", .at = AT(cache_type_v)},
    {.name = "isa", .kind = CLI_CHOICE, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "LEVEL", .choices = "scalar|avx2|avx512|avx512bf16",
     .help = "at most scalar, avx2, avx512 or avx512bf16", .at = AT(isa)},
    {.name = "blas", .kind = CLI_FLAG, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .help = "OpenBLAS for large F32 products; bits may vary", .at = AT(blas)},
    {.name = "pin", .kind = CLI_FLAG, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .help = "bind each thread to a processor", .at = AT(pin)},

    /* ---- General ---- */
    {.name = "verbose", .alias = {"-v"}, .kind = CLI_FLAG, .commands = EVALUATING | QUANTIZE,
     .group = CLI_GROUP_GENERAL, .help = "tell on standard error what is done and how fast",
     .at = AT(verbose)},
    {.name = "help", .alias = {"-h"}, .kind = CLI_FLAG, .commands = ALL,
     .group = CLI_GROUP_GENERAL, .help = "this text", .at = AT(help)},
};
const size_t cli_option_count = sizeof cli_option_table / sizeof cli_option_table[0];
