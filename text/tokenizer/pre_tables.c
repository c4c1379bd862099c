/* text/tokenizer/pre_tables.c: the pre-tokenizers by name: patterns and flags, which are facts of
 * the formats.
 *
 * Sources: the tokenizer.json of each model family if its pattern is published, otherwise the
 * pattern that llama.cpp's llama-vocab.cpp has for the name. Patterns are in PCRE2 syntax with two
 * conventions: \s and \S mean Unicode White_Space exactly (text/tokenizer/pre.c rewrites them), and
 * (?i:) contractions are written out in ASCII. The names are those of the GGUF key
 * tokenizer.ggml.pre. */
#include "text/tokenizer/pre.h"

/* English contractions in either case, and GPT-2's own in lower case only. */
#define CONTRACTION       "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define LOWER_CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
/* The common end: line breaks, then spaces; the last space belongs to the following word. */
#define SPACES        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORD          "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SYMBOLS       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define SYMBOLS_SLASH " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

#define GPT2   LOWER_CONTRACTION "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 CONTRACTION "|" WORD "|\\p{N}{1,3}|" SYMBOLS "|" SPACES
#define QWEN2  CONTRACTION "|" WORD "|\\p{N}|" SYMBOLS "|" SPACES

/* Words that end where an upper-case letter follows a lower-case one: capitals, then small
 * letters. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(tail)                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|"                                          \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" tail

/* Script=Han by ranges, because \p{Han} means Script_Extensions in newer PCRE2. */
#define HAN                                                                                        \
    "\\x{2e80}-\\x{2e99}\\x{2e9b}-\\x{2ef3}\\x{2f00}-\\x{2fd5}\\x{3005}\\x{3007}"                  \
    "\\x{3021}-\\x{3029}\\x{3038}-\\x{303b}\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}"                 \
    "\\x{f900}-\\x{fa6d}\\x{fa70}-\\x{fad9}\\x{16fe2}-\\x{16fe3}\\x{16ff0}-\\x{16ff1}"             \
    "\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2b739}\\x{2b740}-\\x{2b81d}\\x{2b820}-\\x{2cea1}"         \
    "\\x{2ceb0}-\\x{2ebe0}\\x{2ebf0}-\\x{2ee5d}\\x{2f800}-\\x{2fa1d}\\x{30000}-\\x{3134a}"         \
    "\\x{31350}-\\x{323af}"
/* UPPER and LOWER without Han: the complement of every other category and of Han. */
#define KIMI_UPPER "[^\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" HAN "]"
#define KIMI_LOWER "[^\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" HAN "]"
#define KIMI_CASED                                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION "?|"                        \
    "[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "+" KIMI_LOWER "*" CONTRACTION "?"

#define ASCII_PUNCTUATION "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK_MAIN                                                                              \
    ASCII_PUNCTUATION "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"                     \
                      " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define CJK_KANA   "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define CJK_HANGUL "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define NO_SENTENCE_MARK                                                                           \
    " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

/* The cased letters of DeepSeek-LLM's first word pattern. */
#define CASED_LETTERS                                                                              \
    "A-Za-z"                                                                                       \
    "\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"                       \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}"         \
    "\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"                  \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}"                       \
    "\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"                 \
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"                 \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}"        \
    "\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}"         \
    "\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}"                 \
    "\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}"                  \
    "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}"                   \
    "\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}"        \
    "\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}"         \
    "\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"                  \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}"                 \
    "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"               \
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"         \
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

#define REGEX(p)                                                                                   \
    {                                                                                              \
        TEXT_STEP_REGEX, p                                                                         \
    }
#define END                                                                                        \
    {                                                                                              \
        TEXT_STEP_END, NULL                                                                        \
    }

static const struct text_step gpt2[] = {REGEX(GPT2), END};
static const struct text_step llama3[] = {REGEX(LLAMA3), END};
static const struct text_step qwen2[] = {REGEX(QWEN2), END};
static const struct text_step single_digits[] = {REGEX("\\p{N}"), REGEX(GPT2), END};
/* "\s*[\r\n]+": the look-behinds make it linear if a run of white space is cut into pieces. */
static const struct text_step jais2[] = {
    REGEX(CONTRACTION
          "|" WORD "|\\p{N}{1,3}|" SYMBOLS "|(?:(?<!\\s)|(?<=[\\r\\n]))\\s*[\\r\\n]+|"
          "\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|"
          "\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"),
    END};
static const struct text_step deepseek_llm[] = {
    REGEX("[\\r\\n]"), REGEX("\\s?[" CASED_LETTERS "]+"),
    REGEX("\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}"
          "\\x{3000}-\\x{3002}]+"),
    /* "\s+$": only the start of a run can match, which the look-behind uses to make it linear. */
    REGEX("(?<!\\s)\\s+\\z"), REGEX(CJK_HANGUL), REGEX("\\p{N}+"), END};
