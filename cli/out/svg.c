/* cli/out/svg.c: what pictures of results share. See cli/out/svg.h. */
#include "cli/out/svg.h"
#include "cli/terminal.h"

void cli_svg_begin(int width, int height, const char *font, struct base_buffer *out)
{
    base_buffer_add_format(out,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                           "viewBox=\"0 0 %d %d\" font-family=\"%s\" font-size=\"13\" "
                           "fill=\"#1f2328\">\n"
                           "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#ffffff\"/>\n",
                           width, height, width, height, font);
}

void cli_svg_end(struct base_buffer *out)
{
    base_buffer_add_text(out, "</svg>\n");
}

void cli_svg_add_text(const char *text, size_t size, struct base_buffer *out)
{
    for (size_t i = 0, n; i < size;) {
        char shown[CLI_SHOWN_MAX];
        i += cli_show_character(text + i, size - i, false, shown, &n);
        if (*shown == '<' || *shown == '&' || *shown == '"')
            base_buffer_add_text(out, *shown == '<' ? "&lt;" : *shown == '&' ? "&amp;" : "&quot;");
        else
            base_buffer_add(out, shown, n);
    }
}
