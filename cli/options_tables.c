/* cli/options_tables.c: the rows: commands and options. Order is the order of --help. */
#include "base/cpu.h"
#include "cli/options.h"

#define RUN        (1u << CLI_RUN)
#define CHAT       (1u << CLI_CHAT)
#define BATCH      (1u << CLI_BATCH)
#define TOKENIZE   (1u << CLI_TOKENIZE)
#define LOGITS     (1u << CLI_LOGITS)
#define PERPLEXITY (1u << CLI_PERPLEXITY)
#define BENCH      (1u << CLI_BENCH)
#define INSPECT    (1u << CLI_INSPECT)
#define QUANTIZE   (1u << CLI_QUANTIZE)
#define IMATRIX    (1u << CLI_IMATRIX)
#define SPLIT      (1u << CLI_SPLIT)
#define MERGE      (1u << CLI_MERGE)
#define EDIT       (1u << CLI_EDIT)
#define DIFF       (1u << CLI_DIFF)
#define VERIFY     (1u << CLI_VERIFY)
#define CHECK      (1u << CLI_CHECK)
#define GENERATING (RUN | CHAT | BATCH)
#define MODELS     (1u << CLI_MODELS)
#define DOCTOR     (1u << CLI_DOCTOR)
#define VERSION    (1u << CLI_VERSION)
#define CHUNKING   (PERPLEXITY | IMATRIX)
#define EVALUATING (GENERATING | LOGITS | CHUNKING | BENCH)
#define READING    (RUN | TOKENIZE | LOGITS)
#define TEXTUAL    (READING | CHECK)
#define ALL        ((1u << CLI_COMMAND_COUNT) - 1)

#define AT(member) offsetof(struct cli_values, member)
/* A parameter's range and default from sample/sample.h. */
#define RANGE_TEXT(text) #text
#define RANGE(least, most, usual) .low = least, .high = most, .standard = RANGE_TEXT(usual)
#define RANGE_OF(...) RANGE(__VA_ARGS__)
#define SAMPLER(member) \
    .parameter = #member, .at = AT(sample.member), RANGE_OF(SAMPLE_RANGE_##member)
#define CACHE_TYPES "f32|f16|bf16|q8_0|q4_0|q4_1|q5_0|q5_1|iq4_nl"

