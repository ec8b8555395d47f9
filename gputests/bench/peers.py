#!/usr/bin/env python3
"""B1, B2 and B3 on PyTorch's caching allocator, for the tables of granule bench.

Run it on the same machine right after granule bench. Each mode needs a process of its own, so the
script starts itself twice. Without PyTorch or a GPU it says so and ends with 3.
"""

import os
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
GIB = 1 << 30
MASK = (1 << 64) - 1


class Mt19937_64:
    """std::mt19937_64, whose numbers the trace of B3 is made of."""

    def __init__(self, seed):
        self.state = [seed & MASK]
        for i in range(1, 312):
            before = self.state[-1]
            self.state.append((6364136223846793005 * (before ^ (before >> 62)) + i) & MASK)
        self.at = 312

    def __call__(self):
        if self.at == 312:
            for i in range(312):
                x = (self.state[i] & 0xFFFFFFFF80000000) | (self.state[(i + 1) % 312] & 0x7FFFFFFF)
                odd = 0xB5026F5AA96619E9 if x & 1 else 0
                self.state[i] = self.state[(i + 156) % 312] ^ (x >> 1) ^ odd
            self.at = 0
        x = self.state[self.at]
        self.at += 1
        x ^= (x >> 29) & 0x5555555555555555
        x ^= (x << 17) & 0x71D67FFFEDA60000
        x ^= (x << 37) & 0xFFF7EEE000000000
        return x ^ (x >> 43)


def churn_trace():
    """The operations of B3 as (size, index): a size to allocate, or 0 and which live one to free."""
    random, trace, live, held, peak = Mt19937_64(42), [], [], 0, 0
    while len(trace) < 20000:
        allocate = not live or (held < 8 * GIB and random() % 2 == 1)
        size = 0
        if allocate:
            size = 1 + (random() >> 38)  # uniform in 1 B..64 MiB
            allocate = held + size <= 8 * GIB
        if allocate:
            live.append(size)
            held += size
            peak = max(peak, held)
            trace.append((size, 0))
            continue
        index = random() % len(live)
        held -= live[index]
        live[index] = live[-1]
        live.pop()
        trace.append((0, index))
    return trace, peak


def median_ns(function, inner=64, samples=500):
    for _ in range(100):
        function()
    seen = []
    for _ in range(samples):
        start = time.perf_counter_ns()
        for _ in range(inner):
            function()
        seen.append((time.perf_counter_ns() - start) / inner)
    return statistics.median(seen)


def measure(mode):
    import torch

    stream = torch.cuda.current_stream().cuda_stream
    take = torch._C._cuda_cudaCachingAllocator_raw_alloc
    give = torch._C._cuda_cudaCachingAllocator_raw_delete
    torch.empty(1, device="cuda")
    floor = median_ns(lambda: torch._C._cuda_getDevice())
    print(f"\nPyTorch {torch.__version__}, {mode} (a call from Python alone: {floor:.0f} ns; "
          "two of them are in each pair)")
    for size in (2 * MIB, 64 * MIB, 512 * MIB):
        print(f"B1 warm pair of {size // MIB:4d} MiB: {median_ns(lambda: give(take(size, stream))):8.0f} ns")
    for doubling in (True, False):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        buffers = [torch.zeros(2 * MIB, dtype=torch.uint8, device="cuda") for _ in range(32)]
        size, grows, copied = 2 * MIB, [], 0
        while size < 256 * MIB:
            size = 2 * size if doubling else (32 * MIB if size < 32 * MIB else size + 32 * MIB)
            for i, old in enumerate(buffers):
                start = time.perf_counter_ns()
                new = torch.empty(size, dtype=torch.uint8, device="cuda")
                new[: old.numel()].copy_(old)
                buffers[i] = new
                grows.append(time.perf_counter_ns() - start)
                copied += old.numel()
                del old
        torch.cuda.synchronize()
        grows.sort()
        peak = torch.cuda.max_memory_reserved()
        print(f"B2 {'by doubling' if doubling else 'steps of 32 MiB'}: {sum(grows) / len(grows) / 1000:.1f} us a grow "
              f"(p50 {grows[len(grows) // 2] / 1000:.1f}), {copied / GIB:.1f} GiB copied, memory over live "
              f"{peak / (8 * GIB):.3f}")
        buffers.clear()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trace, live_peak = churn_trace()
    for _ in range(2):  # the first warms the allocator
        live, took = [], 0
        for size, index in trace:
            start = time.perf_counter_ns()
            if size:
                live.append(take(size, stream))
            else:
                live[index], live[-1] = live[-1], live[index]
                give(live.pop())
            took += time.perf_counter_ns() - start
        for block in live:
            give(block)
    peak = torch.cuda.max_memory_reserved()
    print(f"B3 churn: {took / len(trace):.0f} ns an operation, memory {peak / GIB:.2f} GiB = "
          f"{peak / live_peak:.3f} of the live peak")


def main():
    if len(sys.argv) == 2:
        measure(sys.argv[1])
        return 0
    try:
        import torch

        usable = torch.cuda.is_available()
    except ImportError:
        usable = False
    if not usable:
        print("peers.py: not run: no PyTorch that finds a GPU")
        return 3
    for mode, setting in (("default", ""), ("expandable segments", "expandable_segments:True")):
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=setting)
        subprocess.run([sys.executable, __file__, mode], env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
