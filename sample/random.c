/* sample/random.c: random numbers: PCG32 with XSH-RR output and one fixed stream. See
 * sample/sample.h. */
#include "sample/sample.h"

void sample_random_seed(struct sample_random *r, uint64_t seed)
{
    const uint64_t stream = 54;
    r->state = 0;
    r->step = stream << 1 | 1;
    sample_random_u32(r);
    r->state += seed;
    sample_random_u32(r);
}

uint32_t sample_random_u32(struct sample_random *r)
{
    uint64_t old = r->state;
    r->state = old * 6364136223846793005u + r->step;
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

double sample_random_unit(struct sample_random *r)
{
    return sample_random_u32(r) * 0x1p-32;
}
