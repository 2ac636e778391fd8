#pragma once
#include "../capstone/cuda.h"
