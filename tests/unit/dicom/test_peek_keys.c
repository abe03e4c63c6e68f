/* Headers: keys that distinguish frames, by the standard and by each vendor. */
#include "tests/unit/dicom/peek_sample.h"

/* Returns all keys except the image type, "b_value=800;temporal=3". */
static const char *
told(const struct dicom_frame *frame)
{
    static char text[1024];
    size_t length = 0;
    text[0] = '\0';
#define KEY(id, ...)                                                                                                   \
    if (frame->id[0] && strcmp(#id, "image_type") != 0)                                                                \
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s" #id "=%s", length ? ";" : "", frame->id);
#include "dicom/read/image/keys.def"
#undef KEY
    return text;
}

static void
put_fl(struct dicom_bytes *bytes, uint32_t tag, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bytes_header(bytes, tag, "FL", 4);
    bytes_u32(bytes, bits);
}

static void
put_vector(struct dicom_bytes *bytes, uint32_t tag, double x, double y, double z)
{
    const double vector[3] = {x, y, z};
    bytes_header(bytes, tag, "FD", 24);
    for (int i = 0; i < 3; i++) {
        uint64_t bits;
        memcpy(&bits, &vector[i], sizeof(bits));
        bytes_u32(bytes, (uint32_t)(bytes->big_endian ? bits >> 32 : bits));
        bytes_u32(bytes, (uint32_t)(bytes->big_endian ? bits : bits >> 32));
    }
}

/* ---- diffusion ---- */

static void
standard_direction(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00189075, "CS", "DIRECTIONAL");
    bytes_fd(bytes, 0x00189087, 1000);
    put_vector(bytes, 0x00189089, 0.57735027, -0.57735027, 0.57735027);
}

static void
standard_isotropic(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00189075, "CS", "ISOTROPIC");
    bytes_fd(bytes, 0x00189087, 1000);
}

static void
no_weight(struct dicom_bytes *bytes)
{
    bytes_fd(bytes, 0x00189087, 0);
    put_vector(bytes, 0x00189089, 1, 0, 0);
}

static void
no_direction(struct dicom_bytes *bytes)
{
    bytes_fd(bytes, 0x00189087, 1000);
    put_vector(bytes, 0x00189089, 0, -0.0001, 0);
}

static void
nested_direction(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00189117);
    bytes_item(bytes);
    bytes_fd(bytes, 0x00189087, 700);
    bytes_sequence(bytes, 0x00189076);
    bytes_item(bytes);
    put_vector(bytes, 0x00189089, 0, 1, 0);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
b_matrix(struct dicom_bytes *bytes)
{
    /* 1000 times the outer product of (0.6, 0, -0.8), whose sign is lost */
    static const double matrix[6] = {360, 0, -480, 0, 0, 640};
    bytes_fd(bytes, 0x00189087, 1000);
    bytes_sequence(bytes, 0x00189601);
    bytes_item(bytes);
    for (unsigned i = 0; i < 6; i++)
        bytes_fd(bytes, 0x00189602 + i, matrix[i]);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
siemens(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "SIEMENS MR HEADER");
    bytes_text(bytes, 0x0019100C, "IS", "1000");
    put_vector(bytes, 0x0019100E, 0.26, 0.001, -0.9654);
}

static void
siemens_elsewhere(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "SOMEBODY ELSE");
    bytes_text(bytes, 0x00190021, "LO", "SIEMENS MR HEADER ");
    bytes_text(bytes, 0x0019100C, "IS", "5");
    bytes_text(bytes, 0x0019210C, "IS", "50");
}

static void
ge(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "GEMS_ACQU_01");
    bytes_text(bytes, 0x001910BB, "DS", "0.25");
    bytes_text(bytes, 0x001910BC, "DS", "-0.5");
    bytes_text(bytes, 0x001910BD, "DS", "0.825000");
    bytes_text(bytes, 0x00430010, "LO", "GEMS_PARM_01");
    bytes_us(bytes, 0x0043102F, "SS", 1);
    bytes_text(bytes, 0x00431039, "IS", "1000001250\\8\\0\\0");
}

