/* cli/pull/http.c: HTTP requests by libcurl. See cli/pull/http.h. */
#include "cli/pull/http.h"
#include "base/interrupt.h"

#include "base/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WAIT_MAX = 120, /* longest pause that a server may request, in seconds */
    STEP_MS = 100
};

double cli_http_pause(const struct cli_http_request *r, int n)
{
    const int64_t told = r->answer.wait;
    return told >= 0 && told <= WAIT_MAX ? (double)told : 0.25 * (double)(1 << (n % 8));
}

#ifdef CLI_HAS_CURL

#include "cli/commands.h"
#define CURL_DISABLE_TYPECHECK /* its macros replace names of functions */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum {
    REDIRECTS_MAX = 10,
    HEAD_MAX = 1 << 16,    /* largest header of a response in bytes */
    IGNORED_MAX = 1 << 16, /* largest body of an error in bytes */
    SLOWEST = 1000,        /* bytes per second */
    HEADER_SIZE = CLI_HTTP_LINK + 32
};

/* The functions of the library that this program calls. */
/* clang-format off */
#define FUNCTIONS(F)                                                                               \
    F(curl_global_init)                                                                            \
    F(curl_easy_init) F(curl_easy_cleanup) F(curl_easy_reset) F(curl_easy_setopt)                  \
    F(curl_easy_getinfo) F(curl_easy_strerror)                                                     \
    F(curl_multi_init) F(curl_multi_cleanup) F(curl_multi_add_handle)                              \
    F(curl_multi_remove_handle) F(curl_multi_perform) F(curl_multi_info_read) F(curl_multi_poll)   \
    F(curl_slist_append) F(curl_slist_free_all)                                                    \
    F(curl_url) F(curl_url_cleanup) F(curl_url_set) F(curl_url_get) F(curl_free)
/* clang-format on */

