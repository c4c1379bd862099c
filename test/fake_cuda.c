/* test/fake_cuda.c: see test/fake_cuda.h. Names and types are those of the driver's ABI. */
#include "test/fake_cuda.h"
#include "engine/gpu/driver.h"
#include "test/emulator.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    UNKNOWN = 999
};
enum {
    MAX_BUFFERS = 4096,
    HEAP = 1 << 30,
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    CODE_SIZE = 64,
    MAX_LAUNCHES = 4096,
    MAX_LARGE = 64,
    MAX_LATER = 256,
    MAX_DEVICES = 4,
    MAX_SHARED = 99 << 10
};

struct fake_cuda fake_cuda = {.devices = 1, .memory = 64 << 20, .major = 8, .seed = 1};

/* All memory of a device is one mapping, so that one call makes it accessible; buffers follow each
 * other, and it is empty again when all are free. */
static struct heap {
    char *base;
    size_t used, live; /* bytes with those that are free again; bytes of buffers */
    int n_buffers, n_free;
    struct fake_buffer {
        size_t at, size; /* size 0: it is free */
    } buffer[MAX_BUFFERS];
} heaps[MAX_DEVICES];

#define FAKE(name, symbol, parameters) int symbol parameters;
ENGINE_GPU_FUNCTIONS(FAKE)

static bool fails(const char *function)
{
    return fake_cuda.fail && strcmp(fake_cuda.fail, function) == 0;
}

/* The context of the calling thread: "context" and the number of its device. */
static _Thread_local const char *current;

static int number(const void *handle)
{
    const char *text = handle;
    return text ? text[strlen(text) - 1] - '0' : 0;
}

static struct heap *here(void)
{
    return &heaps[number(current)];
}

static void *handle(const char *kind, int device)
{
    char text[24];
    snprintf(text, sizeof text, "%s%d", kind, device);
    fake_cuda.live++;
    return strdup(text);
}

static int release(void *handle_)
{
    fake_cuda.live--;
    free(handle_);
    return SUCCESS;
}

/* ---- The device ---- */

static bool is_logging; /* name, blocks and threads of started kernels, to stderr */

int cuInit(unsigned flags)
{
    if (fails(__func__)) return UNKNOWN;
    const char *memory = getenv("FAKE_CUDA_MEMORY"), *devices = getenv("FAKE_CUDA_DEVICES");
    is_logging = getenv("FAKE_CUDA_LOG");
    if (devices) fake_cuda.devices = atoi(devices);
    if (memory) fake_cuda.memory = strtoull(memory, NULL, 10);
    return flags ? INVALID_VALUE : SUCCESS;
}

int cuDriverGetVersion(int *version)
{
    if (fails(__func__)) return UNKNOWN;
    *version = 12040;
    return SUCCESS;
}

int cuGetErrorName(int result, const char **name)
{
    *name = result == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return SUCCESS;
}

int cuDeviceGet(int *device, int index)
{
    if (fails(__func__)) return UNKNOWN;
    *device = 7 + index;
    return index < fake_cuda.devices ? SUCCESS : INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int size, int device)
{
    if (fails(__func__)) return UNKNOWN;
    snprintf(name, (size_t)size, "emulated GPU");
    return device >= 7 ? SUCCESS : INVALID_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (fails(__func__)) return UNKNOWN;
    *value = attribute == ENGINE_GPU_ATTRIBUTE_MAJOR   ? fake_cuda.major
             : attribute == ENGINE_GPU_ATTRIBUTE_UNITS ? 1
             : attribute == ENGINE_GPU_ATTRIBUTE_CACHE ? 1 << 20
                                                       : 0;
    return device >= 7 ? SUCCESS : INVALID_DEVICE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    if (fails(__func__)) return UNKNOWN;
    *bytes = fake_cuda.memory;
    return device >= 7 ? SUCCESS : INVALID_DEVICE;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (fails(__func__)) return UNKNOWN;
    *context = handle("context", device - 7);
    return device >= 7 ? SUCCESS : INVALID_DEVICE;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *all)
{
    if (fails(__func__)) return UNKNOWN;
    struct heap *heap = here();
    *all = fake_cuda.memory;
    *free_bytes = fake_cuda.memory - heap->live;
    return current ? SUCCESS : INVALID_VALUE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    if (fails(__func__)) return UNKNOWN;
    (void)device;
    release((void *)current);
    current = NULL;
    return SUCCESS;
}

int cuCtxSetCurrent(void *context)
{
    if (fails(__func__)) return UNKNOWN;
    current = context;
    return strncmp(context, "context", 7) == 0 ? SUCCESS : INVALID_VALUE;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    if (fails(__func__)) return UNKNOWN;
    *stream = handle("stream", number(current));
    return flags ? INVALID_VALUE : SUCCESS;
}