static void
ge_without_weight(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "GEMS_ACQU_01");
    bytes_text(bytes, 0x001910BB, "DS", "7");
    bytes_text(bytes, 0x001910BC, "DS", "7");
    bytes_text(bytes, 0x001910BD, "DS", "7");
    bytes_text(bytes, 0x00430010, "LO", "GEMS_PARM_01");
    bytes_text(bytes, 0x00431039, "IS", "0\\8\\0\\0");
}

static void
philips(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x20010010, "LO", "Philips Imaging DD 001");
    put_fl(bytes, 0x20011003, 1000);
    bytes_text(bytes, 0x20011004, "CS", "O");
    bytes_text(bytes, 0x20050010, "LO", "Philips MR Imaging DD 001");
    bytes_text(bytes, 0x20051011, "CS", "R");
    put_fl(bytes, 0x200510B0, 1);
    put_fl(bytes, 0x200510B1, 0);
    put_fl(bytes, 0x200510B2, -0.25F);
}

static void
philips_isotropic(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x20010010, "LO", "Philips Imaging DD 001");
    put_fl(bytes, 0x20011003, 1000);
    bytes_text(bytes, 0x20011004, "CS", "I");
}

static void
united_imaging(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00650010, "LO", "Image Private Header");
    bytes_fd(bytes, 0x00651009, 800);
    put_vector(bytes, 0x00651037, 0, 0, 1);
}

static void
canon(struct dicom_bytes *bytes)
{
    bytes_fd(bytes, 0x00189087, 1500);
    bytes_text(bytes, 0x00204000, "LT", "b=1500(0.895,-0.445,0.000)");
}

static void
other_comments(struct dicom_bytes *bytes)
{
    bytes_fd(bytes, 0x00189087, 1500);
    bytes_text(bytes, 0x00204000, "LT", "b=1500(0.895,x,0.000)");
}

/* ---- labels, time, contrast ---- */

static void
asl(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00189257, "CS", "CONTROL");
}

static void
asl_nested(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00189251);
    bytes_item(bytes);
    bytes_text(bytes, 0x00189257, "CS", "M_ZERO_SCAN");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
philips_label(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x20010010, "LO", "Philips Imaging DD 001");
    bytes_text(bytes, 0x20011008, "IS", "4");
    bytes_text(bytes, 0x20050010, "LO", "Philips MR Imaging DD 001");
    bytes_text(bytes, 0x20050014, "LO", "Philips MR Imaging DD 005");
    put_fl(bytes, 0x200510A0, 12.5F);
    bytes_text(bytes, 0x20051029, "CS", "CONTROL"); /* of the other creator */
    bytes_text(bytes, 0x20051429, "CS", "LABEL");
}

static void
temporal_index(struct dicom_bytes *bytes)
{
    bytes_ul(bytes, 0x00209128, 6);
    bytes_fd(bytes, 0x0020930D, 3.5);
}

static void
temporal_offset(struct dicom_bytes *bytes)
{
    bytes_fd(bytes, 0x0020930D, 3.5);
}

static void
inversion_and_flip(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00180082, "DS", "900.0");
    bytes_text(bytes, 0x00181314, "DS", "15");
}

static void
no_inversion(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00180082, "DS", "0");
}

static void
gated(struct dicom_bytes *bytes)
{
    put_fl(bytes, 0x00209241, 40);
    bytes_text(bytes, 0x00181060, "DS", "120");
}

static void
breathing(struct dicom_bytes *bytes)
{
    put_fl(bytes, 0x00209245, 30);
}

static void
component(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00089208, "CS", "IMAGINARY");
}

static void
spectral(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00180060, "DS", "120");
    bytes_text(bytes, 0x00181210, "SH", "Br40d\\3");
    put_fl(bytes, 0x00189353, 0.5F);
    bytes_fd(bytes, 0x0018937C, 70);
}

