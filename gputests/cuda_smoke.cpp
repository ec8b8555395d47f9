// Makes every driver call of the interface at least once on a real GPU and compares the answers
// with the driver contract. Exit codes: 0 all as expected, 1 a mismatch, 3 unfit machine, 44 hang.
// With --noise: which first uses move free memory, before and after a warm-up.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <granule/backends/cuda_info.hpp>

#include "smoke.hpp"

namespace granule::smoke {

void Smoke::add(std::string what, std::string note, std::string wanted, std::string got) {
  rows_.push_back({std::move(what), std::move(note), std::move(wanted), std::move(got)});
}

void Smoke::same_free(std::string what) {
  const std::uint64_t now = ok(MemGetInfo{}, "").free;
  if (free_at_first_ == 0) free_at_first_ = now;
  equal("free memory " + what, now, free_at_first_);
}

void Smoke::demand_every_call() {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    if (!used_.test(i))
      add(std::string(name_of(static_cast<CallKind>(i))), "", "made", "never made");
  }
}

bool Smoke::passed() const {
  for (const Row& row : rows_)
    if (row.wanted != row.got) return false;
  return true;
}

void Smoke::print() const {
  std::size_t wrong = 0;
  const auto line = [](const char* mark, const Row& row) {
    std::printf("%s %-38s %-34s %-30s %s\n", mark, row.what.c_str(), row.got.c_str(),
                row.wanted == row.got ? "" : ("wanted " + row.wanted).c_str(), row.note.c_str());
  };
  for (const Row& row : rows_) {
    if (row.wanted != row.got) ++wrong;
    line(row.wanted == row.got ? "ok " : "BAD", row);
  }
  std::printf("%zu rows, %zu mismatches\n", rows_.size(), wrong);
  for (const Row& row : rows_)
    if (row.wanted != row.got) line("BAD", row);
}

DevicePtr map_chunks(cuda::CudaBackend& backend, std::uint64_t size) {
  MemAddressReserve reserve;
  reserve.size = size;
  if (backend.run(reserve) != DriverStatus::kSuccess) return {};
  for (std::uint64_t at = 0; at < size; at += g) {
    MemCreate create = create_call(g);
    backend.run(create);
    MemMap map{plus(reserve.ptr, at), g, 0, create.handle, 0};
    backend.run(map);
    MemRelease release{create.handle};
    backend.run(release);
  }
  MemSetAccess access = access_call(reserve.ptr, size, Access::kReadWrite);
  backend.run(access);
  return reserve.ptr;
}

void unmap_chunks(cuda::CudaBackend& backend, DevicePtr base, std::uint64_t size) {
  MemUnmap unmap{base, size};
  backend.run(unmap);
  MemAddressFree free{base, size};
  backend.run(free);
}

namespace {

constexpr int kMismatch = 1;
constexpr int kUnfit = 3;
constexpr int kHang = 44;

// Opens the driver, or says why not and ends the process.
std::unique_ptr<cuda::CudaBackend> open_or_exit() {
  auto opened = cuda::CudaBackend::open();
  if (!opened.ok()) {
    std::fprintf(stderr, "cuda_smoke: unfit machine: %s\n", to_string(opened.error()).c_str());
    std::exit(kUnfit);
  }
  return std::move(*opened);
}

// Runs `part` in a child that opens its own driver: CUDA does not survive a fork.
template <class Part>
int in_child(const char* name, Part part) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    auto backend = open_or_exit();
    Smoke s(*backend);
    part(s);
    const bool passed = s.passed();
    std::printf("-- %s, in a process of its own\n", name);
    s.print();
    backend.reset();  // opens gates and frees what is left; must return
    std::fflush(nullptr);
    _exit(passed ? 0 : kMismatch);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::printf("-- %s: ended by signal %d\n", name, WTERMSIG(status));
  return WTERMSIG(status) == SIGALRM ? kHang : kMismatch;
}

// A gate that nobody opens, with work behind it: the backend's end must open it.
void forgotten_gate(Smoke& s) {
  devices(s);
  const StreamHandle stream = s.ok(StreamCreate{kStreamNonBlocking, {}}, "").stream;
  s.ok(CloseGate{stream}, "left closed");
  LaunchKernel spin;
  spin.stream = stream;
  spin.duration_ns = 1000000;
  s.ok(spin, "behind the gate");
  s.run(StreamQuery{stream}, DriverStatus::kNotReady, "held");
}

int run_noise() {
  const auto backend = open_or_exit();
  DevicePrimaryCtxRetain retain;
  if (backend->run(retain) != DriverStatus::kSuccess) return kMismatch;
  CtxSetCurrent set{retain.context};
  backend->run(set);
  noise(*backend);
  return 0;
}

int run() {
  int worst = in_child("a kernel fault", [](Smoke& s) { fault(s); });
  if (worst == kUnfit) return kUnfit;
  worst = std::max(worst, in_child("a gate left closed", [](Smoke& s) { forgotten_gate(s); }));

  const auto backend = open_or_exit();
  const cuda::Info info = cuda::describe(*backend);
  std::printf("%s%s\n", to_text(info).c_str(), to_json(info).c_str());
  Smoke s(*backend);
  without_context(s);
  const ContextHandle primary = devices(s);
  const Status warm = backend->warm_up();
  s.add("warm_up", "", "ok", warm.ok() ? "ok" : to_string(warm.error()));
  s.equal("current context after warm_up",
          s.ok(CtxGetCurrent{}, "as before").context.value == primary.value, true);
  s.same_free("at first");
  mappings(s);
  s.same_free("after mappings");
  memory(s);
  s.same_free("after memory");
  pools(s);
  s.same_free("after pools");
  streams(s);
  s.ok(CtxSynchronize{}, "");
  s.same_free("at the end");
  s.equal("current context at the end", s.ok(CtxGetCurrent{}, "").context.value == primary.value,
          true);
  s.ok(DevicePrimaryCtxReset{}, "S31");
  s.ok(DevicePrimaryCtxRelease{}, "");
  s.demand_every_call();
  s.print();
  return s.passed() ? worst : kMismatch;
}

}  // namespace
}  // namespace granule::smoke

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGALRM, [](int) { _exit(granule::smoke::kHang); });
  alarm(100);
  const bool noise = argc > 1 && std::strcmp(argv[1], "--noise") == 0;
  return noise ? granule::smoke::run_noise() : granule::smoke::run();
}
