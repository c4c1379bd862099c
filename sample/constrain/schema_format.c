/* sample/constrain/schema_format.c: the strings that `format` allows in generation. Each expression
 * matches a part of what the format's document allows: the part that programs which check formats
 * have in common, without forms that models rarely write. See schema.h. */
#include "sample/constrain/schema.h"
#include <string.h>

/* RFC 3339; the days of a month by its name, 29 February in leap years; no year 0, no leap
 * seconds. */
#define YEAR   "(\\d{3}[1-9]|\\d{2}[1-9]\\d|\\d[1-9]\\d{2}|[1-9]\\d{3})"
#define FOURTH "(0[48]|[2468][048]|[13579][26])" /* of 01..99 the multiples of four */
#define DATE                                                                                       \
    "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"          \
    "02-(0[1-9]|1\\d|2[0-8]))|(\\d\\d" FOURTH "|" FOURTH "00)-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"

/* RFC 3339, appendix A */
#define N        "\\d{1,4}"
#define CLOCK    "T(" N "H(" N "M(" N "S)?)?|" N "M(" N "S)?|" N "S)"
#define DURATION "P((" N "Y(" N "M(" N "D)?)?|" N "M(" N "D)?|" N "D)(" CLOCK ")?|" CLOCK "|" N "W)"

/* RFC 4122 */
#define HEX "[0-9a-fA-F]"
#define UUID(version, variant)                                                                     \
    HEX "{8}-" HEX "{4}-" version HEX "{3}-" variant HEX "{3}-" HEX "{12}"
#define ANY_UUID         UUID(HEX, HEX)
#define UUID_OF(version) UUID(version, "[89abAB]")

/* RFC 2673, RFC 4291 */
#define BYTE      "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4      BYTE "(\\." BYTE "){3}"
#define H         HEX "{1,4}"
#define GROUPS(n) "(" H ":){" n "}"
#define MORE(n)   "(:" H "){" n "}"
#define IPV6                                                                                       \
    "(" GROUPS("7") H "|" GROUPS("1,7") ":|" GROUPS("1,6") MORE("1") "|" GROUPS("1,5")             \
        MORE("2") "|" GROUPS("1,4") MORE("3") "|" GROUPS("1,3") MORE("4") "|" GROUPS("1,2")        \
            MORE("5") "|" GROUPS("1") MORE("6") "|:" MORE("1,7") "|::|" GROUPS("6") IPV4           \
        "|::" GROUPS("0,5") IPV4 "|" GROUPS("1") ":" GROUPS("0,4") IPV4                            \
        "|" GROUPS("2") ":" GROUPS("0,3") IPV4 "|" GROUPS("3") ":" GROUPS("0,2") IPV4              \
        "|" GROUPS("4") ":" GROUPS("0,1") IPV4 "|" GROUPS("5") ":" IPV4 ")"

/* RFC 1123; RFC 5321, without quoted names, addresses in brackets, and domains of one word. Of a
 * domain of mail the last word has letters only, and no two hyphens are adjacent. */
#define LETTER          "[A-Za-z0-9]"
#define LABEL(n)        LETTER "([A-Za-z0-9-]{0," n "}" LETTER ")?"
#define LABELS(n, more) LABEL(n) "(\\." LABEL(n) "){0," more "}"
#define HOSTNAME        "(" LABELS("61", "2") "|" LABELS("22", "9") ")" /* at most 253 bytes */
#define ATOM            "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31}"
#define WORD            LETTER "{1,20}(-" LETTER "{1,20}){0,2}"
#define EMAIL           ATOM "(\\." ATOM ")?@(" WORD "\\.){1,4}[A-Za-z]{2,24}"

/* RFC 3986, without addresses in brackets: with a length its automaton would be too large */
#define PERCENT   "%" HEX "{2}"
#define NAME_CHAR "[A-Za-z0-9._~!$&'()*+,;=-]|" PERCENT
#define PATH_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" PERCENT ")"
#define AUTHORITY "((" NAME_CHAR "|:)*@)?(" NAME_CHAR ")*(:\\d{0,5})?"
#define TAIL      "(\\?(" PATH_CHAR "|[/?])*)?(#(" PATH_CHAR "|[/?])*)?"
#define REST      "(/" PATH_CHAR "*)*"
#define URI                                                                                        \
    "[A-Za-z][A-Za-z0-9+.-]*:(//" AUTHORITY REST "|/(" PATH_CHAR "+" REST ")?|" PATH_CHAR "+" REST \
    "|)" TAIL

/* RFC 6901 */
#define POINTER "(/([^/~]|~[01])*)*"

static const struct {
    const char *name, *expression;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration", DURATION},
    {"uuid", ANY_UUID},
    {"uuid1", UUID_OF("1")},
    {"uuid3", UUID_OF("3")},
    {"uuid4", UUID_OF("4")},
    {"uuid5", UUID_OF("5")},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"ipvanyaddress", IPV4 "|" IPV6},
    {"hostname", HOSTNAME},
    {"email", EMAIL},
    {"uri", URI},
    {"json-pointer", POINTER},
};

const char *constrain_schema_format(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strlen(formats[i].name) == size && memcmp(formats[i].name, name, size) == 0)
            return formats[i].expression;
    return NULL;
}