static const struct {
    void (*extra)(struct dicom_bytes *);
    const char *keys;
} classic_cases[] = {
    {standard_direction, "b_value=1000;direction=0.577 -0.577 0.577"},
    {standard_isotropic, "b_value=1000;direction=isotropic"},
    {no_weight, "b_value=0"},
    {no_direction, "b_value=1000"},
    {nested_direction, "b_value=700;direction=0.000 1.000 0.000"},
    {b_matrix, "b_value=1000;direction=-0.600 0.000 0.800"},
    {siemens, "b_value=1000;direction=0.260 0.001 -0.965"},
    {siemens_elsewhere, "b_value=50"},
    {ge, "b_value=1250;direction=0.250 -0.500 0.825;component=phase"},
    {ge_without_weight, "b_value=0"},
    {philips, "b_value=1000;direction=1.000 0.000 -0.250;component=real"},
    {philips_isotropic, "b_value=1000;direction=isotropic"},
    {united_imaging, "b_value=800;direction=0.000 0.000 1.000"},
    {canon, "b_value=1500;direction=0.895 -0.445 0.000"},
    {other_comments, "b_value=1500"},
    {asl, "label=control"},
    {asl_nested, "label=m0"},
    {philips_label, "label=label;temporal=12.5 s;phase=4"},
    {temporal_index, "temporal=6"},
    {temporal_offset, "temporal=3.5 s"},
    {inversion_and_flip, "inversion=900 ms;flip=15"},
    {no_inversion, ""},
    {gated, "phase=40 %"},
    {breathing, "phase=30 %"},
    {component, "component=imaginary"},
    {spectral, "kernel=Br40d/3;energy=120 kV as 70 keV weight 0.5"},
};

enum { CLASSIC_CASES = sizeof(classic_cases) / sizeof(classic_cases[0]) };

static void
expect_keys(const struct sample_image *image, const char *keys)
{
    struct dicom_instance *i = write_and_peek(image);
    ck_assert_str_eq(told(&i->frames[0]), keys);
    dicom_instance_free(i);
}

START_TEST(keys_of_classic_images)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.class_uid = CLASS_MR;
    image.extra = classic_cases[_i].extra;
    image.syntax = SYNTAX_EXPLICIT;
    expect_keys(&image, classic_cases[_i].keys);
    image.syntax = SYNTAX_IMPLICIT;
    expect_keys(&image, classic_cases[_i].keys);
    image.syntax = SYNTAX_EXPLICIT;
    image.unknown_vr = true;
    expect_keys(&image, classic_cases[_i].keys);
}

END_TEST

