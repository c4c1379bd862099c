/* test/support_panel.h: panels of levels in the form of the scalar ones. */
#pragma once

#include "quant/quant.h"

/* Bytes of a block of a panel in units (0: the scalar form) of a type. */
size_t support_panel_size(const struct quant_type *type, int unit);

/* Converts a block of a panel in units to the form of the type's scalar panel, struct
 * quant_panel32 or quant_panel256. */
void support_panel_of_units(const struct quant_type *type, const struct quant_panel_form *form,
                            const void *from, void *to);
