#include "service/web/server/web_assets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

enum { DIGEST = 48, ADDRESS_DIGITS = 16 };

/* The files become a part of the program. NOCTULE_ASSETS is service/web/assets (service/CMakeLists.txt). */
#define ASSET(name, file)                                                                                              \
    __asm__(".pushsection .rodata\n"                                                                                   \
            ".globl " name "\n.hidden " name "\n" name ":\n"                                                           \
            ".incbin \"" NOCTULE_ASSETS "/" file "\"\n"                                                                \
            ".globl " name "_end\n.hidden " name "_end\n" name "_end:\n.byte 0\n"                                      \
            ".popsection\n")

ASSET("asset_viewer_js", "viewer.js");
ASSET("asset_viewer_css", "viewer.css");

ASSET("asset_review_js", "review.js");

extern const char asset_viewer_js[], asset_viewer_js_end[], asset_viewer_css[], asset_viewer_css_end[],
    asset_review_js[], asset_review_js_end[];

struct asset_row {
    const char *name, *type, *bytes, *end;
    bool is_script;
};

static const struct asset_row asset_rows[WEB_ASSETS] = {
    [WEB_ASSET_VIEWER_SCRIPT] = {"viewer.js", "text/javascript; charset=utf-8", asset_viewer_js, asset_viewer_js_end,
                                 true},
    [WEB_ASSET_VIEWER_STYLE] = {"viewer.css", "text/css; charset=utf-8", asset_viewer_css, asset_viewer_css_end, false},
    [WEB_ASSET_REVIEW_SCRIPT] = {"review.js", "text/javascript; charset=utf-8", asset_review_js, asset_review_js_end,
                                 true},
};

/* Written once by web_assets_open(). */
static struct {
    char address[64];                /* "/assets/0123456789abcdef/viewer.js" */
    char digest[DIGEST / 3 * 4 + 1]; /* base64 */
} asset_names[WEB_ASSETS];

int
web_assets_open(void)
{
    for (int i = 0; i < WEB_ASSETS; i++) {
        const struct asset_row *row = &asset_rows[i];
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size;
        char digits[ADDRESS_DIGITS + 1];
        if (EVP_Digest(row->bytes, (size_t)(row->end - row->bytes), digest, &size, EVP_sha384(), NULL) != 1)
            return -ENOMEM;
        for (int d = 0; d < ADDRESS_DIGITS / 2; d++)
            snprintf(digits + 2 * d, 3, "%02x", digest[d]);
        snprintf(asset_names[i].address, sizeof asset_names[i].address, WEB_ASSETS_PATH "%s/%s", digits, row->name);
        EVP_EncodeBlock((unsigned char *)asset_names[i].digest, digest, DIGEST);
    }
    return 0;
}

static int
asset_find(const char *path)
{
    for (int i = 0; i < WEB_ASSETS; i++)
        if (*asset_names[i].address && strcmp(path, asset_names[i].address) == 0)
            return i;
    return -1;
}

bool
web_assets_is_path(const char *path)
{
    return asset_find(path) >= 0;
}

int
web_assets_answer(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    const int i = asset_find(request->path);
    (void)web;
    if (i < 0)
        return error_set(error, -ENOENT, CODE_NONE, "this file does not exist");
    answer->type = asset_rows[i].type;
    answer->is_asset = true;
    fwrite(asset_rows[i].bytes, 1, (size_t)(asset_rows[i].end - asset_rows[i].bytes), answer->out);
    return 0;
}

void
web_assets_put(enum web_asset asset, FILE *out)
{
    const char *address = asset_names[asset].address + 1, *digest = asset_names[asset].digest;
    if (asset_rows[asset].is_script)
        fprintf(out, "<script src=\"%s\" integrity=\"sha384-%s\" defer></script>\n", address, digest);
    else
        fprintf(out, "<link rel=\"stylesheet\" href=\"%s\" integrity=\"sha384-%s\">\n", address, digest);
}