const struct cli_command cli_command_table[CLI_COMMAND_COUNT] = {
    [CLI_RUN] = {"run", "infer [run] [-m MODEL] -p TEXT [options]",
                 "write one completion of exactly the given text (the default)",
                 "Writes one completion of exactly the given text to standard output and exits.\n"
                 "The text is what is piped in, then -p or a file (-f), on a line of its own. The\n"
                 "same command gives the same bytes each time.",
                 0, 0},
    [CLI_CHAT] = {"chat", "infer chat [-m MODEL] [options]",
                  "a conversation, line by line, through the model's chat template",
                  "Answers each line of standard input. On a terminal lines can be edited, Ctrl-C\n"
                  "stops the answer, and /help lists what else can be done; a backslash at the end\n"
                  "of a line or lines between two \"\"\" make a message of several lines. From a pipe\n"
                  "the answers alone are written, each ending with a line end, and /commands are\n"
                  "text unless --commands is given. What was read of the conversation stays in the\n"
                  "cache: each turn reads only what is new.",
                  0, 0},
    [CLI_BATCH] = {"batch", "infer batch [-m MODEL] [options] < LINES.jsonl",
                   "answer many texts together: JSON lines in, JSON lines out",
                   "Each line is an object with a `prompt` or `messages`, and options of its own;\n"
                   "what lines have in common is read once. Answers are those of `infer run`.",
                   0, 0},
    [CLI_TOKENIZE] = {"tokenize", "infer tokenize [-m MODEL] -p TEXT [options]",
                      "print the token ids of a text, or the text of ids",
                      "Prints the token ids of the text (-p, -f or standard input), separated by\n"
                      "spaces, one line per input. Needs the vocabulary only, not the weights.",
                      0, 0},
    [CLI_LOGITS] = {"logits", "infer logits [-m MODEL] --ids \"1 2 3\" [-o FILE] [options]",
                    "write the logits of every position, or the best of the last",
                    "With -o writes little-endian float32 [ids][vocabulary]. Without -o prints the\n"
                    "best tokens of the last position as JSON.",
                    0, 0},
    [CLI_PERPLEXITY] = {"perplexity", "infer perplexity [-m MODEL] -f FILE [options]",
                        "how well a model predicts a text; KL divergence",
                        "Cuts the text into chunks, evaluates each from an empty context and scores\n"
                        "its second half. Prints the perplexity and its standard error. --save-logits\n"
                        "and --kl compare two models (or two quantizations) position by position.",
                        0, 0},
    [CLI_BENCH] = {"bench", "infer bench [-m MODEL] [options]",
                   "tokens per second beside the limits of this machine",
                   "Measures reading a prompt and generating, through the code that `run` uses.\n"
                   "Beside each figure: its share of the machine's int8 multiply rate and of its\n"
                   "streaming read bandwidth, both measured in the same run.\n"
                   "Of -p, -n, -d and -np with several numbers (-p 128,512) every combination is\n"
                   "measured. With -np N each step evaluates one token of each of N sequences, and\n"
                   "tokens/s counts all of them; each has its own cells after a common beginning\n"
                   "of -d tokens, whose cells they share. Prompts are read one at a time.",
                   0, 0},
    [CLI_INSPECT] = {"inspect", "infer inspect [MODEL] [options]",
                     "show what a GGUF file holds",
                     "Prints metadata, tokenizer and tensors of a GGUF file; long arrays shortened.",
                     0, 1},
    [CLI_QUANTIZE] = {"quantize", "infer quantize IN.gguf [OUT.gguf] TYPE [options]",
                      "convert a model's weights to another type",
                      "Converts the matrices of a model to TYPE: a mix that gives more bits to what\n"
                      "needs them most, with --pure one type throughout; COPY converts nothing. Norms\n"
                      "and other vectors stay as they are. A row that is no multiple of a type's\n"
                      "block takes the nearest type that fits, with -v saying so. Without OUT.gguf\n"
                      "(--dry-run) only says what the file would be.",
                      2, 3},
    [CLI_IMATRIX] = {"imatrix", "infer imatrix [-m MODEL] -f FILE -o OUT.gguf [options]",
                     "what weights are multiplied by in a text, for quantize",
                     "Evaluates a text in chunks and writes for each matrix of the model the sums of\n"
                     "the squares of its inputs, of experts one by one: the importance matrix of\n"
                     "quantize --imatrix, as GGUF.",
                     0, 0},
    [CLI_CHECK] = {"check", "infer check --json-schema FILE|--grammar FILE|--regex RE < TEXT",
                   "say whether a grammar, schema or expression accepts a text",
                   "Reads a text (-p, -f or standard input) and says by its status whether the\n"
                   "constraint accepts it: 0 accepted, 1 not, with the place. Needs no model. A\n"
                   "keyword of a schema that cannot be enforced is an error (status 2).",
                   0, 0},
    [CLI_MODELS] = {"models", "infer models [FOLDER].. [options]",
                    "list the model files that are there",
                    "Lists the model files of the folders, or of the folder of the default model:\n"
                    "architecture, type, size, weights, trained context. Reads headers only. * marks\n"
                    "the model that is used without -m.",
                    0, 3},
    [CLI_DOCTOR] = {"doctor", "infer doctor [-m MODEL] [options]",
                    "look at this machine: what limits speed here",
                    "Shows what this machine offers, what infer makes of it and why, and measures for\n"
                    "about a second how fast it can be at most. Lines that begin with -> say what\n"
                    "would make it faster. Always ends with status 0.",
                    0, 0},
    [CLI_SPLIT] = {"split", "infer split IN.gguf PREFIX [options]",
                   "cut a model file into parts",
                   "Writes PREFIX-00001-of-0000N.gguf and so on, of at most --max-size or\n"
                   "--max-tensors each; a tensor that is larger has a part of its own. All metadata\n"
                   "is in the first part. Any part's name opens the whole, as here for IN.gguf.",
                   1, 2},
    [CLI_MERGE] = {"merge", "infer merge FIRST-PART.gguf OUT.gguf [options]",
                   "join the parts of a model into one file",
                   "Writes the model of which FIRST-PART.gguf is a part as one file. Parts that are\n"
                   "missing or not of one model are an error.",
                   2, 2},
    [CLI_EDIT] = {"edit", "infer edit MODEL.gguf [-o OUT.gguf] [options]",
                  "change the metadata of a model file",
                  "Sets, deletes and renames keys of the metadata and puts in a chat template;\n"
                  "tensors can be renamed too. Without -o the file is replaced when the new one is\n"
                  "complete. TYPE is int, float, bool or str, as of --override-kv (a number\n"
                  "keeps the key's kind), or u8 to f64; with [] behind it VALUE is a JSON array. A\n"
                  "model that could not be opened afterwards is refused.",
                  1, 1},
    [CLI_DIFF] = {"diff", "infer diff A.gguf B.gguf [options]",
                  "say how two model files differ",
                  "Compares metadata and tensors: keys and tensors that one file lacks (- only in\n"
                  "A, + only in B), other values, types and shapes (!), and for each tensor whose\n"
                  "bytes differ the error of B from A once both are decoded: the root mean square\n"
                  "relative to that of A, and the largest difference. How a file is split does not\n"
                  "count. Status 0: equal; 1: different.",
                  2, 2},
    [CLI_VERIFY] = {"verify", "infer verify MODEL.gguf [options]",
                    "check a model file: structure, values, hashes",
                    "Checks all that opening a model checks, then padding, order, gaps and what\n"
                    "follows the data, and decodes every tensor in search of values that are NaN or\n"
                    "infinite. Status 0: nothing is wrong; 3: something is.",
                    1, 1},
    [CLI_COMPLETION] = {"completion", "infer completion bash|zsh|fish",
                        "print a script that completes commands and options",
                        "Prints a completion script. `make install` puts it in place; without it:\n"
                        "  bash  source <(infer completion bash)\n"
                        "  zsh   source <(infer completion zsh)\n"
                        "  fish  infer completion fish | source",
                        1, 1},
    [CLI_MAN] = {"man", "infer man", "print the manual page (infer man | man -l -)",
                 "Prints the manual page as roff source: infer man | man -l -", 0, 0},
    [CLI_VERSION] = {"version", "infer version [--json]", "print the version",
                     "Prints the version; with --json also what it was made from and with.", 0, 0},
    [CLI_HELP] = {"help", "infer help [COMMAND]", "this text, or a command's options",
                  "Prints the list of commands, or a command's options.", 0, 1},
};

