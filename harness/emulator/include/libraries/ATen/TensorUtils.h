#pragma once
#include "../torch/capstone/cuda.h"
