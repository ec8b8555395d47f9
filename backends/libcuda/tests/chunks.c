/* A small allocator over the plain driver API, as people write them: a range of addresses, chunks
   mapped into it one by one. It is right as long as nothing fails. With the argument "careless" a
   failing access grant leaves its mapping and its handle behind; with "careful" it is undone. A
   second argument is the number of chunks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_api.h"

enum { kMaxChunks = 64 };
static const size_t kGranule = (size_t)2 << 20;

typedef struct {
  CUdeviceptr base;
  size_t reserved;
  size_t count;
  CUmemGenericAllocationHandle chunks[kMaxChunks];
} Range;

static int careful = 0;

static CUresult range_open(Range* range, size_t bytes) {
  memset(range, 0, sizeof(*range));
  range->reserved = bytes;
  return cuMemAddressReserve(&range->base, bytes, 0, 0, 0);
}

static CUresult chunk_add(Range* range) {
  CUmemAllocationProp properties;
  CUmemAccessDesc access;
  CUmemGenericAllocationHandle handle;
  const CUdeviceptr at = range->base + range->count * kGranule;
  CUresult result;
  memset(&properties, 0, sizeof(properties));
  properties.type = 1;
  properties.location.type = 1;
  result = cuMemCreate(&handle, kGranule, &properties, 0);
  if (result != 0) return result;
  result = cuMemMap(at, kGranule, 0, handle, 0);
  if (result != 0) {
    cuMemRelease(handle);
    return result;
  }
  access.location = properties.location;
  access.flags = 3;
  result = cuMemSetAccess(at, kGranule, &access, 1);
  if (result != 0) {
    if (careful) {
      cuMemUnmap(at, kGranule);
      cuMemRelease(handle);
    }
    return result; /* the planted defect: nothing knows of the chunk any more */
  }
  range->chunks[range->count++] = handle;
  return 0;
}

static void range_close(Range* range) {
  while (range->count > 0) {
    --range->count;
    cuMemUnmap(range->base + range->count * kGranule, kGranule);
    cuMemRelease(range->chunks[range->count]);
  }
  cuMemAddressFree(range->base, range->reserved);
}

int main(int argc, char** argv) {
  CUcontext context;
  Range range;
  unsigned char byte = 0;
  const int count = argc > 2 ? atoi(argv[2]) : 3;
  CUresult result = cuInit(0);
  if (count < 1 || count > kMaxChunks) return 2;
  careful = argc > 1 && strcmp(argv[1], "careful") == 0;
  if (result == 0) result = cuDevicePrimaryCtxRetain(&context, 0);
  if (result == 0) result = cuCtxSetCurrent(context);
  if (result == 0) result = range_open(&range, kMaxChunks * kGranule);
  if (result != 0) return 1;
  for (int i = 0; i < count && result == 0; ++i) result = chunk_add(&range);
  if (result == 0) result = cuMemsetD8_v2(range.base, 0x5A, range.count * kGranule);
  if (result == 0) result = cuMemcpyDtoH_v2(&byte, range.base + range.count * kGranule - 1, 1);
  range_close(&range);
  printf("%s\n", result == 0 && byte == 0x5A ? "ok" : "failed");
  return result == 0 && byte == 0x5A ? 0 : 1;
}
