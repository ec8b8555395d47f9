// The part of a reproduction in C that is the same for all programs.
#include "c_writer.hpp"

namespace granule::gpu {

const char* const kCHead = R"(/* build: cc repro.c -o repro -I/usr/local/cuda/include -lcuda */
#include )"
                           R"(<cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static int differences = 0;
static void show(const char* what, CUresult got, const char* wanted) {
  const char* name = "?";
  cuGetErrorName(got, &name);
  if (strcmp(name, wanted) != 0) ++differences;
  printf("%s %-60s %s (recorded: %s)\n", strcmp(name, wanted) ? "DIFFERS" : "same   ", what, name,
         wanted);
  fflush(stdout);
}
#define DO(call, wanted) show(#call, (call), wanted)

static void environment(void) {
  int version = 0;
  char line[256] = "";
  struct utsname system_name;
  FILE* file = fopen("/proc/driver/nvidia/version", "r");
  uname(&system_name);
  cuDriverGetVersion(&version);
  printf("CUDA driver API %d\nkernel %s %s\n", version, system_name.release, system_name.machine);
  if (file && fgets(line, sizeof line, file)) printf("driver %s", line);
  if (file) fclose(file);
  fflush(stdout);
  if (system("nvidia-smi --query-gpu=name,mig.mode.current --format=csv,noheader") != 0)
    printf("GPU name and MIG mode unknown\n");
}

static CUmemAllocationProp props(int type, int location, int id, int handles, int compression,
                                 int rdma) {
  CUmemAllocationProp p;
  memset(&p, 0, sizeof p);
  p.type = (CUmemAllocationType)type;
  p.location.type = (CUmemLocationType)location;
  p.location.id = id;
  p.requestedHandleTypes = (CUmemAllocationHandleType)handles;
  p.allocFlags.compressionType = (unsigned char)compression;
  p.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
  return p;
}

static CUmemPoolProps pool_props(int type, int location, int id, int handles, size_t most) {
  CUmemPoolProps p;
  memset(&p, 0, sizeof p);
  p.allocType = (CUmemAllocationType)type;
  p.location.type = (CUmemLocationType)location;
  p.location.id = id;
  p.handleTypes = (CUmemAllocationHandleType)handles;
  p.maxSize = most;
  return p;
}

static CUmemLocation place(int type, int id) {
  CUmemLocation p;
  memset(&p, 0, sizeof p);
  p.type = (CUmemLocationType)type;
  p.id = id;
  return p;
}

/* One thread; kind 0: runs for ns, 1: writes v to each byte, 2: reads each, 3: reads and writes. */
static const char kernels[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry pass(.param .u64 a, .param .u64 n, .param .u64 ns, .param .u32 v,\n"
    "                     .param .u32 kind) {\n"
    ".reg .u64 %a, %n, %ns, %i, %p, %start, %now;\n.reg .u32 %v, %k, %w;\n"
    ".reg .pred %more, %writes, %touches, %spins;\n"
    "ld.param.u64 %a, [a]; ld.param.u64 %n, [n]; ld.param.u64 %ns, [ns];\n"
    "ld.param.u32 %v, [v]; ld.param.u32 %k, [kind];\n"
    "cvta.to.global.u64 %a, %a; mov.u64 %start, %globaltimer;\n"
    "setp.eq.u32 %spins, %k, 0; setp.eq.u32 %writes, %k, 1; setp.eq.u32 %touches, %k, 3;\n"
    "again: @%spins bra passed; mov.u64 %i, 0;\n"
    "next: setp.lt.u64 %more, %i, %n; @!%more bra passed; add.u64 %p, %a, %i;\n"
    "@%writes bra write; ld.volatile.global.u8 %w, [%p]; @!%touches bra step;\n"
    "st.volatile.global.u8 [%p], %w; bra step;\n"
    "write: st.volatile.global.u8 [%p], %v;\nstep: add.u64 %i, %i, 1; bra next;\n"
    "passed: mov.u64 %now, %globaltimer; sub.u64 %now, %now, %start;\n"
    "setp.lt.u64 %more, %now, %ns; @%more bra again; ret; }\n";
/* Loading a module waits for every stream, a held one too: before any is held. */
static CUresult load(CUfunction* function) {
  static CUcontext contexts[64];
  static CUfunction functions[64];
  static int loaded;
  CUcontext current = 0;
  CUmodule module = 0;
  CUresult result = cuCtxGetCurrent(&current);
  int i;
  for (i = 0; i < loaded && result == CUDA_SUCCESS; ++i) {
    *function = functions[i];
    if (contexts[i] == current) return CUDA_SUCCESS;
  }
  if (result != CUDA_SUCCESS) return result;
  if (loaded == 64) return CUDA_ERROR_OUT_OF_MEMORY;
  result = cuModuleLoadData(&module, kernels);
  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(function, module, "pass");
  if (result != CUDA_SUCCESS) return result;
  contexts[loaded] = current;
  functions[loaded++] = *function;
  return CUDA_SUCCESS;
}
/* A stream is held by a wait on a word of its own in pinned memory. */
#define HOLDS 1024
static volatile unsigned* words;
static CUstream held[HOLDS];
static unsigned holds;
static CUresult hold(CUstream stream) {
  void* memory = 0;
  CUfunction unused = 0;
  CUresult result = load(&unused);
  if (result != CUDA_SUCCESS) return result;
  if (!words) {
    result = cuMemAllocHost(&memory, HOLDS * sizeof(unsigned));
    if (result != CUDA_SUCCESS) return result;
    words = (volatile unsigned*)memset(memory, 0, HOLDS * sizeof(unsigned));
  }
  if (holds == HOLDS) return CUDA_ERROR_OUT_OF_MEMORY;
  held[holds] = stream;
  result = cuStreamWaitValue32(stream, (CUdeviceptr)(size_t)(words + holds), 1,
                               CU_STREAM_WAIT_VALUE_GEQ);
  ++holds;
  return result;
}
static void let_go(CUstream stream) {
  unsigned i;
  for (i = 0; i < holds; ++i)
    if (held[i] == stream) words[i] = 1;
}

static CUresult kernel(int kind, CUdeviceptr a, unsigned long long n, unsigned long long ns,
                       unsigned v, CUstream stream) {
  CUfunction function = 0;
  void* arguments[5];
  CUresult result = load(&function);
  if (result != CUDA_SUCCESS) return result;
  arguments[0] = &a, arguments[1] = &n, arguments[2] = &ns, arguments[3] = &v;
  arguments[4] = &kind;
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0);
}

static void CUDA_CB host_function(void* nothing) { (void)nothing; }
)";

}  // namespace granule::gpu
