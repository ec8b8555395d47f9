// Child processes, by fork and wait.
#include "supervise.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace granule::cli {

int in_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return work();
  if (child == 0) {
    const int code = work();
    std::fflush(nullptr);
    std::_Exit(code);
  }
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  sigaction(SIGINT, &before, nullptr);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void* shared_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace granule::cli
