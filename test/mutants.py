"""test/mutants.py: one-line changes of policy, which tests must notice (scripts/mutants).

A row: file, text of one line (it occurs once in the file), replacement, test program or script, behaviour; and for a
change that no test can notice, the reason.
"""
MUTANTS = []


def of(file, test, *rows):
    for row in rows:
        old, new, behaviour, *more = row
        MUTANTS.append((file, old, new, more[1] if len(more) > 1 else test, behaviour, *more[:1]))


# ---- Scheduler ----
of("generate/scheduler.c", "test_scheduler_policy",
   (".since > s->slot[i].since; k--)", ".since < s->slot[i].since; k--)", "the oldest prompt is read first"),
   ("for (; k > 0 && s->slot[s->order[k - 1]].since", "for (; k > UINT32_MAX - 1 && s->slot[s->order[k - 1]].since",
    "age, not the slot, is the order of prompts"),
   ("if (saved <= most) continue;", "if (most && saved >= most) continue;",
    "the prefix that saves the most tokens is kept"),
   (">= n) saved += n - held;", ">= n) saved += 1;", "savings count tokens, not jobs"),
   ("if (n < held + LEAST_SHARED || n == best) continue;", "if (n <= held || n == best) continue;",
    "a prefix is kept only for 8 tokens or more"),
   ("if (job->n_passed >= PASSES_A_SLOT * s->n_slots) return false;",
    "if (job->n_passed >= UINT32_MAX) return false;", "a waiting job is not passed for ever"),
   ("PASSES_A_SLOT = 4,", "PASSES_A_SLOT = 3,", "four passes for each slot"),
   ("before->n_passed++;", "before->n_passed = 1;", "each pass counts"),
   ("LEAST_SHARED = 8,", "LEAST_SHARED = 9,", "a job waits for a prefix of 8 tokens"),
   (">= now + LEAST_SHARED) return true;", ">= LEAST_SHARED) return true;",
    "a job does not wait for what it could fork already"),
   ("if (s->sequence[k].last_used < s->sequence[to].last_used) to = k;",
    "if (s->sequence[k].last_used > s->sequence[to].last_used) to = k;",
    "the least recently used prefix is replaced"),
   ("s->sequence[from].last_used = s->sequence[to].last_used = ++s->clock;",
    "s->sequence[to].last_used = ++s->clock;", "a fork counts as a use of its source"),
   ("if (held && source == i) return i;", "if (held > SIZE_MAX / 2 && source == i) return i;",
    "a job gets the slot that has its prefix"),
   ("s->sequence[i].last_used < s->sequence[best].last_used) best = i;",
    "s->sequence[i].last_used > s->sequence[best].last_used) best = i;",
    "another job gets the least recently used slot"),
   ("if (n == 1) n_tokens = add_tokens(s, s->order[k], ids, 1, 1, n_tokens, &n_rows);",
    "if (n == 1 && n_tokens < s->n_step / 2) n_tokens = add_tokens(s, s->order[k], ids, 1, 1, n_tokens, &n_rows);",
    "every text gets a token in each step"),
   ("const size_t room = s->n_step > n_tokens ? s->n_step - n_tokens : n_read == 0;",
    "const size_t room = s->n_step > n_tokens ? s->n_step - n_tokens : 0;",
    "the oldest prompt goes on in a full step"),
   (": n_read == 0;", ": 1;", "only the oldest prompt goes on in a full step"),
   ("if (mark > length_of(s, i)) piece = min_size(piece, mark - length_of(s, i));", "(void)mark;",
    "a prompt stops where its shared prefix ends"),
   ("*s->end = job;", "job->next = s->first; s->first = job; if (s->n_waiting) { s->n_waiting++; return; }",
    "jobs start in the order of arrival"),
   )

# ---- Embeddings ----
of("generate/embed.c", "test_embed",
   ("if (e->rows == MODEL_POOL_CLS) return i == 0;", "if (e->rows == MODEL_POOL_CLS) return i == n - 1;",
    "cls is the first token's row"),
   ("pooled[i] = (float)(e->sum[i] / (double)text->n);", "pooled[i] = (float)e->sum[i];", "a mean is divided by the tokens"),
   ("if (p == 0) return largest / 32760;", "if (p == 0) return largest;", "max scales to 16-bit integers"),
   )
of("models/state/kv_cache.c", "test_kv_cache",
   ("if (kv->both) return position > kv->window / 2 ? position - kv->window / 2 : 0;",
    "if (kv->both) return position > kv->window ? position - kv->window : 0;", "an encoder's window reaches half its size back"),
   ("return position + s->kv.window / 2 + 1;", "return position + 1;", "and half its size ahead"),
   )

