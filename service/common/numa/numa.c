/* numa.c - see numa.h. */
#include "service/common/numa/numa.h"

#include "base/test_hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES "devices/system/node"

const struct numa_place numa_anywhere = {.node = -1};

const char *
numa_sys(void)
{
    const char *fake = test_hook_variable("NOCTULE_FAKE_SYS");
    return fake && *fake ? fake : "/sys";
}

/* ------------------------------------------------------------------------------- reading ---- */

static bool
numa_read_number(const char **text, int *number)
{
    char *end;
    const long value = strtol(*text, &end, 10);
    if (**text < '0' || **text > '9' || value >= CPU_SETSIZE)
        return false;
    *number = (int)value;
    *text = end;
    return true;
}

bool
numa_read_list(const char *list, cpu_set_t *set)
{
    CPU_ZERO(set);
    if (!*list)
        return true;
    for (;; list++) {
        int first, last;
        if (!numa_read_number(&list, &first))
            return false;
        last = first;
        if (*list == '-' && (list++, !numa_read_number(&list, &last)))
            return false;
        for (int i = first; i <= last; i++)
            CPU_SET((size_t)i, set);
        if (*list != ',')
            return !*list && first <= last;
    }
}

/* The first line of a file, less its end. */
static bool
numa_read_line(const char *sys, const char *name, char line[NUMA_LIST])
{
    char path[NUMA_LIST + 256];
    snprintf(path, sizeof path, "%s/%s", sys, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const bool read = fgets(line, NUMA_LIST, file) != NULL;
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

static bool
numa_read_processors(const char *sys, int node, struct numa_place *place, cpu_set_t *set)
{
    char name[64];
    snprintf(name, sizeof name, NODES "/node%d/cpulist", node);
    place->node = node;
    return numa_read_line(sys, name, place->processors) && numa_read_list(place->processors, set) &&
           CPU_COUNT(set) > 0;
}

/* Is there another node with processors? */
static bool
numa_is_one_of_several(const char *sys, int node)
{
    char line[NUMA_LIST];
    cpu_set_t nodes;
    return numa_read_line(sys, NODES "/has_cpu", line) && numa_read_list(line, &nodes) &&
           node >= 0 && node < CPU_SETSIZE && CPU_ISSET((size_t)node, &nodes) &&
           CPU_COUNT(&nodes) > 1;
}

/* --------------------------------------------------------------------------------- nodes ---- */

struct numa_place
numa_of_pci(const char *sys, const char *pci)
{
    char name[96], line[NUMA_LIST], *end;
    struct numa_place place;
    cpu_set_t set;
    snprintf(name, sizeof name, "bus/pci/devices/%.40s/numa_node", pci);
    if (!*pci || strchr(pci, '/') || !numa_read_line(sys, name, line))
        return numa_anywhere;
    const long node = strtol(line, &end, 10); /* -1: the kernel does not know */
    if (end == line || *end || node < 0 || node >= CPU_SETSIZE ||
        !numa_is_one_of_several(sys, (int)node) ||
        !numa_read_processors(sys, (int)node, &place, &set))
        return numa_anywhere;
    return place;
}

int
numa_bind(const char *sys, int node)
{
    struct numa_place place;
    cpu_set_t allowed, wanted;
    if (!numa_read_processors(sys, node, &place, &wanted))
        return -ENODEV;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return -errno;
    CPU_AND(&wanted, &wanted, &allowed);
    if (CPU_COUNT(&wanted) == 0)
        return -EPERM;
    return sched_setaffinity(0, sizeof wanted, &wanted) == 0 ? 0 : -errno;
}