struct api {
#define MEMBER(name) __typeof__(&(name)) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

struct url_origin { /* of an address */
    char scheme[8], host[256], port[8];
};

struct transfer {
    struct cli_http *http;
    struct cli_http_request *request; /* NULL: free */
    CURL *easy;
    struct curl_slist *headers;
    struct url_origin at; /* of the current address, which redirects change */
    size_t head_bytes, ignored_bytes;
    bool running, begun;
    bool enough;   /* the caller ended it without an error */
    bool has_head; /* the head of the response is complete */
    char text[CURL_ERROR_SIZE];
};

struct cli_http {
    void *library;
    struct api api;
    CURLM *multi;
    struct cli_http_options options;
    struct url_origin hub;
    struct transfer transfer[CLI_HTTP_REQUESTS];
};

/* ---- Addresses ---- */

static CURLUcode copy_part(struct cli_http *h, CURLU *u, CURLUPart part, char *out, size_t room)
{
    char *text = NULL;
    CURLUcode code = h->api.curl_url_get(u, part, &text, CURLU_DEFAULT_PORT);
    if (code == CURLUE_OK && strlen(text) >= room) code = CURLUE_MALFORMED_INPUT;
    if (code == CURLUE_OK) strcpy(out, text);
    h->api.curl_free(text);
    return code;
}

static bool is_here(const char *host)
{
    struct in_addr address;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static const char *current_url(const struct transfer *t)
{
    char *url = NULL;
    t->http->api.curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
    return url ? url : t->request->url;
}

/* Finds the origin of an address; fails if the address must not be read. `from`: its response names
 * the address, which may be relative to its own; NULL: none. */
static bool find_origin(struct cli_http *h, const struct transfer *from, const char *url,
                        struct url_origin *out, struct base_error *err)
{
    CURLU *u = h->api.curl_url();
    CURLUcode code = u ? CURLUE_OK : CURLUE_OUT_OF_MEMORY;
    if (!code && from) code = h->api.curl_url_set(u, CURLUPART_URL, current_url(from), 0);
    if (!code)
        code = h->api.curl_url_set(u, CURLUPART_URL, url,
                                   CURLU_NON_SUPPORT_SCHEME | (from ? CURLU_URLENCODE : 0u));
    if (!code) code = copy_part(h, u, CURLUPART_SCHEME, out->scheme, sizeof out->scheme);
    if (!code) code = copy_part(h, u, CURLUPART_HOST, out->host, sizeof out->host);
    if (!code) code = copy_part(h, u, CURLUPART_PORT, out->port, sizeof out->port);
    h->api.curl_url_cleanup(u);
    const enum base_code wrong = from ? BASE_FAILED : BASE_USAGE;
    const char *item = from ? from->at.host : NULL;
    if (code == CURLUE_OUT_OF_MEMORY)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for an address");
    const bool is_secure = !code && strcmp(out->scheme, "https") == 0;
    if (code || (!is_secure && strcmp(out->scheme, "http") != 0))
        return base_fail_at(err, wrong, item, -1, "%s is not an http or https address of a host",
                            from ? "it redirects to what" : url);
    if (is_secure) return true;
    if (from && strcmp(from->at.scheme, "https") == 0)
        return base_fail_at(err, wrong, item, -1, "it redirects from https to http");
    if (is_here(out->host) || h->options.insecure) return true;
    return base_fail_at(err, wrong, out->host, -1,
                        "http to another machine can be read and changed on its way: give an https "
                        "address, or --insecure");
}

/* Sets the origin and the host for messages to those of the current address. */
static void find_current(struct transfer *t)
{
    find_origin(t->http, NULL, current_url(t), &t->at, NULL);
    strcpy(t->request->host, t->at.host);
}

static bool is_hub(const struct transfer *t)
{
    const struct url_origin *a = &t->at, *b = &t->http->hub;
    return strcmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 &&
           strcmp(a->port, b->port) == 0;
}

/* ---- Responses ---- */

static int64_t number_of(const char *text)
{
    char *end;
    const size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18) return -1;
    const long long value = strtoll(text, &end, 10);
    return *end == '\0' || *end == ' ' ? value : -1;
}

static void forget_answer(struct cli_http_answer *a, int status)
{
    a->status = status;
    a->size = a->first = a->total = a->wait = -1;
    a->validator[0] = a->next[0] = '\0';
}

/* "bytes 0-99/1234" */
static void read_content_range(const char *text, struct cli_http_answer *a)
{
    char digits[24];
    if (strncasecmp(text, "bytes ", 6) != 0) return;
    const char *slash = strchr(text, '/');
    const size_t n = strspn(text + 6, "0123456789");
    if (slash && (text[6] == '*' || text[6 + n] == '-')) a->total = number_of(slash + 1);
    snprintf(digits, sizeof digits, "%.*s", (int)(n < sizeof digits ? n : 0), text + 6);
    a->first = slash ? number_of(digits) : -1;
}

/* "<64 digits>" */
static void read_linked(const char *text, char out[BASE_SHA256_HEX])
{
    text += *text == '"';
    if (strspn(text, "0123456789abcdef") != BASE_SHA256_HEX - 1 ||
        (text[BASE_SHA256_HEX - 1] != '"' && text[BASE_SHA256_HEX - 1] != '\0'))
        return;
    memcpy(out, text, BASE_SHA256_HEX - 1);
    out[BASE_SHA256_HEX - 1] = '\0';
}

/* Reads `<address>; rel="next"`, possibly among other links separated by commas. */
static void read_link(const char *text, char out[CLI_HTTP_LINK])
{
    while ((text = strchr(text, '<')) != NULL) {
        const size_t n = strcspn(++text, ">");
        const char *rest = text + n + (text[n] == '>');
        const size_t size = strcspn(rest, ",<");
        const char *rel = memmem(rest, size, "rel=\"next\"", 10);
        if (rel && n < CLI_HTTP_LINK) snprintf(out, CLI_HTTP_LINK, "%.*s", (int)n, text);
        if (rel) return;
        text = rest;
    }
}

static bool read_header(struct transfer *t, const char *name, const char *value)
{
    struct cli_http_answer *a = &t->request->answer;
    const bool is_tag = strcasecmp(name, "ETag") == 0;
    if (strcasecmp(name, "Content-Length") == 0) a->size = number_of(value);
    if (strcasecmp(name, "Content-Range") == 0) read_content_range(value, a);
    if (strcasecmp(name, "Retry-After") == 0) a->wait = number_of(value);
    if (is_hub(t) && strcasecmp(name, "X-Linked-Size") == 0) a->linked = number_of(value);
    if (is_hub(t) && strcasecmp(name, "X-Linked-Etag") == 0) read_linked(value, a->sha256);
    if (strcasecmp(name, "Link") == 0) read_link(value, a->next);
    if (strlen(value) < sizeof a->validator &&
        ((is_tag && value[0] == '"') ||
         (!a->validator[0] && strcasecmp(name, "Last-Modified") == 0)))
        strcpy(a->validator, value);
    struct url_origin to;
    return a->status / 100 != 3 || strcasecmp(name, "Location") != 0 ||
           find_origin(t->http, t, value, &to, &t->request->error);
}

static size_t on_header(char *bytes, size_t one, size_t size, void *user)
{
    struct transfer *t = user;
    char line[HEADER_SIZE];
    t->head_bytes += size * one;
    if (t->head_bytes > HEAD_MAX) {
        base_fail_at(&t->request->error, BASE_FAILED, t->at.host, -1,
                     "the head of its answer is longer than %d bytes", HEAD_MAX);
        return 0;
    }
    /* A header that does not fit is not one that is read. */
    if (size >= sizeof line) return size;
    memcpy(line, bytes, size);
    line[size] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    t->has_head = line[0] == '\0';
    if (strncmp(line, "HTTP/", 5) == 0) {
        const char *space = strchr(line, ' ');
        forget_answer(&t->request->answer, space ? atoi(space + 1) : 0);
        find_current(t);
        return size;
    }
    char *colon = strchr(line, ':');
    if (!colon) return size;
    *colon = '\0';
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t n = strlen(value); n > 0 && strchr(" \t", value[n - 1]); n--) value[n - 1] = '\0';
    return read_header(t, line, value) ? size : 0;
}

