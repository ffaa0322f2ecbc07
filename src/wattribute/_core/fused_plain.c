#define FUSED fused_plain
#define BOUNDED 0
#include "fused_one.h"
