/* A Cortex-M4 without an operating system, as qemu's mps2-an386 has it: start, and a line out by semihosting.
   Predicts the linked samples and prints of each the class and the bits of all scores. */
#include <string.h>

#include "model.h"

extern const unsigned sample_count;
extern const model_input samples[];

extern char stack_top[], data_begin[], data_end[], data_image[], bss_begin[], bss_end[];

static void call_host(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void print_hex(uint32_t value, char end) {
  char text[10];
  int i;
  for (i = 7; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  text[8] = end;
  text[9] = 0;
  call_host(0x04, text); /* SYS_WRITE0 */
}

static void reset(void) {
  unsigned i;
  int k;
  *(volatile uint32_t*)0xe000ed88 |= 0xf << 20; /* the floating-point unit, on */
  __asm__ volatile("dsb\n isb");
  memcpy(data_begin, data_image, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  for (i = 0; i < sample_count; ++i) {
    float scores[MODEL_CLASSES];
    print_hex((uint32_t)model_predict(samples + i * MODEL_INPUTS, scores), ' ');
    for (k = 0; k < MODEL_CLASSES; ++k) {
      uint32_t bits;
      memcpy(&bits, &scores[k], sizeof(bits));
      print_hex(bits, k + 1 < MODEL_CLASSES ? ' ' : '\n');
    }
  }
  call_host(0x18, (const void*)0x20026); /* SYS_EXIT, ADP_Stopped_ApplicationExit */
  for (;;) {
  }
}

static void fault(void) {
  call_host(0x18, (const void*)0x20023); /* a run-time error */
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static void* const vectors[] = {stack_top, (void*)reset,
                                                                           (void*)fault, (void*)fault};