int cuStreamDestroy_v2(void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    return release(stream);
}

/* ---- Memory ---- */

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    if (fails(__func__)) return UNKNOWN;
    struct heap *heap = here();
    const size_t bytes = (size + PAGE - 1) / PAGE * PAGE + PAGE; /* ends with bytes that stay 0 */
    if (!heap->base) {
        heap->base =
            mmap(NULL, HEAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        madvise(heap->base, HEAP, MADV_HUGEPAGE); /* few pages: open_memory is faster */
    }
    if (!size) return INVALID_VALUE;
    if (heap->base == MAP_FAILED || size > fake_cuda.memory - heap->live ||
        bytes > HEAP - heap->used || heap->n_buffers == MAX_BUFFERS)
        return OUT_OF_MEMORY;
    heap->buffer[heap->n_buffers].at = heap->used;
    heap->buffer[heap->n_buffers++].size = size;
    *address = (uintptr_t)heap->base + heap->used;
    heap->used += bytes;
    heap->live += size;
    fake_cuda.live++;
    return SUCCESS;
}

/* Makes all memory accessible, or not. */
static void open_memory(bool access)
{
    struct heap *heap = here();
    const size_t bytes = (heap->used + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    mprotect(heap->base, bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* Page-locked memory. */
static struct {
    char *data;
    size_t size;
} locked;

int cuMemHostAlloc(void **data, size_t size, unsigned flags)
{
    if (fake_cuda.fail_locked || locked.data) return OUT_OF_MEMORY;
    *data = locked.data = malloc(size);
    locked.size = size;
    fake_cuda.live++;
    fake_cuda.locked++;
    return flags ? INVALID_VALUE : SUCCESS;
}

/* What a stream does later: here as late as possible, when something waits for it. */
static struct {
    int n;
    struct later {
        void *stream, *to;
        const void *from; /* NULL: zeros */
        size_t size;
        int device;
    } item[MAX_LATER];
} later;

/* Several threads copy at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Does what the stream, or with NULL any stream of the device, has for later. */
static void catch_up(const void *stream)
{
    int kept = 0;
    if (later.n == 0) return;
    open_memory(true);
    for (int i = 0; i < later.n; i++) {
        const struct later *l = &later.item[i];
        if (stream ? l->stream != stream : l->device != number(current))
            later.item[kept++] = *l;
        else if (l->from)
            memcpy(l->to, l->from, l->size);
        else
            memset(l->to, 0, l->size);
    }
    open_memory(false);
    later.n = kept;
}

/* Ends the process if a kernel has written past the end of a buffer. */
static void check_end(const struct fake_buffer *b)
{
    struct heap *heap = here();
    open_memory(true);
    const char *at = heap->base + b->at + b->size, *end = at + PAGE;
    while (at < end && *at == 0) at++;
    if (at < end) {
        fprintf(stderr, "a kernel wrote past the end of a buffer of %zu bytes\n", b->size);
        abort();
    }
    open_memory(false);
}

int cuMemFree_v2(uint64_t address)
{
    if (fails(__func__)) return UNKNOWN;
    struct heap *heap = here();
    catch_up(NULL);
    for (int i = 0; i < heap->n_buffers; i++) {
        if (!heap->buffer[i].size || (uintptr_t)heap->base + heap->buffer[i].at != address)
            continue;
        check_end(&heap->buffer[i]);
        heap->live -= heap->buffer[i].size;
        heap->buffer[i].size = 0;
        fake_cuda.live--;
        if (++heap->n_free == heap->n_buffers) {
            madvise(heap->base, heap->used, MADV_DONTNEED);
            heap->used = 0;
            heap->n_buffers = heap->n_free = 0;
        }
        return SUCCESS;
    }
    return INVALID_VALUE;
}

/* Whether a copy is within one buffer. */
static bool is_memory(uint64_t address, size_t size)
{
    struct heap *heap = here();
    for (int i = 0; i < heap->n_buffers; i++) {
        const uintptr_t base = (uintptr_t)heap->base + heap->buffer[i].at;
        if (address >= base && address - base <= heap->buffer[i].size &&
            size <= heap->buffer[i].size - (address - base))
            return true;
    }
    return false;
}

/* What copies have not read is lost. */
int cuMemFreeHost(void *data)
{
    if (data != locked.data) return INVALID_VALUE;
    locked.data = NULL;
    int kept = 0;
    for (int i = 0; i < later.n; i++)
        if (!later.item[i].from) later.item[kept++] = later.item[i];
    later.n = kept;
    return release(data);
}

static int add_later(void *stream, void *to, const void *from, size_t size)
{
    if (later.n == MAX_LATER) catch_up(NULL);
    later.item[later.n++] = (struct later){stream, to, from, size, number(current)};
    return SUCCESS;
}

/* Whether it is a stream of the thread's device. */
static bool is_stream(const char *stream)
{
    return current && strncmp(stream, "stream", 6) == 0 && number(stream) == number(current);
}

int cuStreamSynchronize(void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    if (!is_stream(stream)) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    catch_up(stream);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t size, void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    if (!is_memory(to, size)) return ILLEGAL_ADDRESS;
    return byte || !is_stream(stream) ? INVALID_VALUE
                                      : add_later(stream, (void *)(uintptr_t)to, NULL, size);
}

static int copy(void *to, const void *from, size_t size, const void *on_device, void *stream)
{
    if (!is_stream(stream)) return INVALID_VALUE;
    if (++fake_cuda.copies == fake_cuda.fail_copy) return ILLEGAL_ADDRESS;
    if (!is_memory((uintptr_t)on_device, size)) return ILLEGAL_ADDRESS;
    if (locked.data && (const char *)from >= locked.data &&
        (const char *)from + size <= locked.data + locked.size)
        return add_later(stream, to, from, size);
    catch_up(stream);
    open_memory(true);
    memcpy(to, from, size);
    open_memory(false);
    return SUCCESS;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    pthread_mutex_lock(&lock);
    const int result = copy((void *)(uintptr_t)to, from, size, (void *)(uintptr_t)to, stream);
    pthread_mutex_unlock(&lock);
    return result;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    if (!is_memory(from, size)) return ILLEGAL_ADDRESS;
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size, (void *)(uintptr_t)to,
                stream);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    return copy(to, (void *)(uintptr_t)from, size, (void *)(uintptr_t)from, stream);
}

/* ---- Code ---- */

struct link {
    char code[CODE_SIZE];
    int n;
};

int cuLinkCreate_v2(unsigned n, int *options, void **values, void **link)
{
    if (fails(__func__)) return UNKNOWN;
    (void)options;
    (void)values;
    *link = calloc(1, sizeof(struct link));
    fake_cuda.live++;
    return n ? INVALID_VALUE : SUCCESS;
}

int cuLinkAddData_v2(void *link, int kind, void *data, size_t size, const char *name, unsigned n,
                     int *options, void **values)
{
    if (fails(__func__)) return UNKNOWN;
    (void)name;
    (void)options;
    (void)values;
    const char *ptx = data;
    if (kind != ENGINE_GPU_LINK_PTX || n || !size || ptx[size - 1] || strlen(ptx) + 1 != size ||
        !strstr(ptx, ".target sm_80"))
        return INVALID_PTX;
    ((struct link *)link)->n++;
    return SUCCESS;
}

int cuLinkComplete(void *link, void **code, size_t *size)
{
    if (fails(__func__)) return UNKNOWN;
    struct link *l = link;
    snprintf(l->code, sizeof l->code, "code of %d texts", l->n);
    *code = l->code;
    *size = sizeof l->code;
    fake_cuda.links++;
    return SUCCESS;
}

int cuLinkDestroy(void *link)
{
    if (fails(__func__)) return UNKNOWN;
    return release(link);
}

int cuModuleLoadData(void **module, const void *code)
{
    if (fails(__func__)) return UNKNOWN;
    int n;
    if (sscanf(code, "code of %d texts", &n) != 1 || n == 0) return INVALID_IMAGE;
    *module = handle("module", number(current));
    return SUCCESS;
}

int cuModuleUnload(void *module)
{
    if (fails(__func__)) return UNKNOWN;
    return number(module) == number(current) ? release(module) : INVALID_VALUE;
}

int cuModuleGetFunction(void **kernel, void *module, const char *name)
{
    if (fails(__func__)) return UNKNOWN;
    void (*function)(const void *) = emulator_kernel(name);
    memcpy(kernel, &function, sizeof function);
    return strncmp(module, "module", 6) == 0 && function ? SUCCESS : NOT_FOUND;
}

/* Kernels whose blocks may have more shared memory than others. */
static struct {
    void *kernel;
    unsigned shared;
} large[MAX_LARGE];

int cuFuncSetAttribute(void *kernel, int attribute, int value)
{
    if (fails(__func__)) return UNKNOWN;
    if (attribute != ENGINE_GPU_KERNEL_SHARED || value < 0 || value > MAX_SHARED)
        return INVALID_VALUE;
    int i = 0;
    while (i < MAX_LARGE && large[i].kernel && large[i].kernel != kernel) i++;
    if (i == MAX_LARGE) return INVALID_VALUE;
    large[i].kernel = kernel;
    large[i].shared = (unsigned)value;
    return SUCCESS;
}

static unsigned shared_of(const void *kernel)
{
    unsigned shared = 48 << 10;
    for (int i = 0; i < MAX_LARGE; i++)
        if (large[i].kernel == kernel) shared = large[i].shared;
    return shared;
}

/* A started kernel, or one that a graph has. */
struct launch {
    void (*kernel)(const void *);
    struct emulator_grid grid;
    void *arguments;
};

static struct graph {
    int n;
    struct launch launch[MAX_LAUNCHES];
} * collecting;

static void log_launch(const struct launch *launch)
{
    void *kernel;
    Dl_info info;
    memcpy(&kernel, &launch->kernel, sizeof kernel);
    if (is_logging && dladdr(kernel, &info) && info.dli_sname)
        fprintf(stderr, "%s %u x %u blocks of %u threads\n", info.dli_sname, launch->grid.x,
                launch->grid.y, launch->grid.threads);
}

/* With accessible memory. */
static int run_launch(const struct launch *launch)
{
    log_launch(launch);
    fake_cuda.blocks += (uint64_t)launch->grid.x * launch->grid.y;
    if (++fake_cuda.launches == fake_cuda.fail_launch) return LAUNCH_FAILED;
    return emulator_run(launch->kernel, launch->arguments, &launch->grid, fake_cuda.seed++)
               ? SUCCESS
               : LAUNCH_FAILED;
}

/* The bytes of a kernel's arguments (quant/gpu/dialect.h). */
static size_t arguments_size(const void *kernel)
{
    Dl_info info;
    char name[256];
    if (!dladdr(kernel, &info) || !info.dli_sname) return 0;
    snprintf(name, sizeof name, "%s_arguments", info.dli_sname);
    const size_t *size = dlsym(RTLD_DEFAULT, name);
    return size ? *size : 0;
}

int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void *stream,
                   void **arguments, void **extra)
{
    if (fails(__func__)) return UNKNOWN;
    struct launch launch = {.grid = {x, y, threads_x, shared}, .arguments = arguments[0]};
    memcpy(&launch.kernel, &kernel, sizeof launch.kernel);
    if (z != 1 || threads_y != 1 || threads_z != 1 || extra || !x || !y || y > 65535 ||
        shared > shared_of(kernel))
        return INVALID_VALUE;
    if (!collecting) {
        catch_up(stream);
        open_memory(true);
        const int result = run_launch(&launch);
        open_memory(false);
        return result ? result : is_stream(stream) ? SUCCESS : INVALID_VALUE;
    }
    const size_t size = arguments_size(kernel);
    if (!size || collecting->n == MAX_LAUNCHES) return INVALID_VALUE;
    launch.arguments = malloc(size);
    memcpy(launch.arguments, arguments[0], size);
    collecting->launch[collecting->n++] = launch;
    return SUCCESS;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    if (fails(__func__)) return UNKNOWN;
    (void)stream;
    if (collecting || mode != ENGINE_GPU_CAPTURE_THREAD) return INVALID_VALUE;
    collecting = calloc(1, sizeof *collecting);
    return SUCCESS;
}

int cuStreamEndCapture(void *stream, void **graph)
{
    (void)stream;
    *graph = collecting;
    collecting = NULL;
    if (*graph) fake_cuda.live++;
    return fails(__func__) ? UNKNOWN : *graph ? SUCCESS : INVALID_VALUE;
}

int cuGraphDestroy(void *graph)
{
    if (fails(__func__)) return UNKNOWN;
    for (int i = 0; i < ((struct graph *)graph)->n; i++)
        free(((struct graph *)graph)->launch[i].arguments);
    return release(graph);
}

int cuGraphInstantiate_v2(void **prepared, void *graph, void **node, char *log, size_t log_size)
{
    if (fails(__func__)) return UNKNOWN;
    struct graph *copy = malloc(sizeof *copy);
    if (node || log || log_size) return INVALID_VALUE;
    memcpy(copy, graph, sizeof *copy);
    for (int i = 0; i < copy->n; i++) {
        void *kernel;
        memcpy(&kernel, &copy->launch[i].kernel, sizeof kernel);
        const size_t size = arguments_size(kernel);
        copy->launch[i].arguments = malloc(size);
        memcpy(copy->launch[i].arguments, ((struct graph *)graph)->launch[i].arguments, size);
    }
    fake_cuda.live++;
    *prepared = copy;
    return SUCCESS;
}

int cuGraphExecDestroy(void *prepared)
{
    if (fails(__func__)) return UNKNOWN;
    return cuGraphDestroy(prepared);
}

int cuGraphLaunch(void *prepared, void *stream)
{
    if (fails(__func__)) return UNKNOWN;
    const struct graph *graph = prepared;
    fake_cuda.graphs++;
    int result = SUCCESS;
    catch_up(stream);
    open_memory(true);
    for (int i = 0; i < graph->n && result == SUCCESS; i++) result = run_launch(&graph->launch[i]);
    open_memory(false);
    return result ? result : is_stream(stream) ? SUCCESS : INVALID_VALUE;
}
