#pragma once
#include "../torch/capstone/python.h"
