/*
 * convert_seg.c - for tests: converts an object that write_seg wrote. Prints the result as a line of JSON.
 *
 *   convert_seg binary|uncompressed INPUT OUTPUT
 *
 * On an error, prints code and message to standard error and exits with 1.
 */
#include "dicom/objects/convert/convert.h"
#include "tests/tools/object_source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    struct converted made;
    struct error error;
    if (argc != 4 || (strcmp(argv[1], "binary") != 0 && strcmp(argv[1], "uncompressed") != 0)) {
        fprintf(stderr, "usage: convert_seg binary|uncompressed INPUT OUTPUT\n");
        return 2;
    }
    dicom_init();
    const int fd = object_create(argv[3]);
    check(strcmp(argv[1], "binary") == 0 ? convert_to_binary(argv[2], fd, &made, &error)
                                         : convert_to_uncompressed(argv[2], fd, &made, &error),
          &error);
    close(fd);
    printf("{\"sop_class_uid\": \"%s\", \"sop_instance_uid\": \"%s\", \"series_uid\": \"%s\", \"frames\": %lld, "
           "\"bytes\": %lld}\n",
           made.sop_class_uid, made.sop_instance_uid, made.series_uid, (long long)made.frames, (long long)made.bytes);
    return 0;
}