# ---- Kernels for GPUs ----
of("quant/gpu/gpu_gemv.c", "test_gpu_kernels",
   ("gpu_sync_warp(); /* all terms are written */", "", "terms are complete before they are added"),
   ("gpu_sync_warp(); /* all terms are read */", "", "terms are added before the next ones replace them"),
   ("for (int i = 0; i < n; i++) acc += v[gpu_lane()][i];", "for (int i = n; i-- > 0;) acc += v[gpu_lane()][i];",
    "terms are added in ascending order"),
   ("n_blocks - b < QUANT_GPU_TERMS ?", "n_blocks - b > QUANT_GPU_TERMS ?", "the last terms are fewer"),
   ("for (int h = 8; h; h /= 2)", "for (int h = 1; h < 16; h *= 2)", "the tree of lanes begins with the farthest"),
   ("for (int64_t i = first + 1; i >= first; i--) {", "for (int64_t i = first; i <= first + 1; i++) {",
    "the odd element of a pair comes first"),
   ("if (row < p->n_rows && gpu_lane() % 16 == 0)", "if (row <= p->n_rows && gpu_lane() % 16 == 0)",
    "nothing is written past the last row"),
   )
of("quant/gpu/gpu_quantize.c", "test_gpu_kernels",
   ("for (int mask = GPU_WARP / 2; mask; mask /= 2) {", "for (int mask = GPU_WARP / 4; mask; mask /= 2) {",
    "the largest element is that of all lanes"),
   ("quantize(&p, 8, 2, false);", "quantize(&p, 8, 4, false);", "q8_256 has a sum for each 16 elements"),
   ("if (b >= p->k / (GPU_WARP * per_lane)) return;", "if (b > p->k / (GPU_WARP * per_lane)) return;",
    "nothing is written past the last block"),
   ("to.bf16[i] = 0;", "to.bf16[i] = 1;", "columns of BF16 end with zeros"),
   )
of("engine/gpu/machine_code.c", "test_gpu",
   ("base_checksum(code, size, 0) == checksum &&", "", "damaged machine code is compiled anew"),
   ("if (ok && path) store(path, code, size);", "", "machine code is compiled once"),
   )
of("engine/gpu/gpu_device.c", "test_gpu",
   ("return !gpu->failure.code || base_fail(err, gpu->failure.code", "return err || base_fail(err, gpu->failure.code",
    "a failed start fails the run"),
   ("driver.memory_set(address, 0, size,", "driver.memory_set(address, 1, size,", "buffers read as zeros"),
   )
of("engine/gpu/gpu_mul_mat.c", "test_gpu",
   ("if (i == 0 || w->type->act != p.w[i - 1]->type->act)", "if (i == 0)", "each weight has columns of its form"),
   ("return bytes * p.x->ne[1];", "return bytes;", "scratch is for all columns"),
   ("out += w->ne[1] * (int64_t)sizeof(float);", "", "results of several weights are adjacent"),
   )
of("engine/gpu/device/gpu_attention.c", "test_gpu_models",
   ("gpu_sync(); /* codes, c and lanes of all sub-blocks are written */", "", "weights are complete before values are added"),
   ("gpu_sync(); /* the sum is written; codes, c and lanes are read */", "", "weights are read before the next chunk's"),
   ("fmaf(next->o[i], now, sum->o[i] * before);", "fmaf(next->o[i], before, sum->o[i] * now);", "each chunk has its own factor"),
   ("q->first < q->end ? q->end : 0", "q->end", "a range without keys has no chunk", None, "test_gpu_attention"),
   ("s -= slope * fabsf((float)distance);", "s -= slope * (float)distance;", "ALiBi has absolute distances", None, "test_gpu_attention"),
   ("distance < -radius ? -radius", "distance < -radius ? radius", "biases end at the farthest distance", None, "test_gpu_attention"),
   ("sum->l = sum->l * e + v_exp(sink - m * LN_2);", "sum->l = sum->l + v_exp(sink - m * LN_2);", "a sink changes the base", None,
    "test_gpu_attention"),
   ("if (element_of(i) < q->dv) next.o[i] =", "if (i == 0) next.o[i] =", "wide heads have several elements a thread", None, "test_gpu_attention"),
   ("if (next_is_in) sum = fmaf(next_w, next_inverse, sum);", "if (next_is_in && is_in == false) sum = fmaf(next_w, next_inverse, sum);",
    "both halves of a sub-block have weights"),
   (".first = range[1] < 0 ? 0 : range[1],", ".first = 0,", "a range has a first key"),
   ("const int64_t kv = head / (p.q.ne[1] / p.k.ne[1]);", "const int64_t kv = head % p.k.ne[1];",
    "consecutive heads share keys"),
   ("q->shared->query_scale = scale * q->p->scale;", "q->shared->query_scale = scale;", "scores have the scale"),
   )