static bool begin(struct transfer *t)
{
    struct cli_http_request *r = t->request;
    if (t->begun) return true;
    t->begun = true;
    t->enough = r->begin && !r->begin(r);
    return !t->enough;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user)
{
    struct transfer *t = user;
    struct cli_http_request *r = t->request;
    size *= one;
    if (r->answer.status != 200 && r->answer.status != 206) {
        t->ignored_bytes += size;
        t->enough = t->ignored_bytes > IGNORED_MAX;
        return t->enough ? 0 : size;
    }
    if (!begin(t)) return 0;
    t->enough = !r->take(r, bytes, size);
    return t->enough ? 0 : size;
}

/* ---- Requests ---- */

/* Sets the options of a request. Only HTTP is enabled. */
static bool set_up(struct transfer *t)
{
    const struct api *api = &t->http->api;
    const struct cli_http_options *o = &t->http->options;
    const struct cli_http_request *r = t->request;
    const char *bundle = getenv("CURL_CA_BUNDLE");
    const bool is_own = strcmp(t->at.scheme, "http") == 0 && is_here(t->at.host);
    bool ok = true;
    api->curl_easy_reset(t->easy);
    api->curl_slist_free_all(t->headers);
    t->headers = NULL;
    if (r->range && r->if_range) {
        char line[CLI_HTTP_VALIDATOR + 16];
        snprintf(line, sizeof line, "If-Range: %s", r->if_range);
        t->headers = api->curl_slist_append(NULL, line);
        ok = t->headers != NULL;
    }
#define SET(option, value)                                                                         \
    ok = ok && api->curl_easy_setopt(t->easy, CURLOPT_##option, value) == CURLE_OK
    SET(URL, r->url);
    SET(NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(PROTOCOLS_STR, "http,https");
#else
    SET(PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    SET(FOLLOWLOCATION, 1L);
    SET(MAXREDIRS, (long)REDIRECTS_MAX);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* each request has its own connection */
    SET(USERAGENT, "infer/" INFER_VERSION);
    SET(CONNECTTIMEOUT, o->timeout);
    SET(LOW_SPEED_TIME, o->timeout);
    SET(LOW_SPEED_LIMIT, (long)SLOWEST);
    SET(ERRORBUFFER, t->text);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, t);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, t);
    SET(PRIVATE, t);
    /* Between this machine and itself there is no proxy, which would read the token. */
    if (is_own) SET(NOPROXY, t->at.host[0] == '[' ? "::1" : t->at.host);
    if (o->token && is_hub(t) && (is_own || strcmp(t->at.scheme, "https") == 0)) {
        SET(HTTPAUTH, (long)CURLAUTH_BEARER);
        SET(XOAUTH2_BEARER, o->token); /* to this origin only, and to no proxy */
    }
    if (t->headers) SET(HTTPHEADER, t->headers);
    if (r->range) SET(RANGE, r->range);
    if (bundle && *bundle) SET(CAINFO, bundle);
#undef SET
    return ok;
}

static bool start(struct transfer *t)
{
    struct cli_http *h = t->http;
    struct base_error *err = &t->request->error;
    forget_answer(&t->request->answer, 0);
    if (!find_origin(h, NULL, t->request->url, &t->at, err)) return false;
    strcpy(t->request->host, t->at.host);
    if (!t->easy) t->easy = h->api.curl_easy_init();
    t->running =
        t->easy && set_up(t) && h->api.curl_multi_add_handle(h->multi, t->easy) == CURLM_OK;
    return t->running || base_fail(err, BASE_NO_MEMORY, "not enough memory for a request");
}

bool cli_http_start(struct cli_http *h, struct cli_http_request *r)
{
    int i = 0;
    while (i < CLI_HTTP_REQUESTS && h->transfer[i].request) i++;
    if (i == CLI_HTTP_REQUESTS) return false;
    struct transfer *t = &h->transfer[i];
    *t = (struct transfer){.http = h, .request = r, .easy = t->easy, .headers = t->headers};
    r->error = (struct base_error)BASE_ERROR_INIT;
    r->again = false;
    r->answer.sha256[0] = '\0';
    r->answer.linked = -1;
    start(t);
    return true;
}

static bool is_passing(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return true;
    default:
        return false;
    }
}

