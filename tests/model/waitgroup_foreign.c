/* SPDX-License-Identifier: MIT */
/* Wait groups, with the real calls of foreign threads and the real word lock: see waitgroup.h. */
#include "waitgroup.h"
