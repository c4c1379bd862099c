/* cli/pull/http.h: HTTP requests, several at once, by libcurl.
 *
 * Owns: the library, which is loaded when it is first needed (linked, it would add 5 ms to the
 * start of every command); which addresses may be read; redirects; limits of headers; who gets the
 * token. Refuses: what an answer means to the caller; files.
 *
 * Addresses are https, or http to this machine; http to others only if `insecure`. An address of
 * another kind, also one that a redirect names, and a redirect from https to http are errors. The
 * token is sent to the hub's own scheme, host and port alone, never in clear text over a network,
 * and appears in no message; messages name the host, because a query may hold a secret. */
#ifndef CLI_PULL_HTTP_H
#define CLI_PULL_HTTP_H

#include "base/error.h"
#include "base/sha256.h"
#include <stddef.h>

enum {
    CLI_HTTP_REQUESTS = 16, /* at once */
    CLI_HTTP_VALIDATOR = 256,
    CLI_HTTP_LINK = 2048,
    CLI_HTTP_URL = 8192
};

struct cli_http; /* opaque */

struct cli_http_options {
    const char *hub;   /* address of the hub: its origin gets the token */
    const char *token; /* NULL: none */
    bool insecure;
    long timeout; /* seconds without a connection, or with less than 1 kB a second */
};

struct cli_http_answer {
    int status;                         /* 0: no answer */
    int64_t size;                       /* of the body, -1: unknown */
    int64_t first;                      /* of a part: its first byte in the whole; -1: no part */
    int64_t total;                      /* of a part: the size of the whole; -1: unknown */
    int64_t wait;                       /* Retry-After in seconds; -1: none */
    int64_t linked;                     /* X-Linked-Size, of the hub alone; -1: none */
    char sha256[BASE_SHA256_HEX];       /* X-Linked-Etag where it is one, of the hub alone; or "" */
    char validator[CLI_HTTP_VALIDATOR]; /* a strong ETag, else Last-Modified, or "" */
    char next[CLI_HTTP_LINK];           /* Link with rel="next": the address, or "" */
};

struct cli_http_request {
    /* ---- Set by the caller; what they point to must exist until the request ends ---- */
    const char *url;
    const char *range;    /* "0-99"; NULL: the whole */
    const char *if_range; /* the part is wanted of that version only; NULL: of any */
    /* Called once, before the first byte of a body with status 200 or 206. False ends the request:
     * with `error` set it has failed, otherwise the head was enough. */
    bool (*begin)(struct cli_http_request *r);
    /* Bytes of such a body, in order. False ends the request as above. */
    bool (*take)(struct cli_http_request *r, const char *bytes, size_t size);
    void *user;
    /* ---- Results ---- */
    struct cli_http_answer answer; /* the last one, after redirects */
    struct base_error error;       /* BASE_OK: there is an answer, whatever its status */
    bool again;                    /* it failed, and may succeed another time */
};

/* BASE_FAILED without libcurl; BASE_USAGE for a hub whose address is none. The texts of the options
 * must outlive it. */
struct cli_http *cli_http_new(const struct cli_http_options *o, struct base_error *err);
/* Ends all requests. NULL is fine. */
void cli_http_free(struct cli_http *h);

/* Begins a request; it must not move until it ends. What fails at once is in r->error, and the
 * request still ends by cli_http_wait. False only when there are too many. */
bool cli_http_start(struct cli_http *h, struct cli_http_request *r);

/* Works for at most `ms` milliseconds; returns a request that has ended, or NULL. */
struct cli_http_request *cli_http_wait(struct cli_http *h, int ms);

/* One request from its start to its end. BASE_INTERRUPTED, or r->error. */
bool cli_http_get(struct cli_http *h, struct cli_http_request *r, struct base_error *err);

/* Ends all requests at once, without a result. */
void cli_http_stop(struct cli_http *h);

/* The host of an address, for messages; "?" when it has none. */
void cli_http_host(struct cli_http *h, const char *url, char *out, size_t room);

#endif
