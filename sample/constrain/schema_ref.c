/* sample/constrain/schema_ref.c: targets of $ref: identifiers, anchors and JSON pointers inside one
 * schema. URIs are resolved by RFC 3986; nothing outside the schema is read. See schema.h. */
#include "sample/constrain/schema.h"
#include <stdlib.h>
#include <string.h>

#define DRAFT_4 "http://json-schema.org/draft-04/schema"

struct ref_target {
    char *uri; /* absolute, without fragment or with "#anchor" */
    uint32_t node;
};
struct constrain_refs {
    const struct constrain_json *json;
    struct ref_target *target;
    uint32_t n_target, target_room;
    uint32_t *base; /* [n_node]: 1 + the target that is the base of a schema's references */
    uint32_t root;  /* the node of the schema */
    bool is_draft4; /* by its $schema */
};

/* -- URIs -- */

static size_t scheme_length(const char *s)
{
    size_t n = 0;
    while ((s[n] | 32) >= 'a' && (s[n] | 32) <= 'z') n++;
    while (n && (((s[n] | 32) >= 'a' && (s[n] | 32) <= 'z') || (s[n] >= '0' && s[n] <= '9') ||
                 s[n] == '+' || s[n] == '.' || s[n] == '-'))
        n++;
    return n && s[n] == ':' ? n + 1 : 0;
}

/* Returns the offset of the path, after scheme and authority. */
static size_t path_start(const char *s)
{
    size_t n = scheme_length(s);
    if (strncmp(s + n, "//", 2) == 0)
        for (n += 2; s[n] && s[n] != '/';) n++;
    return n;
}

