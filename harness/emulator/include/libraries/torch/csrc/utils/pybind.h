#pragma once
#include "../../capstone/python.h"
