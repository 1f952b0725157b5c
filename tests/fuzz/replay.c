/* SPDX-License-Identifier: MIT */
/* Calls a fuzz target with each file of the folders named: ./fuzz-http tests/fuzz/corpus/http */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    static uint8_t data[1 << 20];
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    uint8_t *copy = malloc(n ? n : 1); /* of its exact size, for the sanitizer */
    MUST(copy);
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    return 0;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *e; (e = readdir(d));) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if (e->d_name[0] != '.') {
                if (replay(path)) {
                    return 1;
                }
                files++;
            }
        }
        closedir(d);
    }
    printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}