START_TEST(components_of_image_types)
{
    static const struct {
        const char *type, *component;
    } cases[] = {
        {"ORIGINAL\\PRIMARY\\M\\ND", "magnitude"},
        {"ORIGINAL\\PRIMARY\\P\\ND", "phase"},
        {"ORIGINAL\\PRIMARY\\M_FFE\\M\\FFE", "magnitude"},
        {"ORIGINAL\\PRIMARY\\PHASE MAP\\P\\FFE", "phase"},
        {"ORIGINAL\\PRIMARY\\R_IR\\R\\IR", "real"},
        {"ORIGINAL\\PRIMARY\\OTHER\\IMAGINARY", "imaginary"},
        {"ORIGINAL\\PRIMARY\\AXIAL", ""},
        {"M\\P", ""},
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.class_uid = CLASS_MR;
    image.image_type = cases[_i].type;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(i->frames[0].component, cases[_i].component);
    dicom_instance_free(i);
}

END_TEST

/* ---- functional groups ---- */

static void
put_text_group(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, const char *vr, const char *text)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
    bytes_text(bytes, tag, vr, text);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_frame_type(struct dicom_bytes *bytes, const char *type, const char *complex)
{
    bytes_sequence(bytes, 0x00189226);
    bytes_item(bytes);
    bytes_text(bytes, 0x00089007, "CS", type);
    bytes_text(bytes, 0x00089208, "CS", complex);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_diffusion(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00189117);
    bytes_item(bytes);
    bytes_text(bytes, 0x00189075, "CS", "DIRECTIONAL");
    bytes_fd(bytes, 0x00189087, 900);
    bytes_sequence(bytes, 0x00189076);
    bytes_item(bytes);
    put_vector(bytes, 0x00189089, 0, 0, -1);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_philips_frame(struct dicom_bytes *bytes, const char *label)
{
    bytes_text(bytes, 0x20050014, "LO", "Philips MR Imaging DD 005");
    bytes_sequence(bytes, 0x2005140F);
    bytes_item(bytes);
    bytes_text(bytes, 0x20050014, "LO", "Philips MR Imaging DD 005");
    bytes_text(bytes, 0x20051429, "CS", label);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
add_rich_groups(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x0008002A, "DT", "20240229101500.5+0100");
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_group(bytes, 0x00189112, 0x00181314, "8");
    put_number_group(bytes, 0x00189115, 0x00189079, 650);
    put_frame_type(bytes, "ORIGINAL\\PRIMARY\\PERFUSION\\NONE", "PHASE");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x52009230);
    bytes_item(bytes);
    put_diffusion(bytes);
    put_frame_type(bytes, "DERIVED\\PRIMARY\\DIFFUSION\\ADC", "MAGNITUDE");
    put_text_group(bytes, 0x00209111, 0x00189074, "DT", "20240229101502");
    bytes_item_end(bytes);
    bytes_item(bytes);
    put_text_group(bytes, 0x00189251, 0x00189257, "CS", "LABEL");
    bytes_item_end(bytes);
    bytes_item(bytes);
    put_philips_frame(bytes, "CONTROL");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

START_TEST(keys_of_functional_groups)
{
    struct sample_image image = enhanced_image(native_syntaxes[_i % 3]);
    image.extra = add_rich_groups;
    image.unknown_vr = _i == 3;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(told(&i->frames[0]), "b_value=900;direction=0.000 0.000 -1.000;"
                                          "inversion=650 ms;flip=8;component=magnitude");
    ck_assert_str_eq(told(&i->frames[1]), "label=label;inversion=650 ms;flip=8;component=phase");
    ck_assert_str_eq(told(&i->frames[2]), "label=control;inversion=650 ms;flip=8;component=phase");
    ck_assert_str_eq(i->frames[0].acquired, "20240229101502.000000");
    ck_assert_str_eq(i->frames[1].acquired, "20240229101500.500000");
    ck_assert_int_eq(i->frames[0].excluded, CODE_DERIVED_IMAGE);
    ck_assert(i->frames[0].derived && !i->frames[1].derived);
    ck_assert_int_eq(i->frames[1].excluded, CODE_NONE);
    ck_assert_str_eq(i->frames[1].image_type, "PERFUSION/NONE");
    dicom_instance_free(i);
}

END_TEST

static void
add_ct_groups(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_text_group(bytes, 0x00189314, 0x00181210, "SH", "H31s");
    put_text_group(bytes, 0x00189325, 0x00180060, "DS", "80");
    put_number_group(bytes, 0x00189364, 0x0018937C, 55);
    bytes_sequence(bytes, 0x00209111);
    bytes_item(bytes);
    bytes_us(bytes, 0x00209156, "US", 3);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

START_TEST(keys_of_an_enhanced_ct)
{
    struct sample_image image = enhanced_image(SYNTAX_EXPLICIT);
    image.class_uid = "1.2.840.10008.5.1.4.1.1.2.1";
    image.modality = "CT";
    image.extra = add_ct_groups;
    expect_keys(&image, "kernel=H31s;energy=80 kV as 55 keV;acquisition=3");
}

END_TEST

/* ---- times ---- */

static void
dates(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00080012, "DA", "20200917");
    bytes_text(bytes, 0x00080013, "TM", "1026");
    bytes_text(bytes, 0x00080022, "DA", "2020.09.16");
    bytes_text(bytes, 0x00080032, "TM", "10:26:04");
    bytes_text(bytes, 0x00080023, "DA", "");
    bytes_text(bytes, 0x00080033, "TM", "102604.25");
}

static void
ruined_dates(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00080012, "DA", "***");
    bytes_text(bytes, 0x00080013, "TM", "noon");
    bytes_text(bytes, 0x0008002A, "DT", "2020");
    bytes_text(bytes, 0x00080023, "DA", "20200917");
}

START_TEST(dates_are_in_order_as_texts)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = dates;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(i->created, "20200917102600.000000");
    ck_assert_str_eq(i->frames[0].acquired, "20200916102604.000000");
    ck_assert_str_eq(i->content, "00000000102604.250000");
    dicom_instance_free(i);
    image.extra = ruined_dates;
    i = write_and_peek(&image);
    ck_assert_str_eq(i->created, "");
    ck_assert_str_eq(i->frames[0].acquired, "20200000000000.000000");
    ck_assert_str_eq(i->content, "20200917000000.000000");
    dicom_instance_free(i);
}

