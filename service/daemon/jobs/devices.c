#include "service/daemon/jobs/devices.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static void
devices_pick(struct devices_choice *choice, size_t gpu)
{
    for (size_t i = 0; i < choice->chosen_count; i++) {
        if (choice->chosen[i] == gpu)
            return;
    }
    if (choice->chosen_count < DEVICES_MAX)
        choice->chosen[choice->chosen_count++] = gpu;
}

void
devices_choose(const struct kernels_gpu *found, size_t found_count, char *const *names, size_t name_count,
               struct devices_choice *choice)
{
    *choice = (struct devices_choice){.chosen_count = 0};
    for (size_t i = 0; i < found_count && name_count == 0; i++)
        devices_pick(choice, i);
    for (size_t i = 0; i < name_count; i++) {
        size_t gpu = 0;
        for (; gpu < found_count; gpu++) {
            char index[12];
            snprintf(index, sizeof index, "%d", found[gpu].index);
            if (strcmp(index, names[i]) == 0 || strcasecmp(found[gpu].uuid, names[i]) == 0)
                break;
        }
        if (gpu < found_count)
            devices_pick(choice, gpu);
        else if (choice->missing_count < DEVICES_MAX)
            choice->missing[choice->missing_count++] = i;
    }
}