const char *const cli_argument_table[CLI_COMMAND_COUNT][CLI_ARGUMENT_MAX] = {
    [CLI_INSPECT] = {"FILE"},
    [CLI_QUANTIZE] = {"FILE", "FILE", "TYPE"},
    [CLI_MODELS] = {"FOLDER", "FOLDER", "FOLDER"},
    [CLI_SPLIT] = {"FILE", "FILE"},
    [CLI_MERGE] = {"FILE", "FILE"},
    [CLI_EDIT] = {"FILE"},
    [CLI_DIFF] = {"FILE", "FILE"},
    [CLI_VERIFY] = {"FILE"},
    [CLI_COMPLETION] = {"bash|zsh|fish"},
    [CLI_HELP] = {"COMMAND"},
};

const struct cli_status cli_status_table[] = {
    {0, "done"},
    {1, "failed while running; of check: not accepted; of diff: different"},
    {2, "wrong options, or a file that they name cannot be used"},
    {3, "model file missing, damaged or unsupported"},
    {4, "not enough memory"},
    {5, "input longer than the context"},
    {6, "output cut while a constraint was open"},
    {130, "interrupted"},
};
const size_t cli_status_count = sizeof cli_status_table / sizeof cli_status_table[0];

const char *const cli_group_title[CLI_GROUP_COUNT] = {
    [CLI_GROUP_CHAT] = "Chat",
    [CLI_GROUP_INPUT] = "Input",     [CLI_GROUP_SAMPLING] = "Generation",
    [CLI_GROUP_CONSTRAINT] = "Constraints", [CLI_GROUP_OUTPUT] = "Output",   [CLI_GROUP_MEASURE] = "Measurement",
    [CLI_GROUP_ENGINE] = "Engine",   [CLI_GROUP_GENERAL] = "General",
};