END_TEST

/* ---- images not for processing ---- */

static void
siemens_tiles(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "SIEMENS MR HEADER");
    bytes_us(bytes, 0x0019100A, "US", 35);
}

static void
one_tile(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "SIEMENS MR HEADER");
    bytes_us(bytes, 0x0019100A, "US", 1);
}

static void
united_imaging_tiles(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00650010, "LO", "Image Private Header");
    bytes_text(bytes, 0x00651050, "DS", "27");
}

static void
put_matrix(struct dicom_bytes *bytes, unsigned a, unsigned b, unsigned c, unsigned d)
{
    bytes_header(bytes, 0x00181310, "US", 8);
    bytes_u16(bytes, a);
    bytes_u16(bytes, b);
    bytes_u16(bytes, c);
    bytes_u16(bytes, d);
}

static void
tiled(struct dicom_bytes *bytes)
{
    put_matrix(bytes, 2, 0, 0, 3); /* of 4 x 6 pixels */
}

static void
tiled_the_other_way(struct dicom_bytes *bytes)
{
    put_matrix(bytes, 0, 3, 2, 0);
}

static void
not_tiled(struct dicom_bytes *bytes)
{
    put_matrix(bytes, 4, 0, 0, 6);
}

static void
interpolated(struct dicom_bytes *bytes)
{
    put_matrix(bytes, 3, 0, 0, 4);
}

static void
projected(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00089207, "CS", "MAX_IP");
}

static void
not_projected(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00089207, "CS", "NONE");
}

static const struct {
    const char *type;
    void (*extra)(struct dicom_bytes *);
    const char *spacing;
    enum code code;
    int32_t tiles;
} excluded_cases[] = {
    {"ORIGINAL\\PRIMARY\\AXIAL", NULL, "1\\1", CODE_NONE, 0},
    {"ORIGINAL\\PRIMARY\\M\\ND\\MOSAIC", NULL, "1\\1", CODE_MOSAIC, 0},
    {"ORIGINAL\\PRIMARY\\M\\ND\\MOSAIC", siemens_tiles, "1\\1", CODE_MOSAIC, 35},
    {"ORIGINAL\\PRIMARY\\M\\ND", siemens_tiles, "1\\1", CODE_MOSAIC, 35},
    {"ORIGINAL\\PRIMARY\\M\\ND", one_tile, "1\\1", CODE_NONE, 0},
    {"ORIGINAL\\PRIMARY\\VFRAME", united_imaging_tiles, "1\\1", CODE_MOSAIC, 27},
    {"ORIGINAL\\PRIMARY", united_imaging_tiles, "1\\1", CODE_MOSAIC, 27},
    {"DERIVED\\PRIMARY\\VFRAME\\LOCALIZER", NULL, "1\\1", CODE_MOSAIC, 0},
    {"ORIGINAL\\PRIMARY\\OTHER", tiled, "200\\200", CODE_MOSAIC, 0},
    {"ORIGINAL\\PRIMARY\\OTHER", tiled_the_other_way, "200\\200", CODE_MOSAIC, 0},
    {"ORIGINAL\\PRIMARY\\OTHER", tiled, "100\\100", CODE_NONE, 0},
    {"ORIGINAL\\PRIMARY\\OTHER", not_tiled, "200\\200", CODE_NONE, 0},
    {"ORIGINAL\\PRIMARY\\OTHER", interpolated, "200\\200", CODE_NONE, 0},
    {"ORIGINAL\\PRIMARY\\LOCALIZER", NULL, "1\\1", CODE_LOCALIZER, 0},
    {"ORIGINAL\\PRIMARY\\AXIAL\\CT_SOM5 TOP\\TOPOGRAM", NULL, "1\\1", CODE_LOCALIZER, 0},
    {"ORIGINAL\\PRIMARY\\SCOUT_VIEW", NULL, "1\\1", CODE_LOCALIZER, 0},
    {"ORIGINAL\\PRIMARY\\SCOUTS", NULL, "1\\1", CODE_NONE, 0},
    {"LOCALIZER\\SCOUT", NULL, "1\\1", CODE_NONE, 0},
    {"DERIVED\\SECONDARY\\SCREEN SAVE", NULL, "1\\1", CODE_SCREENSHOT, 0},
    {"DERIVED\\SECONDARY\\AXIAL\\DOSE_INFO", NULL, "1\\1", CODE_SCREENSHOT, 0},
    {"DERIVED\\SECONDARY\\MPR\\CSA MPR\\\\CSAPARALLEL\\M\\ND", NULL, "1\\1", CODE_DERIVED_IMAGE, 0},
    {"DERIVED\\PRIMARY\\DIFFUSION\\ADC\\ND\\NORM", NULL, "1\\1", CODE_DERIVED_IMAGE, 0},
    {"DERIVED\\PRIMARY\\PROJECTION IMAGE\\NONE\\MIP", NULL, "1\\1", CODE_DERIVED_IMAGE, 0},
    {"DERIVED\\SECONDARY\\ADC_UNSPECIFIED", NULL, "1\\1", CODE_DERIVED_IMAGE, 0},
    {"DERIVED\\PRIMARY\\VOLUME_RENDER", NULL, "1\\1", CODE_DERIVED_IMAGE, 0},
    {"ORIGINAL\\PRIMARY\\AXIAL\\MPR", NULL, "1\\1", CODE_NONE, 0},
    {"DERIVED\\SECONDARY", NULL, "1\\1", CODE_NONE, 0},
    {"DERIVED\\SECONDARY\\AXIAL", NULL, "1\\1", CODE_NONE, 0},
    {"ORIGINAL\\PRIMARY\\AXIAL", projected, "1\\1", CODE_DERIVED_IMAGE, 0},
    {"DERIVED\\PRIMARY\\AXIAL", not_projected, "1\\1", CODE_NONE, 0},
};

