/* cli/out/svg.h: what pictures (SVG) of results share: the frame and safe texts. They have a white
 * ground of their own, so that they are legible in dark viewers too. */
#ifndef CLI_OUT_SVG_H
#define CLI_OUT_SVG_H

#include "base/buffer.h"

void cli_svg_begin(int width, int height, const char *font, struct base_buffer *out);
void cli_svg_end(struct base_buffer *out);
/* Appends text in the form of cli/terminal.h, escaped for XML. */
void cli_svg_add_text(const char *text, size_t size, struct base_buffer *out);

#endif
