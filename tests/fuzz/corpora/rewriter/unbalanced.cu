capstone_emu_global void k( {
  asm volatile("mma.sync" : :);
k < < < 1,