/* preview.c - see preview.h. */
#include "service/pipeline/results/preview.h"

#include "service/pipeline/results/sheet.h"

#include <errno.h>
#include <stdlib.h>

int
preview_write(const struct drawing_request *request, int fd)
{
    struct drawing drawing;
    struct sheet sheet = {.drawing = &drawing};
    int rc = drawing_open(request, &drawing);
    if (rc == 0)
        rc = sheet_open(&drawing, &sheet);
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