of("engine/gpu/device/gpu_experts.c", "test_ops_experts",
   ("gpu_sync_warp(); /* all scores are written */", "", "scores are complete before experts are chosen"),
   ("gpu_sync_warp(); /* the scores of groups are written, those of experts read */", "",
    "scores of groups are complete before groups are masked"),
   ("gpu_sync_warp(); /* groups are masked */", "", "groups are masked before experts are chosen"),
   ("(scores[h] == scores[g] && h > g)", "(scores[h] == scores[g] && h < g)", "of equal groups the lower ones remain"),
   ("(uint32_t)~expert", "(uint32_t)expert", "of equal experts the lower one comes first"),
   ("w[u] /= sum < 0x1p-14f", "w[u] *= 1.0f / sum < 0x1p-14f", "weights are divided by their sum"),
   )
of("engine/gpu/device/gpu_recurrent.c", "test_op_table",
   ("(count > other ? count : other)", "count", "the lanes of a warp have the longer of two spans"),
   ("fmaf(s, decay, 0.0f) : s * decay;", "s * decay : fmaf(s, decay, 1.0f);", "each element of a state has its decay", None, "test_ops_recurrent"),
   ("out = fmaf(*s, element(r, i), out);", "out += *s * element(r, i);", "outputs are added with one rounding"),
   ("after[i * channels] = conv_input(&p, &span, channel, span.count + i);",
    "after[i * channels] = conv_input(&p, &span, channel, i);", "a convolution keeps the last inputs", None, "test_gpu_models"),
   )
of("engine/gpu/device/gpu_float_rows.c", "test_op_table",
   ("fmaf(gpu_float(&p.x, &at), scale * p.factor, 0.0f),", "fmaf(gpu_float(&p.x, &at), p.factor, 0.0f),", "an update has a scale"),
   )
of("engine/gpu/gpu_products.c", "test_op_table",
   (".repeat = p.x->ne[1] == 1 ? p.ids->ne[0] : 1,", ".repeat = 1,", "the experts of a token read the same row"),
   )
of("engine/gpu/device/gpu_norm.c", "test_gpu_models",
   ("for (int h = 8; h; h /= 2) sum +=", "for (int h = 1; h < 16; h *= 2) sum +=", "sums of rows are a tree"),
   ("y = fmaf(y, 1.0f, -mean);", "y -= 0.0f;", "a norm subtracts the mean"),
   )
of("engine/gpu/device/gpu_map.c", "test_gpu_models",
   ("return is_first ? fmaf(a, cosine, -(b * sine)) : fmaf(b, cosine, a * sine);",
    "return is_first ? a * cosine - b * sine : b * cosine + a * sine;", "a rotation has one rounding less"),
   ("*out = v_unary(p.unary, a) * b;", "*out = a * v_unary(p.unary, b);", "the gate has the function"),
   )

# ---- Layers on a GPU ----
of("cli/gpu_layers.c", "t_gpu.sh",
   ("*n = g->n_layers < all ? g->n_layers : all;", "*n = all;", "a number of layers is at most that number"),
   ("if (bytes <= room)", "if (bytes <= room || k == *n)", "layers that do not fit remain on the processor"),
   ("most = k - 1;", "most = 0;", "as many layers as fit are on the GPU"),
   ("g.fits |= typed && strcmp(typed, \"--gpu\") != 0;", "(void)typed;", "-ngl works without a GPU"),
   ("if (m->adapters.count)", "if (m->adapters.count > 9)", "adapters need the processor"),
   )
of("models/session.c", "t_gpu.sh",
   ("for (int i = 1; i < KEPT_GRAPHS; i++) model_graph_free(&s->body[i]);", "",
    "where memory is short, a graph replaces the others"),
   )
of("models/weights.c", "t_gpu.sh",
   ("w->placed_bytes -= (uint64_t)engine_tensor_bytes(t);", "", "shared embeddings are in both places"),
   )

# ---- Requests ----
of("generate/thought.c", "test_generate",
   ("t->owed = left / 4;", "t->owed = left / 16;", "a quarter of the limit is left for the answer"),
   ("if (shortest != UINT64_MAX && shortest > t->owed) t->owed = shortest;",
    "if (shortest != UINT64_MAX && shortest < t->owed) t->owed = shortest;",
    "or the tokens of the shortest answer, if these are more"),
   ("(t->driver && left <= after)))", "(t->driver && left < after)))",
    "the closing mark begins with exactly these tokens left"),
   ("t->left--;", "t->left -= t->left > 1;", "a limit of reasoning tokens"),
   ("const uint64_t after = t->close.count + ", "const uint64_t after = ",
    "the closing mark does not take tokens of the answer"),
   )
