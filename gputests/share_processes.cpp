// A growable buffer shared between two real processes: one descriptor a chunk over a Unix socket
// (SCM_RIGHTS), imported into one range, read and written on both sides. Both look at their open
// descriptors and at free memory afterwards. Exit codes: 0 as expected, 1 not, 3 no GPU: not run.
#include <dirent.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <granule/backends/cuda.hpp>
#include <granule/resource.hpp>

namespace granule {
namespace {

constexpr int kMismatch = 1;
constexpr int kUnfit = 3;
constexpr std::uint64_t kG = std::uint64_t{2} << 20;
constexpr std::size_t kMostChunks = 8;

/// What goes over the socket beside the descriptors.
struct Announcement {
  std::uint64_t count = 0;
  std::array<std::uint64_t, kMostChunks> sizes{};
};

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("BAD %d: %s\n", static_cast<int>(getpid()), what);
  std::fflush(nullptr);
  std::_Exit(kMismatch);
}

int open_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (!folder) return -1;
  int count = 0;
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

bool send_buffer(int socket, const SharedBuffer& shared) {
  Announcement said;
  std::array<int, kMostChunks> descriptors{};
  for (const SharedBuffer::Chunk& chunk : shared.chunks()) {
    descriptors[said.count] = chunk.descriptor.value;
    said.sizes[said.count++] = chunk.size;
  }
  iovec bytes{&said, sizeof said};
  const std::size_t room = said.count * sizeof(int);
  alignas(cmsghdr) char control[CMSG_SPACE(kMostChunks * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(room);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(room);
  std::memcpy(CMSG_DATA(header), descriptors.data(), room);
  return sendmsg(socket, &message, 0) == static_cast<ssize_t>(sizeof said);
}

/// Owns what it received, as the exporter's bundle owns the other end.
SharedBuffer receive_buffer(int socket, Backend& backend) {
  Announcement said;
  iovec bytes{&said, sizeof said};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostChunks * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  expect(recvmsg(socket, &message, 0) == static_cast<ssize_t>(sizeof said), "nothing received");
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  expect(header && header->cmsg_type == SCM_RIGHTS &&
             header->cmsg_len == CMSG_LEN(said.count * sizeof(int)),
         "as many descriptors as sizes");
  std::array<int, kMostChunks> descriptors{};
  std::memcpy(descriptors.data(), CMSG_DATA(header), said.count * sizeof(int));
  SharedBuffer shared(backend, HandleType::kPosixFd);
  shared.reserve(said.count);
  for (std::uint64_t i = 0; i < said.count; ++i)
    shared.add({Descriptor{descriptors[i]}, said.sizes[i], 0});
  return shared;
}

/// A driver with the primary context current, or the end of the process.
std::unique_ptr<cuda::CudaBackend> open_driver() {
  auto opened = cuda::CudaBackend::open();
  if (!opened.ok()) {
    std::printf("share_processes: not run: %s\n", to_string(opened.error()).c_str());
    std::fflush(nullptr);
    std::_Exit(kUnfit);
  }
  DevicePrimaryCtxRetain retain;
  CtxSetCurrent set;
  expect((*opened)->run(retain) == DriverStatus::kSuccess, "no primary context");
  set.context = retain.context;
  expect((*opened)->run(set) == DriverStatus::kSuccess, "no current context");
  return std::move(*opened);
}

void fill(Backend& backend, DevicePtr ptr, std::uint8_t byte, std::uint64_t size) {
  MemsetD8 set;
  set.ptr = ptr;
  set.value = byte;
  set.size = size;
  expect(backend.run(set) == DriverStatus::kSuccess, "a fill");
  CtxSynchronize wait;
  expect(backend.run(wait) == DriverStatus::kSuccess, "a wait");
}

bool holds(Backend& backend, DevicePtr ptr, std::uint8_t byte, std::uint64_t size) {
  std::vector<std::uint8_t> seen(size);
  MemcpyDtoH copy;
  copy.dst = seen.data();
  copy.src = ptr;
  copy.size = size;
  if (backend.run(copy) != DriverStatus::kSuccess) return false;
  for (const std::uint8_t value : seen)
    if (value != byte) return false;
  return true;
}

VmmOptions exportable() {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  return options;
}

DevicePtr behind(DevicePtr ptr, std::uint64_t bytes) { return DevicePtr{ptr.value + bytes}; }

void confirm(int socket) { expect(write(socket, "!", 1) == 1, "the other one is gone"); }
void await(int socket) {
  char said = 0;
  expect(read(socket, &said, 1) == 1 && said == '!', "the other one has failed");
}

int import_side(int socket) {
  const auto backend = open_driver();
  const int before = open_descriptors();
  {
    auto resource = VirtualMemoryResource::create(*backend, exportable()).value();
    SharedBuffer shared = receive_buffer(socket, *backend);
    expect(open_descriptors() == before + static_cast<int>(shared.chunks().size()), "descriptors");
    Buffer buffer = resource.import_buffer(Stream::legacy({0}), shared).value();
    expect(shared.close().ok(), "closing what was received");
    expect(open_descriptors() == before, "the import keeps no descriptor open");
    expect(buffer.size() == 3 * kG, "the whole range");
    expect(holds(*backend, buffer.ptr(), 0x11, kG), "the first chunk's bytes");
    expect(holds(*backend, behind(buffer.ptr(), kG), 0x22, 2 * kG), "the second chunk's bytes");
    fill(*backend, behind(buffer.ptr(), kG - 4096), 0x33, 8192);  // across the seam
    confirm(socket);
    await(socket);  // the exporter has closed its buffer: the memory is still here
    expect(holds(*backend, behind(buffer.ptr(), 2 * kG), 0x22, kG), "bytes without the exporter");
    expect(buffer.close().ok(), "close");
  }
  confirm(socket);
  return 0;
}

int export_side(int socket) {
  const auto backend = open_driver();
  MemGetInfo info;
  expect(backend->run(info) == DriverStatus::kSuccess, "free memory");
  const std::uint64_t free_before = info.free;
  const int before = open_descriptors();
  {
    auto resource = VirtualMemoryResource::create(*backend, exportable()).value();
    AllocateOptions room;
    room.capacity = 4 * kG;
    Buffer buffer = resource.allocate(Stream::legacy({0}), kG, room).value();
    expect(buffer.resize(3 * kG).ok(), "a growth in place");
    fill(*backend, buffer.ptr(), 0x11, kG);
    fill(*backend, behind(buffer.ptr(), kG), 0x22, 2 * kG);
    SharedBuffer shared = resource.export_buffer(buffer).value();
    expect(shared.chunks().size() == 2, "a descriptor a chunk");
    expect(send_buffer(socket, shared), "sending");
    expect(shared.close().ok(), "closing what was sent");
    expect(open_descriptors() == before, "the export keeps no descriptor open");
    await(socket);
    expect(holds(*backend, behind(buffer.ptr(), kG - 4096), 0x33, 8192), "the importer's bytes");
    expect(buffer.close().ok(), "close");
  }
  confirm(socket);
  await(socket);
  expect(backend->run(info) == DriverStatus::kSuccess, "free memory");
  std::printf("free memory %lld bytes from the start, the importer's context apart\n",
              static_cast<long long>(info.free) - static_cast<long long>(free_before));
  return 0;
}

}  // namespace
}  // namespace granule

int main() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return granule::kMismatch;
  const pid_t child =
      fork();  // before anybody has touched the driver: CUDA does not survive a fork
  if (child == 0) {
    close(ends[0]);
    return granule::import_side(ends[1]);
  }
  close(ends[1]);
  const int mine = granule::export_side(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const int theirs = WIFEXITED(status) ? WEXITSTATUS(status) : granule::kMismatch;
  if (mine == 0 && theirs == 0) std::printf("shared between two processes: as expected\n");
  return mine != 0 ? mine : theirs;
}
