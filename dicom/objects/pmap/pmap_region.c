#include "dicom/objects/pmap/pmap_region.h"

#include <string.h>

struct anatomic_region {
    const char *body_part;
    struct coded_concept code;
};

static const struct anatomic_region regions[] = {
    {"ABDOMEN", {"818981001", "SCT", "Abdomen"}},
    {"ABDOMENPELVIS", {"818982008", "SCT", "Abdomen and Pelvis"}},
    {"BRAIN", {"12738006", "SCT", "Brain"}},
    {"CHEST", {"816094009", "SCT", "Chest"}},
    {"CHESTABDOMEN", {"416550000", "SCT", "Chest and Abdomen"}},
    {"CHESTABDPELVIS", {"416775004", "SCT", "Chest, Abdomen and Pelvis"}},
    {"CSPINE", {"122494005", "SCT", "Cervical spine"}},
    {"HEAD", {"69536005", "SCT", "Head"}},
    {"HEADNECK", {"774007", "SCT", "Head and Neck"}},
    {"HEART", {"80891009", "SCT", "Heart"}},
    {"LIVER", {"10200004", "SCT", "Liver"}},
    {"LSPINE", {"122496007", "SCT", "Lumbar spine"}},
    {"NECK", {"45048000", "SCT", "Neck"}},
    {"NECKCHEST", {"417437006", "SCT", "Neck and Chest"}},
    {"NECKCHESTABDPELV", {"416319003", "SCT", "Neck, Chest, Abdomen and Pelvis"}},
    {"PANCREAS", {"15776009", "SCT", "Pancreas"}},
    {"PELVIS", {"816092008", "SCT", "Pelvis"}},
    {"PROSTATE", {"41216001", "SCT", "Prostate"}},
    {"SKULL", {"89546000", "SCT", "Skull"}},
    {"SPINE", {"421060004", "SCT", "Spine"}},
    {"TSPINE", {"122495006", "SCT", "Thoracic spine"}},
};

static const struct coded_concept entire_body = {"38266002", "SCT", "Entire body"};

const struct coded_concept *
pmap_region(const char *body_part)
{
    for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
        if (strcmp(body_part, regions[i].body_part) == 0)
            return &regions[i].code;
    }
    return &entire_body;
}
