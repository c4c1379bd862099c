# infer: build, test, run, bench, install. `make help` lists the targets.
#
# The default build is portable: kernels for AVX2 and AVX-512 are compiled by function attribute and
# chosen at run time. SAN=address,undefined (or thread) builds into a folder of its own.

CC      ?= cc
AR      ?= ar
STRIP   ?= strip
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
SAN     ?=
MACHINE := $(shell $(CC) -dumpmachine)
# Folders named as a system or a processor hold what differs (base/os.h); those of others are not compiled.
MACOS   := $(if $(findstring macos,$(MACHINE))$(findstring darwin,$(MACHINE)),yes)
FOREIGN := $(if $(findstring x86_64,$(MACHINE)),,x86) $(if $(findstring aarch64,$(MACHINE))$(findstring arm64,$(MACHINE)),,arm) \
           $(if $(MACOS),linux,macos)

comma := ,
BUILD := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

# -ffp-contract=off: fma only where the source says so (docs/design.md, canonical arithmetic).
# -fno-math-errno, -fno-trapping-math: no change of results, lets sqrt and selects become instructions.
# Sanitized code is compiled at -O2: at -O3 the unrolled kernels take minutes. -g1 has functions and
# lines: the locations of variables (-g) cost a quarter of the compile time (docs/testing.md).
CFLAGS   ?= $(if $(SAN),-O2,-O3) -g1
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wpointer-arith
# The version and the day of its release stand in VERSION and nowhere else. SOVERSION counts the
# incompatible changes of lib/infer.h.
VERSION   := $(word 1,$(file < VERSION))
RELEASED  := $(word 2,$(file < VERSION))
SOVERSION := 0
CPPFLAGS += -I. -D_GNU_SOURCE -DPCRE2_CODE_UNIT_WIDTH=8 -DINFER_VERSION='"$(VERSION)"' \
            -DINFER_RELEASED='"$(RELEASED)"'
# -fPIC with hidden symbols: the same objects make the program and the shared library. Sections of
# their own: what a program does not use is left out. Tables for unwinding would be installed, 0.2 MB.
ALL_CFLAGS := -std=gnu17 $(CFLAGS) $(WARNINGS) -ffp-contract=off -fno-math-errno \
              -fno-trapping-math -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections \
              -fno-asynchronous-unwind-tables -pthread $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
              -fno-omit-frame-pointer)
LDFLAGS  += -pthread $(if $(MACOS),-Wl$(comma)-dead_strip,-Wl$(comma)--build-id -Wl$(comma)--gc-sections) $(if $(SAN),-fsanitize=$(SAN))
LDLIBS   := -lpcre2-8 -lutf8proc -ljansson -ldl -lm

# `infer chat` edits lines by libedit. EDIT=no: it reads them as they are typed, without a history.
EDIT     ?= yes
EDITS    := $(filter yes,$(EDIT))
CLI_LIBS := $(if $(EDITS),-ledit)

ROOMS := base quant gguf engine models text sample generate chat lib
# The .c files of rooms and their floors.
sources = $(foreach file,$(wildcard $(foreach room,$(1),$(room)/*.c $(room)/*/*.c $(room)/*/*/*.c)),\
            $(if $(filter $(FOREIGN),$(subst /, ,$(file))),,$(file)))
LIB_SRC  := $(call sources,$(ROOMS))
# Addresses that the loader adjusts take 0.13 MB less in the packed form, which glibc 2.36 and later know.
hash := \#
PACKED := $(if $(findstring x86_64,$(MACHINE)),$(shell printf '$(hash)include <features.h>\n$(hash)if __GLIBC_PREREQ(2, 36)\nyes\n$(hash)endif\n' | \
                                                       $(CC) -E -P -x c - 2>/dev/null))