const struct cli_option cli_option_table[] = {
    /* ---- Input ---- */
    {.name = "model", .alias = {"-m"}, .kind = CLI_TEXT,
     .commands = READING | CHAT | BATCH | CHUNKING | BENCH | INSPECT | DOCTOR | MODELS,
     .group = CLI_GROUP_INPUT, .value = "FILE", .help = "a GGUF file, or a name from `infer models`", .common = true, .at = AT(model)},
    {.name = "prompt", .alias = {"-p"}, .kind = CLI_TEXT, .commands = TEXTUAL,
     .group = CLI_GROUP_INPUT, .value = "TEXT", .excludes = "file ids",
     .help = "the text; piped input comes before it", .common = true, .at = AT(prompt)},
    {.name = "file", .alias = {"-f"}, .kind = CLI_TEXT, .commands = TEXTUAL | CHUNKING,
     .group = CLI_GROUP_INPUT, .value = "FILE", .excludes = "prompt ids kl",
     .help = "the text from a file; piped input comes before it", .common = true, .at = AT(file)},
    {.name = "file", .alias = {"-f"}, .kind = CLI_TEXT, .commands = BATCH, .group = CLI_GROUP_INPUT,
     .value = "FILE", .help = "lines from a file in place of standard input", .common = true, .at = AT(file)},
    {.name = "each", .kind = CLI_TEXT, .commands = BATCH, .group = CLI_GROUP_INPUT,
     .value = "TEXT", .help = "plain lines; the prompt is TEXT with each for {}", .common = true, .at = AT(each)},
    {.name = "shard", .kind = CLI_TEXT, .commands = BATCH, .group = CLI_GROUP_INPUT,
     .value = "I/N", .help = "part I of N of the lines, from 1", .at = AT(shard)},
    {.name = "ids", .kind = CLI_TEXT, .commands = LOGITS, .group = CLI_GROUP_INPUT,
     .value = "\"1 2 3\"", .excludes = "prompt file no-bos no-special lossy escape",
     .help = "token ids in place of a text", .common = true, .at = AT(ids)},
    {.name = "ids", .kind = CLI_TEXT, .commands = CHUNKING, .group = CLI_GROUP_INPUT,
     .value = "FILE", .excludes = "file kl no-special lossy",
     .help = "token ids from a file (-: standard input)", .common = true, .at = AT(ids)},
    {.name = "escape", .alias = {"-e"}, .kind = CLI_FLAG, .commands = TEXTUAL | CHAT | BATCH,
     .group = CLI_GROUP_INPUT, .help = "\\n, \\t, \\xHH ... in -p and --stop are bytes",
     .at = AT(escape)},
    {.name = "decode", .kind = CLI_FLAG, .commands = TOKENIZE, .group = CLI_GROUP_INPUT,
     .excludes = "no-bos no-special lossy", .help = "the input is ids, the output their text",
     .at = AT(decode)},
    {.name = "lines", .kind = CLI_FLAG, .commands = TOKENIZE | BATCH, .group = CLI_GROUP_INPUT,
     .help = "each line of plain text is an input of its own", .at = AT(lines)},
    {.name = "no-bos", .kind = CLI_FLAG, .commands = READING | CHAT | BATCH | CHUNKING,
     .group = CLI_GROUP_INPUT, .request = true, .help = "do not add a beginning-of-text token", .at = AT(no_bos)},
    {.name = "no-special", .kind = CLI_FLAG, .commands = READING | BATCH | CHUNKING,
     .group = CLI_GROUP_INPUT, .request = true, .help = "names of special tokens in the text are text",
     .at = AT(no_special)},
    {.name = "lossy", .kind = CLI_FLAG, .commands = READING | CHAT | BATCH | CHUNKING,
     .group = CLI_GROUP_INPUT, .request = true, .help = "leave out bytes without a token",
     .at = AT(lossy)},

    /* ---- Chat ---- */
    {.name = "chat", .kind = CLI_FLAG, .commands = RUN | BATCH, .group = CLI_GROUP_CHAT, .request = true,
     .excludes = "no-special echo special", .help = "the text is a question, put as the model expects",
     .common = true, .at = AT(chat)},
    {.name = "system", .alias = {"-sys"}, .kind = CLI_TEXT, .commands = GENERATING, .group = CLI_GROUP_CHAT,
     .value = "TEXT", .needs = "chat", .request = true, .help = "the system message", .common = true, .at = AT(system)},
    {.name = "messages", .kind = CLI_TEXT, .commands = RUN | CHAT, .group = CLI_GROUP_CHAT,
     .value = "FILE", .needs = "chat", .implies = "chat", .help = "JSON list of messages that come before",
     .at = AT(messages)},
    {.name = "tools", .kind = CLI_TEXT, .commands = GENERATING, .group = CLI_GROUP_CHAT, .value = "FILE",
     .needs = "chat", .help = "JSON list of tools that may be called", .at = AT(tools)},
    {.name = "template", .kind = CLI_TEXT, .commands = GENERATING, .group = CLI_GROUP_CHAT,
     .value = "FILE|NAME", .needs = "chat", .help = "a Jinja template other than the model's",
     .at = AT(template)},
    {.name = "template-var", .kind = CLI_LIST, .commands = GENERATING, .group = CLI_GROUP_CHAT,
     .value = "NAME=JSON", .needs = "chat", .help = "a variable of the template; repeatable",
     .at = AT(template_var)},

    {.name = "on-full", .kind = CLI_CHOICE, .commands = CHAT, .group = CLI_GROUP_CHAT,
     .value = "WHAT", .standard = "stop", .choices = "stop|shift|error",
     .help = "full context: stop, shift or error", .at = AT(on_full)},
    {.name = "commands", .kind = CLI_FLAG, .commands = CHAT, .group = CLI_GROUP_CHAT,
     .help = "obey /save and the like from a pipe too", .at = AT(commands)},
    {.name = "no-history", .kind = CLI_FLAG, .commands = CHAT, .group = CLI_GROUP_CHAT,
     .help = "leave no record of what was typed", .at = AT(no_history)},

    /* ---- Generation ---- */
    {.name = "predict", .alias = {"-n", "--n-predict"}, .kind = CLI_INTEGER, .commands = GENERATING,
     .group = CLI_GROUP_SAMPLING, .value = "N", .standard = "-1", .low = -1, .high = INT32_MAX,
     .help = "tokens at most; -1: to end or full context", .common = true, .at = AT(n_predict)},
    {.name = "seed", .alias = {"-s"}, .kind = CLI_INTEGER, .commands = GENERATING,
     .group = CLI_GROUP_SAMPLING, .value = "N", .standard = "0", .low = -1, .high = 0x1p62,
     .help = "of the random numbers; -1: another each time", .common = true, .at = AT(seed)},
    {.name = "temp", .alias = {"--temperature"}, .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "temperature; 0: always the best token",
     .common = true, SAMPLER(temp)},
    {.name = "top-k", .kind = CLI_INTEGER, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "N", .help = "draw from the N best tokens; 0: off",
     SAMPLER(top_k)},
    {.name = "top-p", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "draw from the best with X together; 1: off",
     SAMPLER(top_p)},
    {.name = "min-p", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "drop what is X times less likely; 0: off",
     SAMPLER(min_p)},
    {.name = "repeat-penalty", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "divides logits of recent tokens; 1: off",
     SAMPLER(repeat_penalty)},
    {.name = "frequency-penalty", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "subtracted per recent occurrence",
     SAMPLER(frequency_penalty)},
    {.name = "presence-penalty", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "subtracted once when recent",
     SAMPLER(presence_penalty)},
    {.name = "repeat-last-n", .kind = CLI_INTEGER, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "N", .help = "how many tokens are recent; -1: all",
     SAMPLER(repeat_last_n)},
    {.name = "samplers", .kind = CLI_TEXT, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "A;B;..", .help = "which act, in which order: docs/sampling.md", .parameter = "samplers",
     .at = AT(sample.samplers)},
    {.name = "dynatemp-range", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "temperature +- X by the entropy; 0: off",
     SAMPLER(dynatemp_range)},
    {.name = "dynatemp-exp", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "exponent of the entropy in that",
     SAMPLER(dynatemp_exponent)},
    {.name = "typical", .alias = {"--typical-p"}, .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "draw from the typical with X together; 1: off",
     SAMPLER(typical_p)},
    {.name = "top-n-sigma", .alias = {"--top-nsigma"}, .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "drop what is X deviations below; 0: off",
     SAMPLER(top_n_sigma)},
    {.name = "xtc-probability", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "how often to drop the top choices; 0: off",
     SAMPLER(xtc_probability)},
    {.name = "xtc-threshold", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "what a top choice is; above 0.5: off",
     SAMPLER(xtc_threshold)},
    {.name = "dry-multiplier", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "penalty of continued repetitions; 0: off",
     SAMPLER(dry_multiplier)},
    {.name = "dry-base", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "grows by X with each repeated token",
     SAMPLER(dry_base)},
    {.name = "dry-allowed-length", .kind = CLI_INTEGER, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "N", .help = "repetitions of N tokens are free",
     SAMPLER(dry_allowed_length)},
    {.name = "dry-penalty-last-n", .kind = CLI_INTEGER, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "N", .help = "how many tokens DRY sees; -1: all",
     SAMPLER(dry_last_n)},
    {.name = "dry-sequence-breaker", .kind = CLI_LIST, .commands = GENERATING,
     .group = CLI_GROUP_SAMPLING, .value = "S",
     .help = "text that ends a repetition; repeatable", .parameter = "dry_breaker",
     .at = AT(dry_sequence_breaker)},
    {.name = "mirostat", .kind = CLI_INTEGER, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "N", .help = "steers the surprise: version 1 or 2; 0: off",
     SAMPLER(mirostat)},
    {.name = "mirostat-ent", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "surprise to aim at, in bits",
     SAMPLER(mirostat_tau)},
    {.name = "mirostat-lr", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "how fast it steers",
     SAMPLER(mirostat_eta)},
    {.name = "adaptive-target", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "probability to aim at; below 0: off",
     SAMPLER(adaptive_target)},
    {.name = "adaptive-decay", .kind = CLI_REAL, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "X", .help = "how slowly its past fades",
     SAMPLER(adaptive_decay)},
    {.name = "logit-bias", .alias = {"-l"}, .kind = CLI_LIST, .commands = GENERATING,
     .group = CLI_GROUP_SAMPLING, .value = "T+X",
     .help = "add X to token T (id or text); -inf forbids", .parameter = "bias", .at = AT(logit_bias)},
    {.name = "stop", .kind = CLI_LIST, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .value = "TEXT", .help = "end before this text; may be given again", .common = true, .at = AT(stop)},
    {.name = "ignore-eos", .kind = CLI_FLAG, .commands = GENERATING, .group = CLI_GROUP_SAMPLING,
     .help = "never choose an end-of-text token", .at = AT(ignore_eos)},

    /* ---- Constraints ---- */
    {.name = "grammar", .kind = CLI_TEXT, .commands = GENERATING | CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "FILE", .excludes = "json-schema json-object regex choices",
     .help = "a GBNF grammar (a file or the text)", .at = AT(grammar)},
    {.name = "json-schema", .kind = CLI_TEXT, .commands = GENERATING | CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "FILE", .excludes = "grammar json-object regex choices",
     .help = "a JSON schema, draft 2020-12 (a file or the text)", .common = true, .at = AT(json_schema)},
    {.name = "schema-open", .kind = CLI_FLAG, .commands = GENERATING, .group = CLI_GROUP_CONSTRAINT,
     .needs = "json-schema",
     .help = "let names come that the schema does not know", .at = AT(schema_open)},
    {.name = "schema-lenient", .kind = CLI_LIST, .commands = GENERATING | CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "WORD", .needs = "json-schema",
     .help = "a keyword that may go unenforced; repeatable",
     .at = AT(schema_lenient)},
    {.name = "json-object", .kind = CLI_FLAG, .commands = GENERATING | CHECK, .group = CLI_GROUP_CONSTRAINT,
     .excludes = "grammar json-schema regex choices", .help = "any JSON object",
     .at = AT(json_object)},
    {.name = "regex", .kind = CLI_TEXT, .commands = GENERATING | CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "RE", .excludes = "grammar json-schema json-object choices",
     .help = "a regular expression for the whole text", .at = AT(regex)},
    {.name = "choices", .kind = CLI_TEXT, .commands = GENERATING | CHECK, .group = CLI_GROUP_CONSTRAINT,
     .value = "A,B,C", .excludes = "grammar json-schema json-object regex",
     .help = "one of these texts", .common = true, .at = AT(choices)},

    /* ---- Measurement ---- */
    {.name = "n-prompt", .alias = {"-p"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "512", .low = 0, .high = INT32_MAX,
     .help = "prompt tokens to read; 0: skip", .common = true, .at = AT(n_prompt)},
    {.name = "n-gen", .alias = {"-n"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "128", .low = 0, .high = INT32_MAX,
     .help = "tokens to generate; 0: skip", .common = true, .at = AT(n_gen)},
    {.name = "n-depth", .alias = {"-d"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "0", .low = 0, .high = INT32_MAX,
     .help = "tokens that are in the context before", .common = true, .at = AT(n_depth)},
    {.name = "n-parallel", .alias = {"-np"}, .kind = CLI_INTEGERS, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N,N..", .standard = "1", .low = 1, .high = 256,
     .help = "sequences that generate together", .common = true, .at = AT(n_parallel)},
    {.name = "n-parallel", .alias = {"-np"}, .kind = CLI_INTEGER, .commands = BATCH,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "0", .low = 0, .high = 256,
     .help = "texts made together; 0: by memory, up to 16", .at = AT(n_slots)},
    {.name = "repetitions", .alias = {"-r"}, .kind = CLI_INTEGER, .commands = BENCH,
     .group = CLI_GROUP_MEASURE, .value = "N", .standard = "5", .low = 1, .high = 1000,
     .help = "measurements of each; the median is shown", .common = true, .at = AT(repetitions)},
    {.name = "profile", .kind = CLI_FLAG, .commands = BENCH, .group = CLI_GROUP_MEASURE,
     .help = "after each test, on stderr: where its time goes", .at = AT(profile)},
    {.name = "chunk", .alias = {"-c", "--ctx-size", "--ctx"}, .kind = CLI_INTEGER,
     .commands = CHUNKING, .group = CLI_GROUP_MEASURE, .value = "N", .standard = "512", .low = 4,
     .high = INT32_MAX, .help = "tokens per chunk", .common = true, .at = AT(chunk)},
    {.name = "save-logits", .kind = CLI_TEXT, .commands = PERPLEXITY, .group = CLI_GROUP_MEASURE,
     .value = "FILE", .help = "keep ids and logits for --kl", .writes = true, .common = true, .at = AT(save_logits)},
    {.name = "kl", .kind = CLI_TEXT, .commands = PERPLEXITY, .group = CLI_GROUP_MEASURE,
     .value = "FILE", .excludes = "file ids chunk no-bos no-special lossy save-logits",
     .help = "compare with logits that were saved", .common = true, .at = AT(kl)},

    /* ---- Output ---- */
    {.name = "output", .alias = {"-o"}, .kind = CLI_TEXT, .commands = LOGITS,
     .group = CLI_GROUP_OUTPUT, .value = "FILE", .excludes = "top",
     .help = "all logits as float32 (-: standard output)", .writes = true, .common = true, .at = AT(output)},
    {.name = "output", .alias = {"-o"}, .kind = CLI_TEXT, .commands = IMATRIX,
     .group = CLI_GROUP_OUTPUT, .value = "FILE", .help = "the matrix, a GGUF file (-: standard output)",
     .writes = true, .common = true, .at = AT(output)},
    {.name = "set", .kind = CLI_LIST, .commands = EDIT, .group = CLI_GROUP_INPUT,
     .value = "KEY=TYPE:VALUE", .help = "a key's value; repeatable", .common = true, .at = AT(set)},
    {.name = "delete", .kind = CLI_LIST, .commands = EDIT, .group = CLI_GROUP_INPUT, .value = "KEY",
     .help = "remove a key; repeatable", .common = true, .at = AT(delete)},
    {.name = "rename", .kind = CLI_LIST, .commands = EDIT, .group = CLI_GROUP_INPUT, .value = "OLD=NEW",
     .help = "another name for a key or tensor; repeatable", .common = true, .at = AT(rename)},
    {.name = "template", .kind = CLI_TEXT, .commands = EDIT, .group = CLI_GROUP_INPUT, .value = "FILE",
     .help = "the chat template, a Jinja file", .common = true, .at = AT(template)},
    {.name = "output", .alias = {"-o"}, .kind = CLI_TEXT, .commands = EDIT, .group = CLI_GROUP_OUTPUT,
     .value = "FILE", .help = "a new file; a split model becomes one (-: stdout)", .writes = true,
     .common = true, .at = AT(output)},
    {.name = "process-output", .kind = CLI_FLAG, .commands = IMATRIX, .group = CLI_GROUP_OUTPUT,
     .help = "of the output matrix too, not of layers alone", .at = AT(process_output)},
    {.name = "top", .kind = CLI_INTEGER, .commands = LOGITS, .group = CLI_GROUP_OUTPUT,
     .value = "N", .standard = "10", .low = 1, .high = 1000,
     .help = "how many of the best tokens to print", .common = true, .at = AT(top)},
    {.name = "output-type", .kind = CLI_TEXT, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .value = "TYPE", .help = "type of the output matrix", .at = AT(output_type)},
    {.name = "embedding-type", .kind = CLI_TEXT, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .value = "TYPE", .help = "type of the token embeddings", .at = AT(embedding_type)},
    {.name = "tensor-type", .kind = CLI_LIST, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .value = "RE=TYPE", .help = "type of tensors whose name RE matches; repeatable", .common = true,
     .at = AT(tensor_type)},
    {.name = "imatrix", .kind = CLI_TEXT, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .value = "FILE", .help = "importance matrix (of `infer imatrix`)", .common = true,
     .at = AT(imatrix)},
    {.name = "pure", .kind = CLI_FLAG, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .help = "one type for all matrices: no mix", .common = true, .at = AT(pure)},
    {.name = "keep-split", .kind = CLI_FLAG, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .help = "the parts of IN.gguf; OUT.gguf is their prefix", .at = AT(keep_split)},
    {.name = "dry-run", .kind = CLI_FLAG, .commands = QUANTIZE, .group = CLI_GROUP_OUTPUT,
     .help = "write nothing, print types and sizes", .common = true, .at = AT(dry_run)},
    {.name = "max-size", .alias = {"--split-max-size"}, .kind = CLI_TEXT, .commands = SPLIT,
     .group = CLI_GROUP_OUTPUT, .value = "N(M|G)", .excludes = "max-tensors",
     .help = "bytes of tensors in a part: 500M, 2G", .common = true, .at = AT(max_size)},
    {.name = "max-tensors", .alias = {"--split-max-tensors"}, .kind = CLI_INTEGER, .commands = SPLIT,
     .group = CLI_GROUP_OUTPUT, .value = "N", .standard = "128", .low = 1, .high = INT32_MAX,
     .help = "tensors in a part", .common = true, .at = AT(max_tensors)},
    {.name = "no-tensor-first-split", .kind = CLI_FLAG, .commands = SPLIT, .group = CLI_GROUP_OUTPUT,
     .help = "metadata alone in the first part", .at = AT(no_tensor_first)},
    {.name = "dry-run", .kind = CLI_FLAG, .commands = SPLIT, .group = CLI_GROUP_OUTPUT,
     .help = "write nothing, print what parts would be", .common = true, .at = AT(dry_run)},
    {.name = "metadata", .kind = CLI_FLAG, .commands = INSPECT, .group = CLI_GROUP_OUTPUT,
     .help = "metadata only", .excludes = "tensors", .at = AT(metadata)},
    {.name = "tensors", .kind = CLI_FLAG, .commands = INSPECT, .group = CLI_GROUP_OUTPUT,
     .help = "the tensors only", .at = AT(tensors)},
    {.name = "reasoning", .kind = CLI_CHOICE, .commands = GENERATING, .group = CLI_GROUP_CHAT,
     .value = "WHAT", .choices = "show|hide|only", .needs = "chat",
     .help = "show, hide [as run does] or only: thoughts", .at = AT(reasoning)},
    {.name = "reasoning-budget", .kind = CLI_INTEGER, .commands = GENERATING, .group = CLI_GROUP_CHAT, .request = true,
     .value = "N", .standard = "-1", .low = -1, .high = INT32_MAX, .needs = "chat",
     .help = "tokens of a thought at most; -1: no limit", .at = AT(reasoning_budget)},
    {.name = "unordered", .kind = CLI_FLAG, .commands = BATCH, .group = CLI_GROUP_OUTPUT,
     .help = "answers as they come, not as the lines stand", .at = AT(unordered)},
    {.name = "resume", .kind = CLI_TEXT, .commands = BATCH, .group = CLI_GROUP_OUTPUT,
     .value = "FILE", .help = "append to FILE what it lacks", .writes = true, .common = true, .at = AT(resume)},
    {.name = "show-prompt", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .excludes = "echo", .help = "print the text that would be read, and its ids",
     .at = AT(show_prompt)},
    {.name = "echo", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .excludes = "json jsonl", .help = "write the prompt before the completion", .at = AT(echo)},
    {.name = "newline", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .excludes = "json jsonl show-prompt plan", .help = "end the text with a line end, also in a pipe",
     .at = AT(newline)},
    {.name = "special", .kind = CLI_FLAG, .commands = RUN | BATCH | TOKENIZE, .group = CLI_GROUP_OUTPUT, .request = true,
     .help = "show special tokens in the output", .at = AT(special)},
    {.name = "json", .kind = CLI_FLAG,
     .commands = GENERATING | TOKENIZE | PERPLEXITY | INSPECT | MODELS | DOCTOR | DIFF | VERIFY |
                 VERSION,
     .group = CLI_GROUP_OUTPUT, .help = "one JSON object in place of text", .common = true, .at = AT(json)},
    {.name = "jsonl", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .excludes = "json", .help = "a JSON line per token, the object of --json last",
     .at = AT(jsonl)},
    {.name = "token-ids", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .needs = "json jsonl", .help = "ids of the prompt in the JSON too", .at = AT(token_ids)},
    {.name = "logprobs", .kind = CLI_INTEGER, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .value = "K", .standard = "-1", .low = -1, .high = 1000,
     .needs = "json jsonl", .help = "per token its logprob and the K best; -1: off", .at = AT(logprobs)},
    {.name = "hash", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .needs = "json jsonl", .help = "the model file's SHA-256 in the JSON", .at = AT(hash)},
    {.name = "hash", .kind = CLI_FLAG, .commands = VERIFY, .group = CLI_GROUP_OUTPUT,
     .help = "SHA-256 of each file, each tensor and all data", .common = true, .at = AT(hash)},
    {.name = "all", .kind = CLI_FLAG, .commands = DIFF, .group = CLI_GROUP_OUTPUT,
     .help = "tensors with equal bytes too, in text", .common = true, .at = AT(all)},
    {.name = "format", .kind = CLI_CHOICE, .commands = DIFF | VERIFY, .group = CLI_GROUP_OUTPUT,
     .value = "FORMAT", .standard = "text", .choices = "text|json",
     .help = "text, or json as --json", .common = true, .at = AT(format)},
    {.name = "plan", .kind = CLI_FLAG, .commands = RUN, .group = CLI_GROUP_OUTPUT,
     .excludes = "jsonl echo hash token-ids", .help = "run nothing, say what memory it would need",
     .at = AT(plan)},
    {.name = "format", .kind = CLI_CHOICE, .commands = BENCH, .group = CLI_GROUP_OUTPUT,
     .value = "FORMAT", .standard = "md", .choices = "md|json|csv|jsonl",
     .help = "md, json, csv or jsonl", .common = true, .at = AT(format)},
    {.name = "plot", .kind = CLI_FLAG, .commands = BENCH, .group = CLI_GROUP_OUTPUT,
     .help = "bars below the table: shares of the limits", .at = AT(plot)},
    {.name = "svg", .kind = CLI_TEXT, .commands = BENCH, .group = CLI_GROUP_OUTPUT,
     .value = "FILE", .help = "the bars as a picture too (-: in place of text)", .writes = true, .at = AT(svg)},

    /* ---- Engine ---- */
    {.name = "ctx-size", .alias = {"-c", "--ctx"}, .kind = CLI_INTEGER, .commands = GENERATING | LOGITS,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "0", .low = 0, .high = INT32_MAX,
     .help = "context in tokens; 0: as needed", .at = AT(ctx_size)},
    {.name = "batch-size", .alias = {"-b", "--batch"}, .kind = CLI_INTEGER, .commands = EVALUATING,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "512", .low = 1, .high = 1 << 20,
     .help = "prompt tokens evaluated at once", .at = AT(batch_size)},
    {.name = "threads", .alias = {"-t"}, .kind = CLI_INTEGER, .commands = EVALUATING | QUANTIZE | DOCTOR | DIFF | VERIFY,
     .group = CLI_GROUP_ENGINE, .value = "N", .standard = "0", .low = 0, .high = 1024,
     .help = "worker threads; 0: what this process may use", .common = true, .at = AT(threads)},
    {.name = "cache-type-k", .alias = {"-ctk"}, .kind = CLI_CHOICE, .commands = EVALUATING,
     .group = CLI_GROUP_ENGINE, .value = "TYPE", .standard = "f16", .choices = CACHE_TYPES,
     .help = "type of cached keys: f32, f16, q8_0, ...", .at = AT(cache_type_k)},
    {.name = "cache-type-v", .alias = {"-ctv"}, .kind = CLI_CHOICE, .commands = EVALUATING,
     .group = CLI_GROUP_ENGINE, .value = "TYPE", .standard = "f16", .choices = CACHE_TYPES,
     .help = "type of cached values", .at = AT(cache_type_v)},
    {.name = "isa", .kind = CLI_CHOICE, .commands = EVALUATING | DOCTOR, .group = CLI_GROUP_ENGINE,
     .value = "LEVEL", .choices = CPU_LEVEL_NAMES,
     .help = "instructions of at most this level; see version", .at = AT(isa)},
    {.name = "blas", .kind = CLI_FLAG, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .help = "OpenBLAS for large F32 products; bits may vary", .at = AT(blas)},
    {.name = "override-kv", .kind = CLI_LIST, .commands = EVALUATING | TOKENIZE, .group = CLI_GROUP_ENGINE,
     .value = "KEY=TYPE:V", .help = "metadata; int, float, bool, str; repeatable",
     .at = AT(override_kv)},
    {.name = "rope-scaling", .kind = CLI_CHOICE, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "WHAT", .choices = "none|linear|yarn", .help = "how positions are stretched: none, linear, yarn",
     .at = AT(rope_scaling)},
    {.name = "rope-scale", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "0", .low = 0, .high = 1e6, .excludes = "rope-freq-scale",
     .help = "for a context X times as long; 0: the file's", .at = AT(rope_scale)},
    {.name = "rope-freq-scale", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "0", .low = 0, .high = 1e6, .excludes = "rope-scale",
     .help = "the same as 1/X; 0: the file's", .at = AT(rope_freq_scale)},
    {.name = "rope-freq-base", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "0", .low = 0, .high = 1e30,
     .help = "base of the frequencies; 0: the file's", .at = AT(rope_freq_base)},
    {.name = "yarn-orig-ctx", .kind = CLI_INTEGER, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "N", .standard = "0", .low = 0, .high = 1 << 28,
     .help = "context before stretching; 0: the file's", .at = AT(yarn_orig_ctx)},
    {.name = "yarn-ext-factor", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "-1", .low = -1, .high = 1e6,
     .help = "share of extrapolation; -1: 1 with yarn", .at = AT(yarn_ext_factor)},
    {.name = "yarn-attn-factor", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "-1", .low = -1, .high = 1e6,
     .help = "magnitude where that is 0; -1: the file's", .at = AT(yarn_attn_factor)},
    {.name = "yarn-beta-fast", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "-1", .low = -1, .high = 1e6,
     .help = "more turns are not stretched; -1: file's", .at = AT(yarn_beta_fast)},
    {.name = "yarn-beta-slow", .kind = CLI_REAL, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .value = "X", .standard = "-1", .low = -1, .high = 1e6,
     .help = "fewer turns are all stretched; -1: file's", .at = AT(yarn_beta_slow)},
    {.name = "no-sandbox", .kind = CLI_FLAG,
     .commands = EVALUATING | TOKENIZE | INSPECT | QUANTIZE | SPLIT | MERGE | EDIT | DIFF | VERIFY | CHECK, .group = CLI_GROUP_ENGINE,
     .help = "keep all rights (for profilers)", .at = AT(no_sandbox)},
    {.name = "pin", .kind = CLI_FLAG, .commands = EVALUATING, .group = CLI_GROUP_ENGINE,
     .help = "bind each thread to a processor", .at = AT(pin)},

    /* ---- General ---- */
    {.name = "verbose", .alias = {"-v"}, .kind = CLI_FLAG, .commands = EVALUATING | QUANTIZE,
     .group = CLI_GROUP_GENERAL, .help = "tell on standard error what is done and how fast",
     .common = true, .at = AT(verbose)},
    {.name = "help", .alias = {"-h"}, .kind = CLI_FLAG, .commands = ALL,
     .group = CLI_GROUP_GENERAL, .help = "-h: the main options; --help: all of them", .common = true, .at = AT(help)},
    {.name = "version", .kind = CLI_FLAG, .commands = ALL, .group = CLI_GROUP_GENERAL,
     .help = "print the version", .at = AT(version)},
};
const size_t cli_option_count = sizeof cli_option_table / sizeof cli_option_table[0];