static void remove_dots(char *path)
{
    char *out = path, *in = path;
    while (*in) {
        if (strncmp(in, "./", 2) == 0 && (in == path || in[-1] == '/')) {
            in += 2;
        } else if (strncmp(in, "../", 3) == 0 && (in == path || in[-1] == '/')) {
            in += 3;
            if (out > path + 1) out--; /* removes the slash too */
            while (out > path && out[-1] != '/') out--;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

/* Resolves `ref` (without fragment) against `base`. The caller frees the result. */
static char *resolve(const char *base, const char *ref)
{
    size_t keep = strlen(base);
    if (scheme_length(ref)) {
        keep = 0;
    } else if (strncmp(ref, "//", 2) == 0) {
        keep = scheme_length(base);
    } else if (*ref == '/') {
        keep = path_start(base);
    } else if (*ref) {
        size_t start = path_start(base);
        while (keep > start && base[keep - 1] != '/') keep--;
    }
    char *out = malloc(keep + strlen(ref) + 1);
    if (!out) return NULL;
    memcpy(out, base, keep);
    strcpy(out + keep, ref);
    remove_dots(out + path_start(out));
    return out;
}

/* -- collecting identifiers -- */

static bool add_target(struct constrain_refs *r, char *uri, uint32_t node, struct base_error *err)
{
    if (!uri) return base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    for (uint32_t i = 0; i < r->n_target; i++)
        if (strcmp(r->target[i].uri, uri) == 0) {
            free(uri);
            return base_fail(err, BASE_USAGE,
                             "line %u, column %u: '$id' or '$anchor' names two schemas",
                             r->json->node[node].line, r->json->node[node].column);
        }
    if (r->n_target >= 1000) {
        free(uri);
        return base_fail(err, BASE_USAGE, "more than 1000 '$id' and '$anchor' in one schema");
    }
    if (!constrain_grow(&r->target, &r->target_room, r->n_target, sizeof *r->target, err)) {
        free(uri);
        return false;
    }
    r->target[r->n_target++] = (struct ref_target){uri, node};
    return true;
}

static char *text_of(const struct constrain_json *j, uint32_t node)
{
    return strndup(j->text.data + j->node[node].text, j->node[node].text_size);
}

static bool add_name(struct constrain_refs *r, uint32_t node, const char *name, size_t size,
                     uint32_t base, struct base_error *err)
{
    const char *uri = r->target[base - 1].uri;
    char *full = malloc(strlen(uri) + size + 2);
    if (full) {
        strcpy(full, uri);
        strcat(full, "#");
        strncat(full, name, size);
    }
    return add_target(r, full, node, err);
}

static bool add_anchor(struct constrain_refs *r, uint32_t node, const char *keyword, uint32_t base,
                       struct base_error *err)
{
    uint32_t anchor = constrain_json_member(r->json, node, keyword, strlen(keyword));
    if (!anchor || r->json->node[anchor].kind != CONSTRAIN_JSON_STRING) return true;
    const struct constrain_json_node *a = &r->json->node[anchor];
    return add_name(r, node, r->json->text.data + a->text, a->text_size, base, err);
}

bool constrain_refs_reads_id(const struct constrain_refs *r, uint32_t node)
{
    return r->is_draft4 || node == r->root;
}

bool constrain_schema_draft_is_known(const struct constrain_json *json, uint32_t v)
{
    static const char *const known[] = {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-04/schema"};
    const struct constrain_json_node *n = &json->node[v];
    const char *text = json->text.data + n->text;
    const size_t size = n->text_size - (n->text_size > 0 && text[n->text_size - 1] == '#');
    for (size_t i = 0; n->kind == CONSTRAIN_JSON_STRING && i < sizeof known / sizeof known[0]; i++)
        if (size == strlen(known[i]) && memcmp(text, known[i], size) == 0) return true;
    return false;
}

/* Returns the member that identifies a schema: "$id", in draft 4 "id". Up to draft 7 an identifier
 * beside a reference is ignored. */
static uint32_t id_of(const struct constrain_refs *r, uint32_t node)
{
    const struct constrain_json *j = r->json;
    uint32_t id = constrain_json_member(j, node, "$id", 3);
    if (!id && constrain_refs_reads_id(r, node) && !constrain_json_member(j, node, "$ref", 4))
        id = constrain_json_member(j, node, "id", 2);
    return id && j->node[id].kind == CONSTRAIN_JSON_STRING ? id : 0;
}

static bool walk(struct constrain_refs *r, uint32_t node, uint32_t base, struct base_error *err);

static bool walk_members(struct constrain_refs *r, uint32_t node, uint32_t base,
                         struct base_error *err)
{
    for (uint32_t c = r->json->node[node].child; c; c = r->json->node[c].sibling)
        if (!walk(r, c, base, err)) return false;
    return true;
}

/* Adds the names that a schema has by its identifier and its anchors. *base becomes the target that
 * references in it are relative to. */
static bool add_names(struct constrain_refs *r, uint32_t node, uint32_t *base,
                      struct base_error *err)
{
    const struct constrain_json *j = r->json;
    const uint32_t id = id_of(r, node);
    const char *text = id ? j->text.data + j->node[id].text : "";
    if (id && j->node[id].text_size > 1 && text[0] == '#') { /* up to draft 7 an anchor */
        if (!add_name(r, node, text + 1, j->node[id].text_size - 1, *base, err)) return false;
    } else if (id) {
        char *ref = text_of(j, id), *uri = NULL;
        if (ref) ref[strcspn(ref, "#")] = '\0';
        if (ref) uri = resolve(r->target[*base - 1].uri, ref);
        free(ref);
        if (node == r->root && uri && strcmp(uri, r->target[0].uri) != 0) {
            free(r->target[0].uri);
            r->target[0].uri = uri;
        } else if (node == r->root) {
            free(uri);
        } else {
            if (!add_target(r, uri, node, err)) return false;
            *base = r->n_target;
        }
    }
    r->base[node] = *base;
    return add_anchor(r, node, "$anchor", *base, err) &&
           add_anchor(r, node, "$dynamicAnchor", *base, err);
}

/* Visits a schema and the schemas in it; the JSON reader bounds the depth. */
static bool walk(struct constrain_refs *r, uint32_t node, uint32_t base, struct base_error *err)
{
    static const char *const schemas[] = {"$defs",
                                          "definitions",
                                          "properties",
                                          "patternProperties",
                                          "dependentSchemas",
                                          "dependencies",
                                          "allOf",
                                          "anyOf",
                                          "oneOf",
                                          "prefixItems"};
    static const char *const schema[] = {"additionalProperties",
                                         "propertyNames",
                                         "items",
                                         "additionalItems",
                                         "contains",
                                         "not",
                                         "if",
                                         "then",
                                         "else"};
    const struct constrain_json *j = r->json;
    if (j->node[node].kind != CONSTRAIN_JSON_OBJECT || r->base[node]) return true;
    if (!add_names(r, node, &base, err)) return false;
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        const uint32_t c = constrain_json_member(j, node, schemas[i], strlen(schemas[i]));
        if (c && !walk_members(r, c, base, err)) return false;
    }
    for (size_t i = 0; i < sizeof schema / sizeof schema[0]; i++) {
        const uint32_t c = constrain_json_member(j, node, schema[i], strlen(schema[i]));
        if (c && !walk(r, c, base, err)) return false;
    }
    return true;
}

struct constrain_refs *constrain_refs_new(const struct constrain_json *j, uint32_t root,
                                          struct base_error *err)
{
    struct constrain_refs *r = calloc(1, sizeof *r);
    if (!r || !(r->base = calloc(j->n_node, sizeof *r->base))) {
        base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
        goto fail;
    }
    r->json = j;
    r->root = root;
    const uint32_t draft = constrain_json_member(j, root, "$schema", 7);
    r->is_draft4 =
        draft && (constrain_json_is(j, draft, DRAFT_4) || constrain_json_is(j, draft, DRAFT_4 "#"));
    if (add_target(r, strdup(""), root, err) && walk(r, root, 1, err)) return r;
fail:
    constrain_refs_free(r);
    return NULL;
}

void constrain_refs_free(struct constrain_refs *r)
{
    if (!r) return;
    for (uint32_t i = 0; i < r->n_target; i++) free(r->target[i].uri);
    free(r->target);
    free(r->base);
    free(r);
}

/* -- finding -- */

static void decode_percent(char *s)
{
    char *out = s;
    for (; *s; s++) {
        unsigned v;
        if (*s == '%' && s[1] && s[2] && strspn(s + 1, "0123456789abcdefABCDEF") >= 2) {
            char hex[3] = {s[1], s[2], 0};
            v = (unsigned)strtoul(hex, NULL, 16);
            *out++ = (char)v;
            s += 2;
        } else {
            *out++ = *s;
        }
    }
    *out = '\0';
}

/* Returns the node that a JSON pointer (RFC 6901) leads to; 0 if there is none. */
static uint32_t follow(const struct constrain_json *j, uint32_t node, char *pointer)
{
    while (node && *pointer == '/') {
        char *part = ++pointer, *out = part;
        for (; *pointer && *pointer != '/'; pointer++) {
            *out = *pointer;
            if (*pointer == '~' && (pointer[1] == '0' || pointer[1] == '1'))
                *out = *++pointer == '0' ? '~' : '/';
            out++;
        }
        size_t n = (size_t)(out - part);
        if (j->node[node].kind == CONSTRAIN_JSON_ARRAY) {
            unsigned long i = n && n < 9 ? strtoul(part, NULL, 10) : ~0ul;
            uint32_t c = j->node[node].child;
            while (c && i--) c = j->node[c].sibling;
            node = c;
        } else {
            node = constrain_json_member(j, node, part, n);
        }
    }
    return *pointer ? 0 : node;
}

static uint32_t find(struct constrain_refs *r, uint32_t owner, char *ref, struct base_error *err)
{
    char *fragment = strchr(ref, '#'), *uri;
    uint32_t base = r->base[owner] ? r->base[owner] : 1, found = 0, resource = 0;
    if (fragment) *fragment++ = '\0';
    if (!(uri = resolve(r->target[base - 1].uri, ref))) {
        base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
        return 0;
    }
    for (uint32_t i = 0; i < r->n_target; i++)
        if (strcmp(r->target[i].uri, uri) == 0) found = r->target[i].node, resource = i + 1;
    if (fragment) decode_percent(fragment);
    if (found && fragment && *fragment == '/') {
        found = follow(r->json, found, fragment);
        if (found && !walk(r, found, resource, err)) found = 0;
    } else if (found && fragment && *fragment) {
        size_t n = strlen(uri);
        found = 0;
        for (uint32_t i = 0; i < r->n_target; i++)
            if (strncmp(r->target[i].uri, uri, n) == 0 && r->target[i].uri[n] == '#' &&
                strcmp(r->target[i].uri + n + 1, fragment) == 0)
                found = r->target[i].node;
    }
    free(uri);
    return found;
}

uint32_t constrain_refs_find(struct constrain_refs *r, uint32_t owner, uint32_t ref,
                             struct base_error *err)
{
    const struct constrain_json_node *n = &r->json->node[ref];
    char *text = n->kind == CONSTRAIN_JSON_STRING ? text_of(r->json, ref) : NULL;
    uint32_t found = text ? find(r, owner, text, err) : 0;
    free(text);
    if (!found)
        base_fail(err, BASE_USAGE,
                  "line %u, column %u: '$ref' leads nowhere in this schema (other files and the "
                  "network are never read): %.*s",
                  n->line, n->column, n->kind == CONSTRAIN_JSON_STRING ? (int)n->text_size : 0,
                  r->json->text.data + n->text);
    return found;
}

/* -- wrappers -- */

/* Returns whether an object has the member, which is a schema, and no members but the n names. */
static bool wraps(const struct constrain_json *j, uint32_t json, const char *member,
                  const char *const *names, size_t n)
{
    const uint32_t inner = constrain_json_member(j, json, member, strlen(member));
    if (!inner || j->node[inner].kind != CONSTRAIN_JSON_OBJECT) return false;
    for (uint32_t c = j->node[json].child; c; c = j->node[c].sibling) {
        size_t i = 0;
        while (i < n && !constrain_json_is_named(j, c, names[i])) i++;
        if (i == n) return false;
    }
    return true;
}

uint32_t constrain_schema_unwrap(const struct constrain_json *j)
{
    static const char *const outer[] = {"type", "json_schema"};
    static const char *const inner[] = {"name", "description", "strict", "schema"};
    uint32_t json = 1;
    if (wraps(j, json, "json_schema", outer, 2))
        json = constrain_json_member(j, json, "json_schema", 11);
    if (wraps(j, json, "schema", inner, 4)) json = constrain_json_member(j, json, "schema", 6);
    return json;
}