of("generate/request.c", "test_generate",
   ("const uint64_t room = r->n_ctx - r->n_held + 1;", "const uint64_t room = r->n_ctx - r->n_held;",
    "the last token needs no room in the context"),
   ("else if (r->outcome.n_generated == r->options->max_tokens)",
    "else if (r->outcome.n_generated > r->options->max_tokens)", "a text has at most the tokens of its limit"),
   ("else if (r->n_held > r->n_ctx)", "else if (r->n_held >= r->n_ctx)", "a text fills the context"),
   ("size_t n = p->n_held < p->n ? p->n_held : p->n - 1;", "size_t n = 0;",
    "what the caller has put into the sequence is kept", None, "test_scheduler_policy"),
   ("while (n < r->n_held && n + 1 < p->n &&", "while (n < r->n_held && n + 2 < p->n &&",
    "all ids of a prompt but the last are reused"),
   )
of("generate/constraint_driver.c", "test_in_time",
   ("rest == UINT64_MAX ? rest : 4 * rest + TRIES;", "rest == UINT64_MAX ? rest : rest + TRIES;",
    "without a token for each byte, four tokens for each byte are assumed"),
   ("!can_complete(d, token, left - 1, &fits, err))", "!can_complete(d, token, left, &fits, err))",
    "after a token one fewer is left"),
   ("*fits = *fits && d->n_plan <= left;", "*fits = *fits && d->n_plan < left;",
    "a completion may take all tokens that are left"),
   ("*fits = rest != UINT64_MAX && rest <= left;", "*fits = rest != UINT64_MAX;",
    "a text that needs more tokens than are left is not begun"),
   ("d->mask[(uint32_t)*id >> 6] &= ~(1ull << (*id & 63));", "d->mask[(uint32_t)*id >> 6] &= ~0ull;",
    "a token that does not fit is not tried again"),
   )

of("generate/stop.c", "test_stop",
   ("if (p->at > keep) {", "if (p->at >= keep && p->at) {", "the longest begun stop text is held back",
    "of two texts of the same length that are held back, either has the same bytes"),
   ("p->size > complete) {", "p->size >= complete) {", "of stop texts that end together the longest, then the first counts"),
   ("if (complete > 0) keep = complete;", "if (complete > 1) keep = complete;",
    "a stop text of one byte is cut off too"),
   ("size_t release = held + 1 - keep;", "size_t release = held;", "only what cannot begin a stop text is shown"),
   ("while (p->at > 0 && p->text[p->at] != byte) p->at = p->fall[p->at];",
    "if (p->at > 0 && p->text[p->at] != byte) p->at = p->fall[p->at];", "a stop text may begin within another try"),
   )
of("generate/score.c", "test_score",
   ("if (shared < LEAST_SHARED) return true;", "return true;",
    "the common prefix of groups is evaluated once"),
   ("return n ? n - 1 : 0;", "return n;", "the token before the first one that counts is evaluated in its group"),
   ("if (r->from == n && n < r->n &&", "if (r->from == n && n + 1 < r->n &&", "the token after a prefix counts"),
   )
of("generate/statistics.c", "test_score",
   ("return variance > 0 ? sqrt(variance / (double)(m->count - 1)) : 0;",
    "return variance > 0 ? sqrt(variance / (double)m->count) : 0;", "the error of a mean is that of a sample"),
   ("return n < 2 ? 0 : sqrt(share * (1 - share) / (double)(n - 1));",
    "return n < 2 ? 0 : sqrt(share * (1 - share) / (double)n);", "and so is that of a share"),
   ("const double place = fraction * (double)(n - 1);", "const double place = fraction * (double)n;",
    "quantiles interpolate between the first and the last value"),
   )

# ---- Samplers ----
of("sample/set_sums.c", "test_sample",
   ("lane[i % 4] += (double)weight[i] * own.sum;", "lane[i % 4] += (double)weight[i];",
    "the total counts every candidate of a block"),
   )
of("sample/draw.c", "test_sample",
   ("if (a->pending == id) {", "if (a->pending >= 0) {", "adaptive-p learns only from what it drew"),
   )
of("sample/draw.c", "test_samplers",
   ("if (!(k >= 1.0)) return 1;", "if (!(k >= 1.0)) return 2;", "mirostat keeps a candidate"),
   ("return k < n ? (uint32_t)k : set->n_vocab;", "return k < n ? (uint32_t)k + 1 : set->n_vocab;",
    "mirostat's number of candidates is rounded down"),
   ("target = target < 0.0 ? 0.0 : target > 1.0 ? 1.0 : target;", "target = target < 0.0 ? 0.0 : target;",
    "adaptive-p's target is a probability"),
   )
