// PTX of the kernels. All take (address, bytes, nanoseconds, byte value, result words). Each pass
// touches the whole range, and passes repeat until the time is over, so that a range which is
// taken away under a running kernel is noticed at any moment of its life.
#include "kernels.hpp"

#include <algorithm>

namespace granule::cuda {

const char* const kKernelModule = R"ptx(
.version 6.0
.target sm_60
.address_size 64

// Waits on the device's timer; touches no memory.
.visible .entry granule_spin(.param .u64 a, .param .u64 n, .param .u64 ns, .param .u32 v,
                             .param .u64 out)
{
  .reg .u64 %start, %now, %ns;
  .reg .pred %more;
  ld.param.u64 %ns, [ns];
  mov.u64 %start, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %more, %now, %ns;
  @%more bra again;
  ret;
}

// Writes the low byte of v to every byte.
.visible .entry granule_write(.param .u64 a, .param .u64 n, .param .u64 ns, .param .u32 v,
                              .param .u64 out)
{
  .reg .u64 %start, %now, %ns, %a, %n, %i, %first, %step, %p, %both;
  .reg .u32 %t, %b, %d, %g, %v;
  .reg .pred %more, %odd;
  ld.param.u64 %a, [a];
  ld.param.u64 %n, [n];
  ld.param.u64 %ns, [ns];
  ld.param.u32 %v, [v];
  cvta.to.global.u64 %a, %a;
  and.b32 %v, %v, 255;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %d, %t;
  mul.lo.u32 %d, %d, %g;
  cvt.u64.u32 %first, %t;
  cvt.u64.u32 %step, %d;
  or.b64 %both, %a, %n;
  and.b64 %both, %both, 15;
  setp.ne.u64 %odd, %both, 0;
  mov.u64 %start, %globaltimer;
pass:
  @%odd bra bytes;
  shl.b64 %i, %first, 4;
  mul.lo.u32 %b, %v, 0x01010101;
wide:
  setp.lt.u64 %more, %i, %n;
  @!%more bra passed;
  add.u64 %p, %a, %i;
  st.volatile.global.v4.u32 [%p], {%b, %b, %b, %b};
  shl.b64 %p, %step, 4;
  add.u64 %i, %i, %p;
  bra wide;
bytes:
  mov.u64 %i, %first;
narrow:
  setp.lt.u64 %more, %i, %n;
  @!%more bra passed;
  add.u64 %p, %a, %i;
  st.volatile.global.u8 [%p], %v;
  add.u64 %i, %i, %step;
  bra narrow;
passed:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %more, %now, %ns;
  @%more bra pass;
  ret;
}

// Reads every byte and writes it back.
.visible .entry granule_touch(.param .u64 a, .param .u64 n, .param .u64 ns, .param .u32 v,
                              .param .u64 out)
{
  .reg .u64 %start, %now, %ns, %a, %n, %i, %first, %step, %p, %both;
  .reg .u32 %t, %b, %d, %g, %w<4>;
  .reg .pred %more, %odd;
  ld.param.u64 %a, [a];
  ld.param.u64 %n, [n];
  ld.param.u64 %ns, [ns];
  cvta.to.global.u64 %a, %a;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %d, %t;
  mul.lo.u32 %d, %d, %g;
  cvt.u64.u32 %first, %t;
  cvt.u64.u32 %step, %d;
  or.b64 %both, %a, %n;
  and.b64 %both, %both, 15;
  setp.ne.u64 %odd, %both, 0;
  mov.u64 %start, %globaltimer;
pass:
  @%odd bra bytes;
  shl.b64 %i, %first, 4;
wide:
  setp.lt.u64 %more, %i, %n;
  @!%more bra passed;
  add.u64 %p, %a, %i;
  ld.volatile.global.v4.u32 {%w0, %w1, %w2, %w3}, [%p];
  st.volatile.global.v4.u32 [%p], {%w0, %w1, %w2, %w3};
  shl.b64 %p, %step, 4;
  add.u64 %i, %i, %p;
  bra wide;
bytes:
  mov.u64 %i, %first;
narrow:
  setp.lt.u64 %more, %i, %n;
  @!%more bra passed;
  add.u64 %p, %a, %i;
  ld.volatile.global.u8 %w0, [%p];
  st.volatile.global.u8 [%p], %w0;
  add.u64 %i, %i, %step;
  bra narrow;
passed:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %more, %now, %ns;
  @%more bra pass;
  ret;
}

// Reads every byte; each block puts AND | OR << 8 | 1 << 16 into its result word.
.visible .entry granule_read(.param .u64 a, .param .u64 n, .param .u64 ns, .param .u32 v,
                             .param .u64 out)
{
  .reg .u64 %start, %now, %ns, %a, %n, %i, %first, %step, %p, %both, %out;
  .reg .u32 %t, %b, %d, %g, %w<4>, %all, %any, %x, %y;
  .reg .pred %more, %odd, %lead, %none;
  .shared .align 4 .b32 s_all;
  .shared .align 4 .b32 s_any;
  ld.param.u64 %a, [a];
  ld.param.u64 %n, [n];
  ld.param.u64 %ns, [ns];
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %a, %a;
  mov.u32 %t, %tid.x;
  setp.eq.u32 %lead, %t, 0;
  mov.u32 %all, 0xffffffff;
  mov.u32 %any, 0;
  @%lead st.shared.u32 [s_all], %all;
  @%lead st.shared.u32 [s_any], %any;
  bar.sync 0;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %d, %t;
  mul.lo.u32 %d, %d, %g;
  cvt.u64.u32 %first, %t;
  cvt.u64.u32 %step, %d;
  or.b64 %both, %a, %n;
  and.b64 %both, %both, 15;
  setp.ne.u64 %odd, %both, 0;
  mov.u64 %start, %globaltimer;
pass:
  mov.u32 %all, 0xffffffff;
  mov.u32 %any, 0;
  @%odd bra bytes;
  shl.b64 %i, %first, 4;
wide:
  setp.lt.u64 %more, %i, %n;
  @!%more bra passed;
  add.u64 %p, %a, %i;
  ld.volatile.global.v4.u32 {%w0, %w1, %w2, %w3}, [%p];
  and.b32 %x, %w0, %w1;
  and.b32 %y, %w2, %w3;
  and.b32 %x, %x, %y;
  and.b32 %all, %all, %x;
  or.b32 %x, %w0, %w1;
  or.b32 %y, %w2, %w3;
  or.b32 %x, %x, %y;
  or.b32 %any, %any, %x;
  shl.b64 %p, %step, 4;
  add.u64 %i, %i, %p;
  bra wide;
bytes:
  mov.u64 %i, %first;
narrow:
  setp.lt.u64 %more, %i, %n;
  @!%more bra passed;
  add.u64 %p, %a, %i;
  ld.volatile.global.u8 %w0, [%p];
  mul.lo.u32 %w0, %w0, 0x01010101;
  and.b32 %all, %all, %w0;
  or.b32 %any, %any, %w0;
  add.u64 %i, %i, %step;
  bra narrow;
passed:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %more, %now, %ns;
  @%more bra pass;
  red.shared.and.b32 [s_all], %all;
  red.shared.or.b32 [s_any], %any;
  bar.sync 0;
  setp.eq.u64 %none, %out, 0;
  @%none bra finished;
  @!%lead bra finished;
  ld.shared.u32 %all, [s_all];
  ld.shared.u32 %any, [s_any];
  shr.u32 %x, %all, 16;
  and.b32 %all, %all, %x;
  shr.u32 %x, %all, 8;
  and.b32 %all, %all, %x;
  and.b32 %all, %all, 255;
  shr.u32 %x, %any, 16;
  or.b32 %any, %any, %x;
  shr.u32 %x, %any, 8;
  or.b32 %any, %any, %x;
  and.b32 %any, %any, 255;
  shl.b32 %any, %any, 8;
  or.b32 %all, %all, %any;
  or.b32 %all, %all, 0x10000;
  mul.wide.u32 %p, %b, 4;
  add.u64 %p, %out, %p;
  st.volatile.u32 [%p], %all;
finished:
  ret;
}
)ptx";

const char* entry_point(KernelKind kind) noexcept {
  switch (kind) {
    case KernelKind::kSpin:
      return "granule_spin";
    case KernelKind::kWrite:
      return "granule_write";
    case KernelKind::kRead:
      return "granule_read";
    case KernelKind::kTouch:
      return "granule_touch";
  }
  return "granule_spin";
}

unsigned blocks_for(KernelKind kind, std::uint64_t size) noexcept {
  if (kind == KernelKind::kSpin) return 1;
  // Four 16-byte words a thread before another block is worth its launch.
  constexpr std::uint64_t kBytesPerBlock = std::uint64_t{kThreadsPerBlock} * 16 * 4;
  const std::uint64_t wanted = size / kBytesPerBlock + 1;
  return static_cast<unsigned>(std::min<std::uint64_t>(wanted, kMaxBlocks));
}

}  // namespace granule::cuda
