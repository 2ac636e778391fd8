#pragma once
#pragma GCC system_header
// Changing from one stack to another, inlined where a CUDA thread blocks: the compiler then spills only the
// registers that are live there. Calling an out-of-line switch halves the speed; swapcontext makes a system
// call.

#if defined(__x86_64__) && !defined(CAPSTONE_EMULATOR_UCONTEXT)
#define CAPSTONE_NATIVE_SWITCH 1
#elif defined(__aarch64__) && !defined(CAPSTONE_EMULATOR_UCONTEXT)
#define CAPSTONE_NATIVE_SWITCH 1
#else
#define CAPSTONE_NATIVE_SWITCH 0
#endif

namespace capstone_emu {

#if CAPSTONE_NATIVE_SWITCH && defined(__x86_64__)

/// Saves the current state in *save and continues at `to`. A suspended stack holds, from its top: the address
/// to resume at, the frame pointer. They may lie where the ABI has its red zone: only functions that call none
/// use that, and whoever switches has called the runtime for `to`. A block's stacks then take fewer cache lines.
static inline __attribute__((always_inline)) void switch_stack(void** save, void* to) {
  asm volatile(
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "1:\n\t"
      "popq %%rbp"
      : "+D"(save), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15"
#ifdef __AVX512F__
        , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#endif
  );
}

#elif CAPSTONE_NATIVE_SWITCH

/// As above; a suspended stack holds, from its top: the frame pointer, the address to resume at. The jump is
/// through x16 and its target says that it is one, as processors and distributions with branch target
/// identification require.
static inline __attribute__((always_inline)) void switch_stack(void** save, void* to) {
  register void** x0 __asm__("x0") = save;
  register void* x1 __asm__("x1") = to;
  asm volatile(
      "adr x16, 1f\n\t"
      "stp x29, x16, [sp, #-16]!\n\t"
      "mov x17, sp\n\t"
      "str x17, [%0]\n\t"
      "mov sp, %1\n\t"
      "ldp x29, x16, [sp], #16\n\t"
      "br x16\n"
      "1:\n\t"
      "hint #38"  // bti jc; older processors do nothing here
      : "+r"(x0), "+r"(x1)
      :
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",
        "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "memory", "cc", "v0", "v1", "v2", "v3",
        "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#ifdef __ARM_FEATURE_SVE
        , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#endif
  );
}

#else

/// Portable and slow: *save and `to` point at ucontext_t objects.
void switch_stack(void** save, void* to);

#endif

}  // namespace capstone_emu