of("sample/truncate.c", "test_samplers",
   ("if (!(sample_random_unit(&s->random) < (double)s->options.xtc_probability)) return;",
    "if (!(sample_random_unit(&s->random) <= (double)s->options.xtc_probability / 2)) return;",
    "XTC acts with its probability"),
   ("if (sample_set_weight(set, c.logit, best) < least) continue;",
    "if (sample_set_weight(set, c.logit, best) <= least * 1.05) continue;", "XTC's threshold is included"),
   ("if (n < 2) return;", "if (n < 3) return;", "of two likely candidates XTC removes one"),
   ("o->xtc_threshold <= 0.5f", "o->xtc_threshold <= 0.4f", "XTC acts up to a threshold of one half"),
   ("const double low = temp > range ? temp - range : 0.0,", "const double low = temp - range,",
    "a dynamic temperature is not negative"),
   ("if (sums.n < 2) return temp;", "if (sums.n < 3) return temp;", "a dynamic temperature for two candidates"),
   ("sample_set_keep_list(set, sample_set_select(set, n, best, threshold, NULL, NULL) + 1);",
    "sample_set_keep_list(set, sample_set_select(set, n, best, threshold, NULL, NULL) + 2);",
    "top-p keeps the fewest candidates"),
   )
of("sample/penalty.c", "test_sample",
   ("if (last_n >= 0 && (uint32_t)last_n < n_ctx) r->size = (uint32_t)last_n;",
    "if (last_n > 0 && (uint32_t)last_n < n_ctx) r->size = (uint32_t)last_n + 1;",
    "penalties forget what is older than their window"),
   ("if (old >= 0 && --p->count[old] == 0) {", "if (old >= 0 && --p->count[old] > 0) {",
    "an id that left the window is not penalized"),
   ("logit > 0.0f ? logit / o->repeat_penalty : logit * o->repeat_penalty",
    "logit / o->repeat_penalty", "a penalty lowers negative logits too"),
   )
of("sample/dry.c", "test_samplers",
   ("if (limit < allowed) return;", "if (limit <= allowed) return;", "DRY allows its length, no more"),
   ("if (length < allowed) continue;", "if (length <= allowed) continue;",
    "a repetition of the allowed length is penalized"),
   ("if (length + 1 > d->repeat[id]) d->repeat[id] = length + 1;", "d->repeat[id] = length + 1;",
    "the longest repetition counts"),
   ("if (breaker_ends(d, &d->text, before)) d->since = 0;", "if (breaker_ends(d, &d->text, before)) d->since = 1;",
    "a repetition ends at a breaker"),
   )
of("sample/logprob.c", "test_sample",
   ("(a.logprob == b.logprob && a.id < b.id)", "(a.logprob == b.logprob && a.id > b.id)",
    "of equal probabilities the smaller id comes first"),
   )

# ---- Constraints ----
of("sample/constrain/schema_number.c", "test_schema_numbers",
   ("INT_DIGITS = 16, DIGITS = 15 };", "INT_DIGITS = 16, DIGITS = 17 };",
    "numbers with a point have 15 digits"),
   ("INT_DIGITS = 16,", "INT_DIGITS = 15,", "integers have up to 16 digits"),
   ("GENERATE_TEXT = 32,", "GENERATE_TEXT = 33,", "generated numbers have less than 32 bytes"),
   ("f.number.phase == EXP_INTS))", "false))", "exponents have two digits"),
   ("(size + !is_whole(phase) >= GENERATE_TEXT", "(size >= GENERATE_TEXT", "a point leaves room for a digit"),
   ("return min == UINT32_MAX ? min : min + 1;", "return min;", "the first digit is a byte"),
   ("negative + 1 < positive ? negative + 1 : positive;", "negative + 1 < positive ? negative : positive;",
    "the sign is a byte"),
   ("if (order < 0 || (order == 0 && c->open_min)) return false;", "if (order < 0) return false;",
    "an exclusive minimum excludes itself", None, "test_schema"),
   ("if (order > 0 || (order == 0 && c->open_max)) return false;", "if (order > 0) return false;",
    "an exclusive maximum excludes itself", None, "test_schema"),
   ("uint32_t more = k + (f ? f + 1 : 0);", "uint32_t more = k + f;", "the point is a byte"),
   ("if (d.ints == 0) return min_from_begin(c, true);", "if (d.ints == 0) return min_from_begin(c, false);",
    "after a sign the number is negative"),
   ("__int128 lo = negative ? -(value + span - step) : value;",
    "__int128 lo = negative ? -(value + span) : value;", "the largest continuation of a negative number"),
   )