LDFLAGS += $(if $(findstring yes,$(PACKED)),-Wl$(comma)-z$(comma)pack-relative-relocs)
# Code for GPUs (docs/gpu.md): compiled by GPU_CC for the program, and by CC for test/emulator.c.
GPU_SRC := $(wildcard quant/gpu/*.c engine/gpu/device/*.c)
GPU_OBJ := $(GPU_SRC:%.c=$(BUILD)/%.o) $(BUILD)/test/emulator.o
# The same in all builds, sanitized or not.
PTX     := $(firstword $(subst /san-, ,$(BUILD)))
GPU_PTX := $(GPU_SRC:%.c=$(PTX)/%.ptx)
LIB_SRC := $(filter-out $(GPU_SRC),$(LIB_SRC))
CLI_SRC  := $(filter-out $(if $(EDITS),%/chat_editor_none.c,%/chat_editor.c %/chat_history.c),$(call sources,cli))
TEST_SRC := $(wildcard test/test_*.c)
# What measures is not built under sanitizers.
TOOL_SRC := $(wildcard test/tool_*.c $(if $(SAN),,test/bench/bench_*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(BUILD)/%.o)
TEST_BIN := $(TEST_SRC:test/%.c=$(BUILD)/test/%)
TOOL_BIN := $(TOOL_SRC:test/%.c=$(BUILD)/test/%)
SUPPORT_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/support*.c test/bench/support*.c))

# `infer pull` needs libcurl's header; the library is loaded when the command runs. CURL=no: without.
CURL ?= $(if $(shell echo '$(hash)include <curl/curl.h>' | $(CC) -E -x c - >/dev/null 2>&1 && echo yes),yes,no)

# Code for GPUs needs clang with NVIDIA's target, and xz. GPU=no: without.
GPU_CC ?= clang
GPU    ?= $(if $(findstring nvptx64,$(shell $(GPU_CC) --print-targets 2>/dev/null)),$(if $(shell command -v xz),yes,no),no)

# Progress: on a terminal one line, "[n/m] what", that is overwritten; otherwise a line for each tenth of
# the steps. m is the number of steps that a dry run counts. V=1 shows whole commands.
Q := $(if $(V),,@)
ifeq (,$(V)$(COUNTING)$(filter run test test-long setup clean help format compdb,$(MAKECMDGOALS)))
steps := $(shell $(MAKE) -n --no-print-directory $(MAKEOVERRIDES) COUNTING=yes CURL=$(CURL) GPU=$(GPU) $(MAKECMDGOALS) 2>/dev/null | \
                 grep -c '^: step')
done  :=
endif
next_step = $(eval done += x)$(words $(done))
shown     = $(if $(MAKE_TERMOUT),printf '\r[%d/%d] %s %s\033[K' $$n $(steps) $(1) $(2); [ $$n -lt $(steps) ] || echo, \
            [ $$((n * 10 / $(steps))) -eq $$(((n - 1) * 10 / $(steps))) ] || echo "[$$n/$(steps)] $(1) $(2)")
say       = $(if $(V),,$(if $(COUNTING),: step,@n=$(next_step); $(call shown,$(1),$(2))))
.PHONY: fuzz static dist all run test test-long check setup bench install uninstall clean lint format compdb help tests objects
.DELETE_ON_ERROR:

all: $(BUILD)/infer
	@echo 'next: make run (fetches a small model and asks it), or $< -m FILE.gguf -p "a question"'

help:
	@echo 'make                 build build/infer'
	@echo 'make run             install what is missing, build, fetch the default model, ask it something'
	@echo 'make test            set up and run the short suite, two minutes (SAN=address,undefined or SAN=thread: sanitized)'
	@echo 'make test-long       the whole suite, a quarter of an hour'
	@echo 'make check           the short suite without set-up'
	@echo 'make bench           speed on this machine'
	@echo 'make lint            layout, names, sizes, include order, globals'
	@echo 'make format          apply .clang-format'
	@echo 'make fuzz            build the fuzz targets, build/fuzz/TARGET (needs clang)'
	@echo 'make compdb          compile_commands.json for clangd'
	@echo 'make install         into $$(DESTDIR)$$(PREFIX), without symbols (STRIP=: keeps them)'
	@echo 'make static          build/infer-static, one file that needs no libraries'
	@echo 'make dist            a release as a tarball'
	@echo 'make uninstall       remove what `make install` installed'
	@echo 'make clean           remove what was built'
	@echo 'V=1 shows whole commands'

$(BUILD)/infer: $(CLI_OBJ) $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(CLI_LIBS)

$(BUILD)/libinfer.a: $(LIB_OBJ)
	@rm -f $@
	@$(AR) rcs $@ $^

# The shared library of lib/infer.h.
$(BUILD)/libinfer.so.$(SOVERSION): $(LIB_OBJ) lib/infer.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=lib/infer.map -Wl,-z,defs \
	    -o $@ $(LIB_OBJ) $(LDLIBS)

# The program as one file for any Linux of this processor. A static program can load no library at
# run time: it has neither `pull` (libcurl), --blas (OpenBLAS) nor --gpu (the driver, liblzma), and says so.
LOADERS := cli/pull/http engine/cpu/matmul/blas engine/gpu/driver engine/gpu/gpu_code
LOADER_OBJ := $(LOADERS:%=$(BUILD)/static/%.o)
static: $(BUILD)/infer-static
$(BUILD)/infer-static: $(LOADER_OBJ) $(filter-out $(LOADERS:%=$(BUILD)/%.o),$(CLI_OBJ)) $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(CC) -static-pie $(LDFLAGS) -o $@ $^ $(LDLIBS) $(CLI_LIBS) $(if $(EDITS),-ltinfo -lbsd -lmd)
	$(Q)$(STRIP) $@
$(LOADER_OBJ): $(BUILD)/static/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) -DINFER_STATIC $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Files of a level of 64-bit ARM are compiled for it: some compilers have its intrinsics only then.
%_dotprod.o: ALL_CFLAGS += -march=armv8.2-a+dotprod
%_i8mm.o: ALL_CFLAGS += -march=armv8.2-a+dotprod+i8mm

# Scalar forms of every op and type, which -O3 unrolls to 0.3 MB more: processors with AVX2 or
# NEON have kernels instead. Of the search in books of vectors the form with AVX2, too: quantizing is rare.
SCALAR := engine/cpu/isa/vec_scalar engine/cpu/isa/attn_scalar quant/block32/block32_types quant/super/k_types quant/super/grid_types \
    quant/super/book_types quant/super/vector_types quant/encode/grid_fit quant/encode/vector_fit quant/x86/vector_fit_avx2
$(SCALAR:%=$(BUILD)/%.o): private ALL_CFLAGS := $(subst -O3,-O2,$(ALL_CFLAGS))
# Of sanitized kernels, checks that intrinsics repeat at each access take three quarters of the compile time:
# whether a pointer is null, aligned, wraps or left its block. Those of memory, shifts, ranges and overflow remain.
KERNELS := $(patsubst %.c,$(BUILD)/%.o,$(filter quant/x86/% engine/cpu/x86/%,$(LIB_SRC)))
$(if $(SAN),$(eval $(KERNELS): private ALL_CFLAGS += -fno-sanitize=null,alignment,pointer-overflow,object-size \
    -fno-sanitize-address-use-after-scope))
# What does not compute for long: for size, which makes it a quarter smaller (0.3 MB).
SMALL := $(patsubst %.c,$(BUILD)/%.o,$(filter gguf/% engine/graph/% engine/gpu/% models/% generate/% chat/% text/chat/% text/jinja/%,$(LIB_SRC))) \
    $(patsubst %,$(BUILD)/sample/constrain/%.o,schema_read schema_expand schema_ref grammar_read) $(CLI_OBJ)
$(SMALL): private ALL_CFLAGS := $(subst -O3,-Os,$(ALL_CFLAGS))

# Changes a file only if its text changes; +: also in a dry run, which otherwise takes it for changed.
keep = +@mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' > $@

# The commit, when this folder is a checkout's top: for `infer version --json`.
COMMIT := $(shell [ -z "$$(git rev-parse --show-cdup 2>&1)" ] && git describe --always --dirty \
                  --abbrev=12 --exclude '*' 2>/dev/null)
$(BUILD)/cli/cmd/cmd_version.o: CPPFLAGS += -DCLI_COMMIT='"$(COMMIT)"'
$(BUILD)/cli/cmd/cmd_version.o: $(BUILD)/commit
$(BUILD)/commit: FORCE
	$(call keep,$(COMMIT))

# See CURL above.
$(BUILD)/cli/pull/http.o: CPPFLAGS += $(if $(filter yes,$(CURL)),-DCLI_HAS_CURL)
$(BUILD)/cli/pull/http.o: $(BUILD)/curl
$(BUILD)/curl: FORCE
	$(call keep,$(CURL))

# All PTX in the program: texts that end with a zero byte, without comments and most spaces, compressed. sm_80: GPUs from
# 2020 on; PTX 7.0: drivers from R450 on. C has no word for a kernel, so that is written into the functions that clang compiled.
# The second clang only writes them as PTX: it optimizes nothing, and so adds no fma (scripts/lint). Kernels of tiles
# state their threads, and that a multiprocessor has two blocks: its registers suffice for both. Functions are convergent: what
# all lanes must reach together is not moved into a condition.
GPU_TARGET := --target=nvptx64-nvidia-cuda -march=sm_80 -Xclang -target-feature -Xclang +ptx70 \
              $(if $(filter arm,$(FOREIGN)),,-DENGINE_ATTN_PLANES=1)
GPU_CFLAGS := $(GPU_TARGET) -std=gnu17 -O2 $(WARNINGS) -ffp-contract=off -fno-math-errno \
              -Xclang -fconvergent-functions -nostdlibinc -isystem quant/gpu/libc -I.
$(PTX)/%.ll: %.c $(PTX)/gpu.flags
	@mkdir -p $(@D)
	$(call say,GPU,$<)
	$(Q)$(GPU_CC) $(GPU_CFLAGS) -MMD -MP -MF $(@:.ll=.gpu.d) -S -emit-llvm -o $@ $<
	@sed -i -e 's/^define \(dso_local \)\?void @\(quant\|engine\)_gpu_/define ptx_kernel void @\2_gpu_/' \
	    -e 's/^define dso_local /define internal /' -e 's/^\(@.* = \)dso_local \(local_unnamed_addr \)\?constant /\1internal constant /' $@
$(PTX)/%.ptx: $(PTX)/%.ll
	$(Q)$(GPU_CC) $(GPU_TARGET) -O2 -Xclang -disable-llvm-passes -S -x ir -o $@ $<
	@sed -i -e '/entry \(quant_gpu_tile_\|engine_gpu_attention_tile\)/,/^{/s/^{/.maxntid 256, 1, 1\n.minnctapersm 2\n{/' $@
$(PTX)/gpu.ptx.xz: $(GPU_PTX)
	$(Q)for file in $^; do sed -e 's/^\t//' -e 's/ \t/ /' -e 's/, /,/g' -e 's,//.*,,' -e '/^$$/d' $$file; printf '\0'; done | \
	    xz -T1 --check=crc32 --lzma2=preset=9e,dict=4MiB,pb=0,nice=96 > $@

.SECONDARY: $(GPU_PTX:.ptx=.ll)

$(BUILD)/engine/gpu/gpu_code.o: $(BUILD)/gpu $(if $(filter yes,$(GPU)),$(PTX)/gpu.ptx.xz)
$(BUILD)/engine/gpu/gpu_code.o: private CPPFLAGS += $(if $(filter yes,$(GPU)),-DENGINE_GPU_PTX='"$(PTX)/gpu.ptx.xz"')
$(PTX)/gpu.flags: FORCE
	$(call keep,$(GPU_CC) $(GPU_CFLAGS))
$(BUILD)/gpu: FORCE
	$(call keep,$(GPU))

# Rebuilds everything when the compiler or its flags change.
$(BUILD)/flags: FORCE
	$(call keep,$(CC) $(CPPFLAGS) $(ALL_CFLAGS))
FORCE:

# A test may add link options: LDFLAGS_test_name = ...
# Lets the test make each allocation fail in turn.
LDFLAGS_test_gguf_alloc = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray \
                          -Wl,--wrap=strdup,--wrap=realpath,--wrap=asprintf
LDFLAGS_test_json_load  = -Wl,--wrap=malloc
# Counts the allocations of a run.
WRAP_MALLOC := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
LDFLAGS_test_graph      = $(WRAP_MALLOC) -Wl,--wrap=engine_cpu_op_of
LDFLAGS_test_token_loop = $(WRAP_MALLOC)
LDFLAGS_test_draft = $(WRAP_MALLOC)

# Kernels for GPUs in the emulator, which finds them by name.
$(GPU_OBJ) $(BUILD)/test/fake_cuda.o: private ALL_CFLAGS += -fvisibility=default
$(BUILD)/test/test_gpu_kernels: $(GPU_OBJ)
FAKE_GPU_TESTS := choose_keys compress gpu gpu_attention gpu_joins gpu_models gpu_products gpu_unary op_table ops ops_experts ops_low_rank ops_move ops_recurrent
$(FAKE_GPU_TESTS:%=$(BUILD)/test/test_%): $(GPU_OBJ) $(BUILD)/test/fake_cuda.o
$(foreach test,gpu_kernels $(FAKE_GPU_TESTS),$(eval LDFLAGS_test_$(test) = -rdynamic))

# Rooms' tests have no command line but these files.
$(BUILD)/test/test_sandbox: $(BUILD)/cli/linux/sandbox_linux.o
$(BUILD)/test/test_progress: $(BUILD)/cli/progress.o
$(BUILD)/test/test_bench_ratio: $(BUILD)/cli/out/bench_ratio.o
$(BUILD)/test/test_cli_policy: $(filter-out %/main.o,$(CLI_OBJ))
$(BUILD)/test/test_cli_policy: LDLIBS += $(CLI_LIBS)

$(TEST_BIN): $(BUILD)/test/%: $(BUILD)/test/%.o $(SUPPORT_OBJ) $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $(LDFLAGS_$*) -o $@ $(filter %.o,$^) $(BUILD)/libinfer.a -lcmocka $(LDLIBS)

$(TOOL_BIN): $(BUILD)/test/%: $(BUILD)/test/%.o $(SUPPORT_OBJ) $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# The fuzz targets with a plain main(), for their seeds; see `fuzz` below.
FUZZ_TARGETS := $(filter-out main,$(patsubst test/fuzz_%.c,%,$(wildcard test/fuzz_*.c)))
FUZZ_CLI_SRC := $(filter-out cli/main.c,$(CLI_SRC))
FUZZ_SEED_BIN := $(FUZZ_TARGETS:%=$(BUILD)/test/fuzz_%)
$(FUZZ_SEED_BIN): %: %.o $(BUILD)/test/fuzz_main.o $(FUZZ_CLI_SRC:%.c=$(BUILD)/%.o) \
             $(BUILD)/test/support_gguf.o $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS) $(CLI_LIBS)

# Preloaded by test/cli/t_memory.sh; a sanitizer has an allocator of its own.
FAIL_ALLOC := $(if $(SAN),,$(BUILD)/test/fail_alloc.so)
$(BUILD)/test/fail_alloc.so: test/fail_alloc.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fvisibility=default -shared -o $@ $< -ldl

# A driver for a GPU, on the emulator, for test/cli/t_machine.sh.
FAKE_CUDA := $(if $(SAN),,$(BUILD)/test/libcuda.so.1)
$(BUILD)/test/libcuda.so.1: $(GPU_OBJ) $(BUILD)/test/fake_cuda.o $(BUILD)/test/support_random.o $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-soname,$(@F) -o $@ $^ $(LDLIBS)

tests: $(TEST_BIN) $(TOOL_BIN) $(FUZZ_SEED_BIN) $(FAIL_ALLOC) $(FAKE_CUDA)

# Compiles what `all` and `tests` link.
objects: $(LIB_OBJ) $(CLI_OBJ) $(FUZZ_SEED_BIN:=.o) $(BUILD)/test/fuzz_main.o $(TEST_BIN:=.o) $(TOOL_BIN:=.o) $(SUPPORT_OBJ) $(GPU_OBJ) $(BUILD)/test/fake_cuda.o

setup:
	@scripts/setup build test

# Prints the answer of the default model to one question.
run:
	@scripts/setup build
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/infer
	@scripts/fetch-model
	$(BUILD)/infer -p "What is the capital of France?" -n 64 --temp 0
	@echo 'next: $(BUILD)/infer -p "a question of yours", or $(BUILD)/infer chat; sudo make install: as infer'

test test-long: setup
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/infer tests
	@scripts/fetch-model
	@$(if $(filter test,$@),INFER_TEST_QUICK=1) test/run $(BUILD)

check: $(BUILD)/infer tests
	@INFER_TEST_QUICK=1 test/run $(BUILD)

bench: $(BUILD)/infer
	@scripts/fetch-model
	$(BUILD)/infer bench

lint: $(BUILD)/infer
	@scripts/lint $(BUILD)

# Compile commands for clangd, from a dry run: no further tool is needed.
compdb:
	@$(MAKE) --no-print-directory -Bn V=1 all tests | scripts/compdb > compile_commands.json

# $(BUILD)/infer keeps the symbols of the installed program and has its build id.
BIN     = $(DESTDIR)$(PREFIX)/bin
DATA    = $(DESTDIR)$(PREFIX)/share
LIB     = $(DESTDIR)$(LIBDIR)
INCLUDE = $(DESTDIR)$(PREFIX)/include
SO     := libinfer.so.$(SOVERSION)
# A release has the man page and the completions as files, for builds whose program does not run here.
MAN    := $(if $(wildcard man/infer.1),man,$(BUILD)/man)
install: $(BUILD)/infer $(BUILD)/$(SO) $(BUILD)/infer.pc $(addprefix $(MAN)/,infer.1 bash zsh fish)
	install -d $(BIN) $(INCLUDE) $(LIB)/pkgconfig $(DATA)/doc/infer/docs/tour $(DATA)/man/man1 \
	    $(DATA)/bash-completion/completions $(DATA)/zsh/site-functions \
	    $(DATA)/fish/vendor_completions.d
	install -m 755 $(BUILD)/infer $(BIN)/infer
	install -m 644 $(BUILD)/$(SO) $(LIB)/$(SO)
	$(STRIP) $(BIN)/infer
	$(STRIP) --strip-unneeded $(LIB)/$(SO)
	ln -sf $(SO) $(LIB)/libinfer.so
	install -m 644 lib/infer.h $(INCLUDE)/infer.h
	install -m 644 $(BUILD)/infer.pc $(LIB)/pkgconfig/infer.pc
	install -m 644 README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE debian/copyright $(DATA)/doc/infer
	install -m 644 docs/*.* $(DATA)/doc/infer/docs
	install -m 644 docs/tour/* $(DATA)/doc/infer/docs/tour
	install -m 644 $(MAN)/infer.1 $(DATA)/man/man1/infer.1
	install -m 644 $(MAN)/bash $(DATA)/bash-completion/completions/infer
	install -m 644 $(MAN)/zsh $(DATA)/zsh/site-functions/_infer
	install -m 644 $(MAN)/fish $(DATA)/fish/vendor_completions.d/infer.fish

uninstall:
	rm -f $(BIN)/infer $(LIB)/$(SO) $(LIB)/libinfer.so $(INCLUDE)/infer.h $(LIB)/pkgconfig/infer.pc \
	    $(DATA)/man/man1/infer.1 $(DATA)/bash-completion/completions/infer \
	    $(DATA)/zsh/site-functions/_infer $(DATA)/fish/vendor_completions.d/infer.fish
	rm -rf $(DATA)/doc/infer

$(BUILD)/infer.pc: lib/infer.pc.in VERSION FORCE
	@mkdir -p $(@D)
	@sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' $< > $@

# What the program says about itself, as files.
$(BUILD)/man/infer.1: $(BUILD)/infer
	@mkdir -p $(@D)
	$(BUILD)/infer man > $@

$(addprefix $(BUILD)/man/,bash zsh fish): $(BUILD)/man/%: $(BUILD)/infer
	@mkdir -p $(@D)
	$(BUILD)/infer completion $(@F) > $@

-include $(LIB_OBJ:.o=.d) $(LOADER_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(SUPPORT_OBJ:.o=.d) $(GPU_OBJ:.o=.d) $(BUILD)/test/fake_cuda.d $(GPU_PTX:.ptx=.gpu.d) $(TEST_SRC:%.c=$(BUILD)/%.d) $(TOOL_SRC:%.c=$(BUILD)/%.d) \
         $(FUZZ_SEED_BIN:=.d) $(BUILD)/test/fuzz_main.d

# Fuzz targets (test/fuzz.h): build/fuzz/TARGET CORPUS, with the seeds of test/data/fuzz/TARGET. The kernels
# of quant/ and engine/ are taken as they are: instrumented they compile for half an hour, and tests
# hold them between guard pages.
FUZZ := clang $(CPPFLAGS) -std=gnu17 -O1 -g -ffp-contract=off -fno-sanitize-recover=all
FUZZ_OBJ := $(patsubst %.c,build/fuzz/obj/%.o,$(filter-out quant/% engine/%,$(LIB_SRC)) $(FUZZ_CLI_SRC) \
                                          test/support_gguf.c)
fuzz: $(FUZZ_TARGETS:%=build/fuzz/%)
build/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<
$(FUZZ_TARGETS:%=build/fuzz/%): build/fuzz/%: build/fuzz/obj/test/fuzz_%.o $(FUZZ_OBJ) $(BUILD)/libinfer.a
	$(call say,LINK,$@)
	$(Q)$(FUZZ) -fsanitize=fuzzer,address,undefined -o $@ $^ -lcmocka $(LDLIBS) $(CLI_LIBS)
.SECONDARY: $(FUZZ_TARGETS:%=build/fuzz/obj/test/fuzz_%.o)
-include $(FUZZ_OBJ:.o=.d) $(FUZZ_TARGETS:%=build/fuzz/obj/test/fuzz_%.d)

# A tarball of the commit with the man page and the completions as files; the same bytes in any folder.
DIST := infer-$(VERSION)
dist: $(addprefix $(BUILD)/man/,infer.1 bash zsh fish)
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)/dist/$(DIST)
	@git archive HEAD | tar -x -C $(BUILD)/dist/$(DIST)
	@cp -r $(BUILD)/man $(BUILD)/dist/$(DIST)/man
	@tar -C $(BUILD)/dist --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	    --mtime="$$(git log -1 --format=%cI)" -cf - $(DIST) | gzip -9n > $(BUILD)/$(DIST).tar.gz
	@sed "s|@VERSION@|$(VERSION)|; s|@SHA256@|$$(sha256sum < $(BUILD)/$(DIST).tar.gz | cut -c-64)|" \
	    packaging/infer.rb.in > $(BUILD)/infer.rb
	@echo $(BUILD)/$(DIST).tar.gz $(BUILD)/infer.rb

format:
	git ls-files '*.c' '*.h' | grep -v _tables | xargs clang-format -i

clean:
	rm -rf build compile_commands.json