enum { EXCLUDED_CASES = sizeof(excluded_cases) / sizeof(excluded_cases[0]) };

START_TEST(excluded_frames)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.class_uid = CLASS_MR;
    image.modality = "MR";
    image.image_type = excluded_cases[_i].type;
    image.extra = excluded_cases[_i].extra;
    image.spacing = excluded_cases[_i].spacing;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(code_name(i->frames[0].excluded), code_name(excluded_cases[_i].code));
    ck_assert_int_eq(i->frames[0].tiles, excluded_cases[_i].tiles);
    ck_assert_int_eq(i->frames[0].derived, strncmp(image.image_type, "DERIVED", 7) == 0);
    dicom_instance_free(i);
}

END_TEST

/* ---- patient, study, frame of reference ---- */

static void
patient(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00100021, "LO", "CLINIC");
    bytes_text(bytes, 0x00201002, "IS", "24");
}

START_TEST(patients_are_distinguished)
{
    struct sample_image image = SAMPLE_IMAGE;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(i->patient, "42");
    ck_assert_str_eq(i->patient_name, "DOE^JANE");
    ck_assert_int_eq(i->images_in_acquisition, 0);
    dicom_instance_free(i);
    image.extra = patient;
    i = write_and_peek(&image);
    ck_assert_str_eq(i->patient, "42\\CLINIC");
    ck_assert_int_eq(i->images_in_acquisition, 24);
    dicom_instance_free(i);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_peek_keys");
    TCase *keys = new_case(suite, "keys");
    tcase_add_loop_test(keys, keys_of_classic_images, 0, CLASSIC_CASES);
    tcase_add_loop_test(keys, components_of_image_types, 0, 8);
    tcase_add_loop_test(keys, keys_of_functional_groups, 0, 4);
    tcase_add_test(keys, keys_of_an_enhanced_ct);
    tcase_add_test(keys, dates_are_in_order_as_texts);
    tcase_add_test(keys, patients_are_distinguished);
    TCase *excluding = new_case(suite, "excluding");
    tcase_add_loop_test(excluding, excluded_frames, 0, EXCLUDED_CASES);
    return suite_run(suite);
}
