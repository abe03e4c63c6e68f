#include "service/pipeline/results/preview.h"

#include "service/pipeline/results/sheet.h"

#include <errno.h>
#include <stdlib.h>

static int
preview_tell(const struct drawing *drawing, struct preview_style *style)
{
    const size_t count = drawing->request->segment_count;
    *style =
        (struct preview_style){drawing->window.low, drawing->window.high, calloc(count + 1, sizeof *style->colors)};
    for (size_t i = 0; style->colors && i < count; i++)
        style->colors[i] = drawing->palette.palette[drawing->colors[i]];
    return style->colors ? 0 : -ENOMEM;
}

int
preview_write(const struct drawing_request *request, int fd, struct preview_style *style)
{
    struct drawing drawing;
    struct sheet sheet = {.drawing = &drawing};
    int rc = drawing_open(request, &drawing);
    if (rc == 0)
        rc = sheet_open(&drawing, &sheet);
    if (rc == 0 && style)
        rc = preview_tell(&drawing, style);
    if (rc == 0) {
        struct indexed_png picture = drawing.palette;
        picture.width = SHEET_WIDTH;
        picture.height = sheet.height;
        picture.pixels = malloc((size_t)picture.width * (size_t)picture.height);
        rc = picture.pixels ? 0 : -ENOMEM;
        if (rc == 0) {
            sheet_draw(&sheet, &picture);
            rc = indexed_png_write(&picture, request->threads, fd);
        }
        free(picture.pixels);
    }
    sheet_close(&sheet);
    drawing_close(&drawing);
    return rc;
}
