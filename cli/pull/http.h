/* cli/pull/http.h: concurrent HTTP requests by libcurl.
 *
 * It loads the library when it is first needed (linked, it would add 5 ms to the start of every
 * command), checks addresses, limits headers and sends the token. libcurl follows redirects, and
 * sends the token to no other scheme, host or port than the first. Callers interpret responses and
 * write files.
 *
 * Addresses are https, or http to this machine; http to others only if `insecure`. Any other
 * address, also in a redirect, and a redirect from https to http are errors. The token is sent only
 * to the hub's own scheme, host and port, never in clear text over a network, and appears in no
 * message; messages contain only the host of an address, because a query may contain a secret. */
#pragma once

#include "base/error.h"
#include "base/sha256.h"
#include <stddef.h>

enum {
    CLI_HTTP_REQUESTS = 16, /* requests at once */
    CLI_HTTP_VALIDATOR = 256,
    CLI_HTTP_LINK = 2048
};

struct cli_http; /* opaque */

struct cli_http_options {
    const char *hub;   /* address of the hub; its origin receives the token */
    const char *token; /* NULL: none */
    bool insecure;
    long timeout; /* seconds without a connection, or below 1 kB/s */
};

struct cli_http_answer {
    int status;                   /* 0: no response */
    int64_t size;                 /* size of the body; -1: unknown */
    int64_t first;                /* first byte of a range; -1: no range */
    int64_t total;                /* size of the file that a range is part of; -1: unknown */
    int64_t wait;                 /* Retry-After in seconds; -1: none */
    int64_t linked;               /* X-Linked-Size, from the hub only; -1: none */
    char sha256[BASE_SHA256_HEX]; /* X-Linked-Etag if it is a SHA-256, from the hub only; or "" */
    char validator[CLI_HTTP_VALIDATOR]; /* a strong ETag, else Last-Modified, or "" */
    char next[CLI_HTTP_LINK];           /* address of a Link with rel="next", or "" */
};

struct cli_http_request {
    /* ---- Set by the caller; pointers must be valid until the request ends ---- */
    const char *url;
    const char *range;    /* "0-99"; NULL: the whole file */
    const char *if_range; /* version that the range must be of; NULL: any */
    /* Called once, before the first byte of a body with status 200 or 206. Returning false ends the
     * request: if `error` is set it has failed, otherwise the header was enough. */
    bool (*begin)(struct cli_http_request *r);
    /* Receives the bytes of such a body, in order. Returning false ends the request in the same
     * way. */
    bool (*take)(struct cli_http_request *r, const char *bytes, size_t size);
    void *user;
    /* ---- Results ---- */
    struct cli_http_answer answer; /* the last response, after redirects */
    char host[256];                /* its host, or the one that did not respond */
    struct base_error error;       /* BASE_OK: there is a response, of any status */
    bool again; /* it failed, or its status is an error, but it may succeed if repeated */
};

/* Creates the client, which the caller frees. The texts of the options must outlive it. Fails with
 * BASE_FAILED without libcurl, and with BASE_USAGE if the hub's address is invalid. */
struct cli_http *cli_http_new(const struct cli_http_options *o, struct base_error *err);
/* Ends all requests. Accepts NULL. */
void cli_http_free(struct cli_http *h);

/* Starts a request, which must not move until it ends. An immediate error is stored in r->error;
 * cli_http_wait still returns the request. Returns false only if there are too many requests. */
bool cli_http_start(struct cli_http *h, struct cli_http_request *r);

/* Transfers for at most `ms` milliseconds; returns a request that has ended, or NULL. */
struct cli_http_request *cli_http_wait(struct cli_http *h, int ms);

/* Returns the seconds to wait before the request is repeated for the n-th time, n from 0. */
double cli_http_pause(const struct cli_http_request *r, int n);

/* Runs one request from start to end, and repeats it after temporary failures: `begin` and `take`
 * may be called again. Fails with BASE_INTERRUPTED, or r->error. */
bool cli_http_get(struct cli_http *h, struct cli_http_request *r, int retries,
                  struct base_error *err);

/* Ends all requests immediately, without a result. */
void cli_http_stop(struct cli_http *h);
