// Row 24: Includes /dev/zero: the preprocessor reads until there is no memory left.
#include "/dev/zero"
