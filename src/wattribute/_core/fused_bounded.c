#define FUSED fused_bounded
#define BOUNDED 1
#include "fused_one.h"