# ---- State of sequences ----
of("models/state/kv_cache.c", "test_kv_cache",
   ("if (j < length / n * n) {", "if (j < length) {", "a fork does not share an incomplete group"),
   ("if (j < length / n * n) {", "if (j + n < length / n * n) {", "a fork shares every complete group"),
   ("*oldest + slots->capacity <= position;", "*oldest + slots->capacity < position;",
    "slots of a window are freed"),
   ("return position + 1 > kv->window ? position + 1 - kv->window : 0;",
    "return position > kv->window ? position - kv->window : 0;", "a window includes the query"),
   ("if (kv->chunked) return position / kv->window * kv->window;", "if (kv->chunked) return 0;",
    "a chunk begins at a multiple of its size"),
   ("first_seen(&s->kv, length) >= s->kv.slots[MODEL_KV_SLIDING].oldest[seq];",
    "first_seen(&s->kv, length) > s->kv.slots[MODEL_KV_SLIDING].oldest[seq];",
    "a sequence goes back as far as keys are kept"),
   ("const uint64_t kept = shape->window ? min_u32(o->n_ctx, seen + batch) : o->n_ctx;",
    "const uint64_t kept = shape->window ? min_u32(o->n_ctx, seen) : o->n_ctx;",
    "a window has room for a batch"),
   ("if (length == 0) slots->oldest[seq] = 0;", "", "an empty sequence begins anew"),
   ("for (uint32_t j = s->length[seq]; j > length && j > slots->oldest[seq]; j--)",
    "for (uint32_t j = s->length[seq]; j > length + 1 && j > slots->oldest[seq]; j--)",
    "truncation frees every slot above"),
   )
of("models/state/recurrent.c", "test_snapshots",
   ("if (may_go(r, seq, i) && cost < best_cost) {", "if (may_go(r, seq, i) && cost > best_cost % 1000) {",
    "the snapshot that is recomputed fastest is evicted"),
   ("const uint32_t cost = list[i].length - (i ? list[i - 1].length : 0);", "const uint32_t cost = list[i].length;",
    "the cost is the distance from the snapshot before"),
   ("return i + 1 < r->n_snapshot[seq] && list_of(r, seq)[i].length != r->start[seq];",
    "return i + 1 < r->n_snapshot[seq];", "the beginning of the latest batch is kept"),
   ("if (may_go(r, seq, i) && !list[i].border) drop(r, seq, i);", "if (may_go(r, seq, i)) drop(r, seq, i);",
    "borders of prompts are kept"),
   ("if (*count && n > 1) list[*count - 1].border = true;", "", "the beginning of a prompt is a border"),
   (".border = n > 1};", ".border = true};", "single tokens are no borders"),
   ("enum { MIN_SNAPSHOTS = 4,", "enum { MIN_SNAPSHOTS = 3,", "at least 4 snapshots"),
   ("SNAPSHOT_BYTES = 256 * 1024 * 1024 };", "SNAPSHOT_BYTES = 128 * 1024 * 1024 };", "256 MB of snapshots"),
   ("if (list_of(r, seq)[i].length <= length) return list_of(r, seq)[i].length;",
    "if (list_of(r, seq)[i].length < length) return list_of(r, seq)[i].length;",
    "a sequence goes back to exactly a snapshot"),
   ("if (theirs->length > length) break;", "if (theirs->length >= length) break;",
    "a fork has the snapshot at its end"),
   )

# ---- RoPE, attention ----
of("models/block/rope.c", "test_rope",
   ("return b->state->n_ctx > (uint32_t)rope->n_ctx_orig ? ends->rope_long : ends->rope_short;",
    "return b->state->n_ctx >= (uint32_t)rope->n_ctx_orig ? ends->rope_long : ends->rope_short;",
    "the original length has the factors of short contexts"),
   ("!read_alpha(r, max, rope)))", "!read_alpha(r, (uint32_t)rope->n_rot, rope)))",
    "alpha's exponent is of the size of the head"),
   ("if (ends->rope_freqs) return ends->rope_freqs;", "if (ends->rope_freqs && !ends->rope_long) return ends->rope_freqs;",
    "factors for all contexts come first"),
   ("s->factor > 0.0f && !gguf_str_is(s->type, \"none\") ?", "s->factor > 0.0f ?", "the type none does not scale"),
   ("model_reader_has(r, \"rope.scaling.factor\") ?", "!model_reader_has(r, \"rope.scale_linear\") ?",
    "the newer key of the factor counts"),
   ("if (row->window.rope == MODEL_WINDOW_ROPE_OWN) rope->freq_base = 10000.0f;", "",
    "layers with a window have their own base"),
   ("rope->attn_factor /= 1.0f - 0.1f * s->log_multiplier * logf(rope->freq_scale);",
    "rope->attn_factor *= 1.0f - 0.1f * s->log_multiplier * logf(rope->freq_scale);",
    "the log multiplier divides the magnitude"),
   ("uint32_t n_orig = p->n_ctx_train;", "uint32_t n_orig = 0;", "the original length is that of training"),
   )
