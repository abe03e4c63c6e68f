#include "service/web/viewer/web_viewer.h"

#include "service/web/server/web_assets.h"
#include "service/web/viewer/web_planes.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char *const viewer_names[SLICES_VIEWS] = {"axial", "coronal", "sagittal"};

/* The plane that a page shows without scripts. */
struct viewer_place {
    int64_t job;
    const char *page;
    enum slices_view view;
    int32_t at, count;
};

/* Returns whether the file has one slice, of which other views are a line. */
static bool
viewer_is_image(const struct slices_volume *volume)
{
    return volume->size[2] == 1;
}

/* Reads the plane from the request; the middle axial one by default. */
static struct viewer_place
viewer_find_place(const struct web_view *view, int64_t job, const char *page, const struct slices_volume *volume)
{
    struct viewer_place place = {.job = job, .page = page};
    for (enum slices_view i = 0; i < SLICES_VIEWS; i++)
        if (strcmp(view->request->values[REQUEST_view], slices_view_keys[i]) == 0 && !viewer_is_image(volume))
            place.view = i;
    place.count = volume->size[slices_layout_of(volume, place.view).through];
    place.at = (place.count - 1) / 2;
    if (*view->request->values[REQUEST_at]) {
        const int64_t at = web_request_number(view->request, REQUEST_at);
        place.at = at < place.count ? (int32_t)at : place.count - 1;
    }
    return place;
}

static void
viewer_put_link(const struct viewer_place *place, enum slices_view of, int32_t at, const char *text, FILE *out)
{
    fprintf(out, "<a href=\"%s?id=%" PRId64 "&amp;view=%s", place->page, place->job, slices_view_keys[of]);
    if (at >= 0)
        fprintf(out, "&amp;at=%d", at);
    fprintf(out, "\">%s</a>\n", text);
}

static void
viewer_put_steps(const struct viewer_place *place, FILE *out)
{
    fputs("<p class=\"v-steps\">", out);
    if (place->at > 0)
        viewer_put_link(place, place->view, place->at - 1, "Previous slice", out);
    if (place->at < place->count - 1)
        viewer_put_link(place, place->view, place->at + 1, "Next slice", out);
    for (enum slices_view i = 0; i < SLICES_VIEWS; i++)
        if (i != place->view)
            viewer_put_link(place, i, -1,
                            i == SLICES_AXIAL     ? "Axial"
                            : i == SLICES_CORONAL ? "Coronal"
                                                  : "Sagittal",
                            out);
    fputs("</p>", out);
}

static void
viewer_put_legend(const struct slices_volume *volume, FILE *out)
{
    if (volume->segment_count == 0)
        return;
    fputs("<ul class=\"v-legend\">", out);
    for (int32_t i = 0; i < volume->segment_count; i++) {
        const uint8_t *rgb = volume->segments[i].rgb;
        fprintf(out,
                "<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" rx=\"2\" "
                "fill=\"#%02x%02x%02x\"/></svg>",
                rgb[0], rgb[1], rgb[2]);
        html_untrusted(volume->segments[i].label, out);
        fputs("</li>\n", out);
    }
    fputs("</ul>", out);
}

/* Returns the unit as people write it. */
static const char *
viewer_unit(const struct slices_volume *volume)
{
    return strcmp(volume->unit, "[hnsf'U]") == 0 ? "HU" : strcmp(volume->unit, "1") == 0 ? "" : volume->unit;
}

static void
viewer_put_plane(const struct web_view *view, const struct slices_volume *volume, const struct viewer_place *place)
{
    const struct slices_layout layout = slices_layout_of(volume, place->view);
    FILE *out = view->out;
    char text[SLICES_PLACE], edges[4][4];
    slices_place(volume, &layout, place->at, text);
    slices_edges(volume, &layout, edges);
    fprintf(out, "<section class=\"viewer\" aria-label=\"Slices\" data-planes=\"api/v1/jobs/%" PRId64 "/planes\"",
            place->job);
    fprintf(out, " data-view=\"%s\" data-at=\"%d\" data-unit=\"", slices_view_keys[place->view], place->at);
    html_text(viewer_unit(volume), out);
    fprintf(out, "\"><figure><img src=\"api/v1/jobs/%" PRId64 "/planes/%s/%d.png\" ", place->job,
            slices_view_keys[place->view], place->at);
    if (viewer_is_image(volume))
        fputs("alt=\"The image with outlines of the segments\"><figcaption>The only slice", out);
    else
        fprintf(out,
                "alt=\"The %1$s slice %2$d of %3$d with outlines of the segments\"><figcaption>%1$s slice %2$d of %3$d",
                viewer_names[place->view], place->at + 1, place->count);
    if (*text)
        fprintf(out, ", %s. Left edge: %s, upper edge: %s", text, edges[0], edges[2]);
    fputs("</figcaption></figure>", out);
    if (volume->step > 1) {
        fprintf(out, "<p class=\"v-rounded\">Values are rounded to &plusmn;%.3g ", slices_error(volume));
        html_text(viewer_unit(volume), out);
        fputs(" at most. Segments are exact.</p>\n", out);
    }
    viewer_put_legend(volume, out);
    if (!viewer_is_image(volume))
        viewer_put_steps(place, out);
    fputs("</section>\n", out);
    web_assets_put(WEB_ASSET_VIEWER_SCRIPT, out);
}

bool
web_viewer_put(const struct web_view *view, int64_t job, const char *page)
{
    struct slices *file;
    struct error error = {0};
    int fd;
    if (web_planes_open(view->web, job, &fd, &file, &error) != 0) {
        if (web_preview_is_there(view->web, job)) {
            fputs("<section class=\"preview\"><h2>Preview</h2>", view->out);
            web_preview_image(view, job);
            if (error.code != CODE_NONE) {
                fputs("<p class=\"dim small\">", view->out);
                html_text(error.message, view->out);
                fputs("</p>", view->out);
            }
            fputs("</section>\n", view->out);
        }
        return false;
    }
    const struct viewer_place place = viewer_find_place(view, job, page, slices_volume_of(file));
    viewer_put_plane(view, slices_volume_of(file), &place);
    slices_close(file);
    close(fd);
    return true;
}