static const struct text_step deepseek_coder[] = {REGEX("[\\r\\n]"),    REGEX("\\s?\\p{L}+"),
                                                  REGEX("\\s?\\p{P}+"), REGEX(CJK_HANGUL),
                                                  REGEX("\\p{N}"),      END};
static const struct text_step deepseek3[] = {REGEX("\\p{N}{1,3}"), REGEX(CJK_KANA),
                                             REGEX(DEEPSEEK_MAIN), END};
static const struct text_step youtu[] = {
    REGEX("[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|"
          "[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}\\x{2014}\\x{ff1a}\\x{ff1b}"
          "\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|"
          "[\\x{3105}-\\x{312f}]+|" CJK_KANA),
    REGEX(CASED(CONTRACTION "?") "|\\p{N}|" SYMBOLS_SLASH "|" SPACES), END};
static const struct text_step falcon[] = {REGEX("[\\p{P}\\$\\+<=>\\^~\\|`]+"), REGEX(GPT2),
                                          REGEX("[0-9][0-9][0-9]"), END};
static const struct text_step by_default[] = {REGEX("[\\p{P}\\$\\+<=>\\^~\\|]+"), REGEX(GPT2),
                                              REGEX("\\p{N}+"), REGEX("[0-9][0-9][0-9]"), END};
static const struct text_step qwen35[] = {REGEX(CONTRACTION
                                                "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                                                " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES),
                                          END};
static const struct text_step poro[] = {REGEX(NO_SENTENCE_MARK), END};
static const struct text_step viking[] = {REGEX(NO_SENTENCE_MARK), REGEX("\\p{N}"), END};
static const struct text_step tekken[] = {REGEX(CASED("") "|\\p{N}|" SYMBOLS_SLASH "|" SPACES),
                                          END};
static const struct text_step gpt4o[] = {
    REGEX(CASED(CONTRACTION "?") "|\\p{N}{1,3}|" SYMBOLS_SLASH "|" SPACES), END};
static const struct text_step tiny_aya[] = {
    {TEXT_STEP_DIGITS_WORD, NULL},
    REGEX(CASED(CONTRACTION "?") "|\\p{N}{1,3}|" SYMBOLS_SLASH "|" SPACES),
    END};
static const struct text_step chameleon[] = {REGEX("<sentinel:[0-9]+>"),
                                             REGEX("(?:IMGIMG)(?:[A-I]{1,4})Z"),
                                             REGEX("[\\t\\n]|    |  "),
                                             REGEX("\\p{N}"),
                                             REGEX("[\\p{P}!-/:-@\\[-`{-~]"),
                                             REGEX(GPT2),
                                             END};
static const struct text_step kimi_k2[] = {
    REGEX("[" HAN "]+|" KIMI_CASED "|\\p{N}{1,3}|" SYMBOLS "|" SPACES), END};