of("engine/cpu/attention/attention_chunk.c", "test_attention",
   ("while (2 * n <= run->dst->src[ENGINE_ATTENTION_Q]->ne[1]) n *= 2;", "n = run->dst->src[ENGINE_ATTENTION_Q]->ne[1];",
    "ALiBi's slopes for heads that are no power of two"),
   ("(double)(2 * (head - n) + 1) / 2;", "(double)(head - n + 1) / 2;",
    "the further heads have every other slope"),
   ("fabsf((float)(lo + j - t->self[i]));", "fabsf((float)(lo + j + 1 - t->self[i]));", "the query's own key has no bias"),
   )

# ---- Templates ----
of("text/jinja/jinja_filter_list.c", "test_template",
   ("*out = c->self->iter->seq->item[c->self->iter->at++];", "*out = c->self->iter->seq->item[c->self->iter->at];",
    "`first` takes an item of a generator"),
   ("if (order <= 0) continue;", "if (order < 0) continue;", "of equal items the first is the minimum"),
   )
of("text/jinja/jinja_value.c", "test_template",
   ("reverse ? order > 0 : order < 0", "reverse ? order >= 0 : order <= 0", "sorting is stable"),
   )

# ---- The command line ----
of("cli/chat/chat_history.c", "test_cli_policy",
   ("enum { LINES_MAX = 1000,", "enum { LINES_MAX = 999,", "the history has 1000 lines"),
   ("++n_lines == LINES_MAX) break;", "++n_lines > LINES_MAX) break;", "the file is cut to 1000 lines"),
   ("if (start > all.size / 2) shorten(", "if (start > 0) shorten(", "the file is cut only when half of it is old"),
   ("if (h->path.size && text[0] != '/' &&", "if (h->path.size &&", "commands are not written"),
   ("&& !memchr(text, '\\n', size)) append(", ") append(", "texts of several lines are not written"),
   ("O_NONBLOCK, 0600);", "O_NONBLOCK, 0644);", "only the owner reads the history"),
   )
of("cli/cache/cache_folder.c", "test_cli_policy",
   ("return x->used_ns < y->used_ns ? 1 : -1;", "return x->used_ns > y->used_ns ? 1 : -1;",
    "the least recently used entry goes first"),
   ("f->bytes <= limit - size;", "f->bytes < limit - size;", "entries may fill the limit exactly"),
   ("f->n_left <= CLI_CACHE_FILES_KEPT) return;", "f->n_left < CLI_CACHE_FILES_KEPT) return;", "1024 entries are kept"),
   ("st.st_mtim.tv_sec < time(NULL) - OLD_SECONDS &&", "", "a young incomplete file is kept"),
   ("flock(fd, LOCK_EX | LOCK_NB) == 0)", "true)", "a locked incomplete file is kept"),
   ("f->bytes -= file->size;", "", "removed entries free their bytes"),
   )
of("cli/user_folder.c", "test_cli_policy",
   ("!(st->st_mode & (S_IWGRP | S_IWOTH));", "!(st->st_mode & S_IWOTH);", "what a group can write to is not read"),
   )
of("cli/pull/partial.c", "test_cli_policy",
   ("return is_known && fits && strcmp(text, same) == 0 ? done : 0;", "return is_known && fits ? done : 0;",
    "bytes of another version are discarded"),
   ("return is_known && fits &&", "return fits &&", "bytes without a version are discarded"),
   ("done <= (uint64_t)st.st_size &&", "true &&", "a file that became shorter is begun anew"),
   ("p->done != (uint64_t)p->version.size)", "p->done > (uint64_t)p->version.size)", "a file that is too short is refused"),
   ("else if (p->version.sha256[0] && strcmp(sum, p->version.sha256) != 0)", "else if (!*sum)",
    "a file with another checksum is refused"),
   ("if (is_empty) unlink(p->part.data);", "", "no empty file is left"),
   )
of("cli/pull/http.c", "test_cli_policy",
   ("0.25 * (double)(1 << (n % 8));", "0.25 * (double)(n % 8 + 1);", "pauses double"),
   ("told >= 0 && told <= WAIT_MAX ?", "told > 0 && told < WAIT_MAX ?", "a server may say how long to wait"),
   )
of("cli/options.c", "test_cli_policy",
   ("return again || reset(g, o, err);", "return true;", "a list of a line replaces the command's"),
   ("if (!reset(g, o, err)) return false;", "", "an option of the command that a line's contradicts is absent"),
   )