static void finish(struct transfer *t, CURLcode code)
{
    struct cli_http_request *r = t->request;
    const int status = r->answer.status;
    find_current(t);
    t->http->api.curl_multi_remove_handle(t->http->multi, t->easy);
    t->running = false;
    if (r->error.code || t->enough) return;
    if (code == CURLE_OUT_OF_MEMORY && !t->has_head && errno != ENOMEM) {
        /* Old versions of libcurl report a line above their limit in this way. */
        base_fail_at(&r->error, BASE_FAILED, r->host, -1,
                     "a line in the head of its answer is too long");
    } else if (code == CURLE_OUT_OF_MEMORY) {
        base_fail(&r->error, BASE_NO_MEMORY, "not enough memory for a request");
    } else if (code == CURLE_TOO_MANY_REDIRECTS) {
        base_fail_at(&r->error, BASE_FAILED, r->host, -1, "more than %d redirects", REDIRECTS_MAX);
    } else if (code != CURLE_OK) {
        r->again = is_passing(code);
        base_fail_at(&r->error, BASE_FAILED, r->host, -1, "%s",
                     t->text[0] ? t->text : t->http->api.curl_easy_strerror(code));
    } else if (status / 100 == 3) {
        base_fail_at(&r->error, BASE_FAILED, r->host, -1, "it redirects without an address");
    } else {
        if (status == 200 || status == 206) begin(t); /* an empty body */
        r->again = (status == 408 || status == 429 || status >= 500) && r->answer.wait <= WAIT_MAX;
    }
}

static struct cli_http_request *take_ended(struct cli_http *h)
{
    CURLMsg *message;
    int left;
    while ((message = h->api.curl_multi_info_read(h->multi, &left)) != NULL) {
        struct transfer *t = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        h->api.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        finish(t, message->data.result);
    }
    for (int i = 0; i < CLI_HTTP_REQUESTS; i++) {
        struct cli_http_request *r = h->transfer[i].request;
        if (!r || h->transfer[i].running) continue;
        h->transfer[i].request = NULL;
        return r;
    }
    return NULL;
}

struct cli_http_request *cli_http_wait(struct cli_http *h, int ms)
{
    int running;
    struct cli_http_request *r = take_ended(h);
    if (r) return r;
    errno = 0;
    CURLMcode code = h->api.curl_multi_perform(h->multi, &running);
    r = take_ended(h);
    if (r) return r;
    if (code == CURLM_OK) code = h->api.curl_multi_poll(h->multi, NULL, 0, ms, NULL);
    errno = 0;
    if (code == CURLM_OK) h->api.curl_multi_perform(h->multi, &running);
    if (code != CURLM_OK) /* lack of memory: no other error is possible here */
        for (int i = 0; i < CLI_HTTP_REQUESTS; i++)
            if (h->transfer[i].request) {
                errno = ENOMEM;
                finish(&h->transfer[i], CURLE_OUT_OF_MEMORY);
            }
    return take_ended(h);
}