static const struct text_step superbpe[] = {REGEX("\\p{N}+"), {TEXT_STEP_DIGITS_AHEAD, NULL}, END};
static const struct text_step bailingmoe[] = {
    REGEX("'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" WORD "|\\p{N}|" SYMBOLS
          "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
    END};
static const struct text_step seed_coder[] = {
    REGEX(CONTRACTION "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES), END};
static const struct text_step afmoe[] = {
    {TEXT_STEP_DIGITS_LED, NULL},
    REGEX("[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{8c48}-\\x{faff}\\x{3040}-\\x{309f}"
          "\\x{30a0}-\\x{30ff}\\x{ff65}-\\x{ff9f}\\x{2f00}-\\x{2fdf}\\x{e40}-\\x{e7f}"
          "\\x{e80}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}\\x{aa60}-\\x{aa7f}"
          "\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}\\x{1100}-\\x{11ff}]+"),
    REGEX(DEEPSEEK_MAIN),
    END};
static const struct text_step laguna[] = {REGEX("[^\\n]+|\\n+"), REGEX(QWEN2), END};
/* \p{L}\p{M}*(?: \p{L}\p{M}*)* repeated, in a form without backtracking. */
static const struct text_step exaone_moe[] = {
    REGEX(CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}[\\p{L}\\p{M}]*+(?: \\p{L}[\\p{L}\\p{M}]*+)*+|"
                      "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
    END};
static const struct text_step lines[] = {REGEX("[^\\n]+|\\n+"), END};
static const struct text_step minicpm5[] = {
    REGEX("\\p{N}{1,3}"), REGEX(CONTRACTION "|" WORD "|\\p{N}+|" SYMBOLS "|" SPACES), END};
static const struct text_step whitespace[] = {REGEX("\\S+"), END};

enum {
    LLAMA3_FLAGS = TEXT_PRE_IGNORE_MERGES | TEXT_PRE_ADD_BOS,
    GEMMA4_FLAGS =
        TEXT_PRE_RAW | TEXT_PRE_ESCAPE_SPACES | TEXT_PRE_FORCE_BOS | TEXT_PRE_WHOLE_NEWLINES
};

static const struct text_pre names[] = {
    {"a.x-4.0", gpt2, 0},
    {"afmoe", afmoe, 0},
    {"bailingmoe", bailingmoe, 0},
    {"bailingmoe2", bailingmoe, 0},
    {"bloom", poro, 0},
    {"chameleon", chameleon, TEXT_PRE_ADD_BOS},
    {"chatglm-bpe", llama3, TEXT_PRE_NO_BOS},
    {"codeshell", single_digits, 0},
    {"cohere2moe", tiny_aya, 0},
    {"command-r", single_digits, 0},
    {"dbrx", llama3, 0},
    {"deepseek-coder", deepseek_coder, 0},
    {"deepseek-llm", deepseek_llm, 0},
    {"deepseek-r1-qwen", qwen2, 0},
    {"deepseek-v3", deepseek3, 0},
    {"default", by_default, 0},
    {"exaone", single_digits, 0},
    {"exaone-moe", exaone_moe, 0},
    {"exaone4", gpt2, 0},
    {"f2llmv2", qwen2, 0},
    {"falcon", falcon, 0},
    {"falcon-h1", llama3, LLAMA3_FLAGS},
    {"falcon3", llama3, LLAMA3_FLAGS},
    {"gemma4", lines, GEMMA4_FLAGS},
    {"gigachat", gpt2, 0},
    {"glm4", llama3, TEXT_PRE_NO_BOS},
    {"gpt-2", gpt2, 0},
    {"gpt-4o", gpt4o, 0},
    {"gpt3-finnish", poro, 0},
    {"granite-docling", gpt2, 0},
    {"granite-embed-multi-311m", lines, GEMMA4_FLAGS},
    {"granite-embed-multi-97m", gpt4o, TEXT_PRE_IGNORE_MERGES},
    {"grok-2", qwen2, 0},
    {"hunyuan", qwen2, 0},
    {"hunyuan-dense", deepseek3, 0},
    {"jais", gpt2, 0},
    {"jais-2", jais2, 0},
    {"jina-de", gpt2, 0},
    {"jina-es", gpt2, 0},
    {"jina-v1-en", gpt2, 0},
    {"jina-v2-code", gpt2, 0},
    {"jina-v2-de", gpt2, 0},
    {"jina-v2-es", gpt2, 0},
    {"jina-v5-nano", llama3, LLAMA3_FLAGS},
    {"joyai-llm", deepseek3, 0},
    {"kanana2", gpt4o, 0},
    {"kimi-k2", kimi_k2, 0},
    {"kormo", qwen2, 0},
    {"laguna", laguna, 0},
    {"lfm2", llama3, LLAMA3_FLAGS},
    {"llada-moe", bailingmoe, 0},
    {"llama-bpe", llama3, LLAMA3_FLAGS},
    {"llama-v3", llama3, LLAMA3_FLAGS},
    {"llama3", llama3, LLAMA3_FLAGS},
    {"llama4", gpt4o, 0},
    {"megrez", qwen2, 0},
    {"mellum", gpt2, 0},
    {"mellum2", single_digits, 0},
    {"midm-2.0", llama3, LLAMA3_FLAGS},
    {"minerva-7b", single_digits, 0},
    {"minicpm5", minicpm5, TEXT_PRE_IGNORE_MERGES},
    {"minimax-m2", gpt4o, 0},
    {"modern-bert", gpt2, 0},
    {"mpt", gpt2, 0},
    {"olmo", gpt2, 0},
    {"phi-2", gpt2, 0},
    {"pixtral", llama3, LLAMA3_FLAGS},
    {"poro-chat", poro, 0},
    {"qwen2", qwen2, 0},
    {"qwen35", qwen35, 0},
    {"refact", single_digits, 0},
    {"roberta-bpe", gpt2, 0},
    {"sarvam-moe", lines, TEXT_PRE_RAW | TEXT_PRE_ESCAPE_SPACES},
    {"seed-coder", seed_coder, 0},
    {"smaug-bpe", llama3, 0},
    {"smollm", single_digits, 0},
    {"solar-open", qwen2, 0},
    {"stablelm2", qwen2, 0},
    {"starcoder", single_digits, 0},
    {"superbpe", superbpe, 0},
    {"talkie", gpt4o, 0},
    {"tekken", tekken, LLAMA3_FLAGS},
    {"tiny_aya", tiny_aya, 0},
    {"trillion", gpt2, 0},
    {"viking", viking, 0},
    {"whitespace", whitespace, TEXT_PRE_RAW},
    {"youtu", youtu, TEXT_PRE_IGNORE_MERGES},
};

const struct text_pre *text_pre_at(size_t index)
{
    return index < sizeof names / sizeof names[0] ? &names[index] : NULL;
}

const struct text_pre *text_pre_find(struct gguf_str name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (gguf_str_is(name, names[i].name)) return &names[i];
    return NULL;
}