of("chat/messages.c", "test_cli_policy",
   ("if (strcmp(chat_messages_role(list, i), \"user\") == 0) return i;",
    "if (strcmp(chat_messages_role(list, i), \"assistant\") != 0) return i;", "a turn begins with the user's message"),
   ("if (has) json_array_remove(list, 0);", "", "there is one system message"),
   ("if (ok && system && !chat_messages_n_system(list))", "if (ok && system)", "a line's own system message counts"),
   )

# ---- Texts ----
of("text/tokenizer/merge.c", "test_tokenizer_cases",
   ("if (last.key <= m->heap[child].key) break;", "if (last.key < m->heap[child].key) break;",
    "pairs are merged in the order of their rank", "pairs with equal keys are the same pair"),
   ("(uint64_t)key << 32 | (uint32_t)left,", "(uint64_t)key << 32 | ~(uint32_t)left,",
    "of pairs of one rank the leftmost is merged first"),
   ("if (!a->size || !b->size || a->size + b->size != c.size) continue;", "if (!a->size || !b->size) continue;",
    "a pair that changed is not merged"),
   )
of("text/tokenizer/spm.c", "test_tokenizer_cases",
   ("*key = bits >> 31 ? bits : 0x7fffffffu - bits;", "*key = bits >> 31 ? 0x7fffffffu - bits : bits;",
    "the largest score is merged first"),
   ("if (id < 0) id = text_find_token(t, byte, 1);", "", "a byte without a byte token is a token of one byte", None,
    "test_vocab_policy"),
   ("t->add_space_prefix && first)", "t->add_space_prefix)", "a text that continues another gets no space", None,
    "test_vocab_policy"),
   )
of("text/tokenizer/unigram.c", "test_tokenizer_cases",
   ("if (score > b->score) *b =", "if (score >= b->score) *b =", "of equal divisions the first is chosen"),
   ("if (!has_token) extend_path(l, start + n, sum + u->unknown_score, t->unk, start);",
    "extend_path(l, start + n, sum + u->unknown_score + 100, t->unk, start);", "an unknown token only where no token begins"),
   )
of("text/tokenizer/wordpiece.c", "test_tokenizer_cases",
   ("w->out->count = n_before;", "", "a word that tokens cannot form is one unknown token"),
   ("bool alone = is_punctuation(code, category) || is_cjk(code);", "bool alone = is_punctuation(code, category);",
    "a Chinese character is a word"),
   )
of("text/tokenizer/partition.c", "test_vocab",
   ("if (x != y) return x > y ? -1 : 1;", "if (x != y) return x > y ? 1 : -1;", "the longest special token is cut out first"),
   )
of("text/tokenizer/special.c", "test_vocab_policy",
   ("if (id >= 0 && f->ends) t->is_end[id] = 1;", "if (id >= 0) t->is_end[id] = 1;",
    "only some fill-in-the-middle tokens end a text"),
   )
of("text/chat/reply.c", "test_reply",
   (" && ++r->tries == MAX_TRIES) reject_call(r);", ") reject_call(r);", "a closing mark within a string does not end a call"),
   ("r->escaped = c == '\\\\';", "r->escaped = false;", "an escaped quote does not end a string"),
   )

# ---- Routes of products ----
of("engine/cpu/matmul/route.c", "test_matmul",
   ("enum { IN_PLACE_COLS = 2 * ENGINE_TILE_COLS };", "enum { IN_PLACE_COLS = ENGINE_TILE_COLS };",
    "up to 16 columns are multiplied in place"),
   ("columns <= ENGINE_MATMUL_GEMV_COLS || columns <= few)", "columns <= ENGINE_MATMUL_GEMV_COLS)",
    "a type's few columns are a gemv"),
   ("return max_columns <= 2 * ENGINE_TILE_COLS || (dual_512", "return max_columns < 2 * ENGINE_TILE_COLS || (dual_512",
    "blocks of k for up to 16 columns"),
   ("(dual_512 && layout == QUANT_LAYOUT_256);", "dual_512;", "and for super-blocks with two ports"),
   )

# ---- Commands ----
of("cli/cache/prefix_cache.c", "t_cache.sh",
   ("LEAST = 32, ", "LEAST = 8, ", "fewer than 32 tokens are not stored"),
   ("if ((n - n_stored) * WORTH < n || ", "if (", "a few more tokens are not stored again"),
   ("if (x->common != y->common) return x->common < y->common ? 1 : -1;",
    "if (x->common != y->common) return x->common > y->common ? 1 : -1;", "the entry with the longest prefix is loaded"),
   )
of("cli/pull/pull.c", "t_pull.sh",
   ("if (!p->request.again || p->failures >= p->d->options->retries) return false;",
    "if (!p->request.again || p->failures > p->d->options->retries) return false;", "as many attempts as --retries says"),
   )
