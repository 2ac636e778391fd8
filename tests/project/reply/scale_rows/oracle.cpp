// Read by the loader's digest only.
