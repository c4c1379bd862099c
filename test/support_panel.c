/* test/support_panel.c: see support_panel.h. */
#include "test/support_panel.h"
#include "quant/arm/panel_arm.h"
#include "test/support.h"

/* Bytes of a block of a panel. */
size_t support_panel_size(const struct quant_type *type, int unit)
{
    const bool small = type->act->layout == QUANT_LAYOUT_32;
    if (unit == 4)
        return small ? sizeof(struct quant_arm_panel32_4) : sizeof(struct quant_arm_panel256_4);
    if (unit == 8)
        return small ? sizeof(struct quant_arm_panel32_8) : sizeof(struct quant_arm_panel256_8);
    return small ? sizeof(struct quant_panel32) : sizeof(struct quant_panel256);
}

/* Element i of row r of a form in units of quant/arm/panel_arm.h. */
static int unit_at(const int8_t *q, int unit, int i, int r)
{
    return q[i / unit * 16 * unit + r * unit + i % unit];
}

/* Converts a block of a panel in units to the form of the type's scalar panel. */
void support_panel_of_units(const struct quant_type *type, const struct quant_panel_form *form,
                            const void *from, void *to)
{
    const int unit = form->unit, numbers = 4 * unit, offset = type->scalar.panel->offset;
    const bool small = type->act->layout == QUANT_LAYOUT_32;
    const float *d = from, *m = d + numbers;
    const int32_t *scale = (const int32_t *)from + 2 * numbers;
    const int8_t *min = (const int8_t *)(scale + 16 * numbers);
    const int8_t *q = small ? (const int8_t *)scale : min + 256;
    struct quant_panel32 *p32 = to;
    struct quant_panel256 *p256 = to;
    assert_true(unit == 4 || unit == 8);
    for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
        const int at = unit == 4 ? r : r / 2 * 4 + r % 2; /* and two numbers later */
        assert_memory_equal(&d[at], &d[unit == 4 ? at : at + 2], sizeof *d);
        (small ? p32->d : p256->d)[r] = d[at];
        (small ? p32->m : p256->m)[r] = m[at];
        for (int i = 0; i < (small ? 32 : 256); i++)
            (small ? p32->q : p256->q)[i / 4][r][i % 4] =
                (uint8_t)(unit_at(q, unit, i, r) + offset);
        int32_t sum = 0; /* of differences */
        for (int s = 256 / form->sub_len - 1; !small && s >= 0; s--) {
            sum += scale[numbers * s + at];
            p256->scale[s / 2][r][s % 2] = (int16_t)sum;
            p256->min[s / 2][r][s % 2] = (int16_t)unit_at(min, unit, s, r);
        }
    }
}
