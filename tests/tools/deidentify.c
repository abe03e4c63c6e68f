/*
 * deidentify.c - for tests: writes the de-identified copy of each file to a folder, named by its SOP Instance UID.
 *
 *   deidentify CONFIGURATION DESTINATION KEY_FOLDER OUTPUT_FOLDER FILE...
 *
 * Makes a key in the folder if there is none. Prints one line per file: the name of the copy, or a code and a message.
 */
#include "dicom/dicom.h"
#include "service/common/deidentification.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    struct conf *conf = NULL;
    struct error error;
    struct pseudonym_key key;
    struct deidentification settings;
    if (argc < 6)
        return 2;
    dicom_init();
    const struct conf_destination *to = conf_load(argv[1], &conf, &error) ? NULL : conf_find_destination(conf, argv[2]);
    if (!to || pseudonym_key_make(argv[3], &key) || deidentification_of(conf, to->deidentify, &key, &settings)) {
        fprintf(stderr, "%s\n", conf ? "no settings" : error.message);
        return 1;
    }
    for (int i = 5; i < argc; i++) {
        char part[4096], path[4096];
        struct dicom_form made;
        snprintf(part, sizeof part, "%s/part", argv[4]);
        const int fd = open(part, O_CREAT | O_TRUNC | O_RDWR, 0600);
        if (fd < 0)
            return 1;
        if (deidentify_file(&settings.how, argv[i], fd, &made, &error)) {
            printf("%s: %s\n", code_name(error.code), error.message);
            unlink(part);
        } else {
            snprintf(path, sizeof path, "%s/%s.dcm", argv[4], made.sop_instance);
            if (rename(part, path))
                return 1;
            printf("%s.dcm\n", made.sop_instance);
        }
        close(fd);
    }
    deidentification_free(&settings);
    conf_free(conf);
    return 0;
}
