/* SPDX-License-Identifier: MIT */
/*
 * Files of tests.
 */
#ifndef PIRN_TESTS_TEMP_H
#define PIRN_TESTS_TEMP_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define TEMP_PATH 64

/* Where they are: on a disk, if there is one. */
static inline const char *temp_folder(void)
{
    const char *folder = getenv("TMPDIR");
    if (folder && strlen(folder) <= 32)
        return folder;
    return access("/var/tmp", W_OK) ? "/tmp" : "/var/tmp";
}

/* A new, empty file, whose name nobody else has. */
static inline const char *temp_path(char path[TEMP_PATH])
{
    snprintf(path, TEMP_PATH, "%s/pirn-XXXXXX", temp_folder());
    int fd = mkostemp(path, O_CLOEXEC);
    CHECK_GE(fd, 0);
    close(fd);
    return path;
}

/* Such a name, for what the caller makes there. */
static inline const char *temp_name(char path[TEMP_PATH])
{
    CHECK_EQ(unlink(temp_path(path)), 0);
    return path;
}

#endif