void cli_http_stop(struct cli_http *h)
{
    for (int i = 0; i < CLI_HTTP_REQUESTS; i++) {
        struct transfer *t = &h->transfer[i];
        if (t->running) h->api.curl_multi_remove_handle(h->multi, t->easy);
        t->running = false;
        t->request = NULL;
    }
}

/* ---- The library ---- */

static bool load(struct cli_http *h, struct base_error *err)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    for (size_t i = 0; !h->library && i < sizeof names / sizeof *names; i++) {
        errno = 0;
        h->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!h->library && errno == ENOMEM)
            return base_fail(err, BASE_NO_MEMORY, "not enough memory to load %s", names[i]);
    }
    if (!h->library)
        return base_fail(err, BASE_FAILED, "libcurl cannot be loaded: install it (libcurl4)");
#define LOAD(name) h->api.name = (__typeof__(&(name)))dlsym(h->library, #name);
    FUNCTIONS(LOAD)
#undef LOAD
#define CHECK(name)                                                                                \
    if (!h->api.name) return base_fail(err, BASE_FAILED, "libcurl is too old: it lacks " #name);
    FUNCTIONS(CHECK)
#undef CHECK
    if (h->api.curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return base_fail(err, BASE_NO_MEMORY, "libcurl does not start: not enough memory");
    h->multi = h->api.curl_multi_init();
    return h->multi || base_fail(err, BASE_NO_MEMORY, "not enough memory for requests");
}

struct cli_http *cli_http_new(const struct cli_http_options *o, struct base_error *err)
{
    struct cli_http *h = calloc(1, sizeof *h);
    if (!h) return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory for requests"));
    h->options = *o;
    if (load(h, err) && find_origin(h, NULL, o->hub, &h->hub, err)) return h;
    cli_http_free(h);
    return NULL;
}

/* The library is not unloaded, because it has threads and handlers of its own. */
void cli_http_free(struct cli_http *h)
{
    if (!h) return;
    cli_http_stop(h);
    for (int i = 0; i < CLI_HTTP_REQUESTS; i++) {
        struct transfer *t = &h->transfer[i];
        if (t->easy) h->api.curl_easy_cleanup(t->easy);
        if (t->headers) h->api.curl_slist_free_all(t->headers);
    }
    if (h->multi) h->api.curl_multi_cleanup(h->multi);
    free(h);
}

#else

struct cli_http *cli_http_new(const struct cli_http_options *o, struct base_error *err)
{
    (void)o;
#ifdef INFER_STATIC
    const char *why = "libcurl cannot be loaded: this program is one static file";
#else
    const char *why = "this program was built without libcurl: install its header (scripts/setup "
                      "does) and build again";
#endif
    return base_null(base_fail(err, BASE_FAILED, "%s", why));
}

/* Without a client the others are not called. */
void cli_http_free(struct cli_http *h)
{
    (void)h;
}

void cli_http_stop(struct cli_http *h)
{
    (void)h;
}

bool cli_http_start(struct cli_http *h, struct cli_http_request *r)
{
    return !h && !r;
}

struct cli_http_request *cli_http_wait(struct cli_http *h, int ms)
{
    (void)h;
    (void)ms;
    return NULL;
}

#endif

bool cli_http_get(struct cli_http *h, struct cli_http_request *r, int retries,
                  struct base_error *err)
{
    for (int n = 0;; n++) {
        if (!cli_http_start(h, r)) return base_fail(err, BASE_FAILED, "too many requests");
        while (cli_http_wait(h, STEP_MS) != r)
            if (!base_goes_on(err)) return false;
        if (!r->again || n >= retries) break;
        const double end = base_seconds() + cli_http_pause(r, n);
        while (base_seconds() < end) {
            if (!base_goes_on(err)) return false;
            usleep(1000 * STEP_MS);
        }
    }
    if (!r->error.code) return true;
    if (err && !err->code) *err = r->error;
    return false;
}
