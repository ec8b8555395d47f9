// The default failure sink: one line on standard error.
#include <granule/failure_sink.hpp>

#include <cstdio>

namespace granule {
namespace {

const char* text_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::kReleaseFailed:
      return "could not be given back and is leaked";
    case FailureKind::kQuarantined:
      return "could not be unmapped and is kept for good";
    case FailureKind::kParked:
      return "is kept mapped until it can be given back";
    case FailureKind::kWaitSkipped:
      return "was given back without waiting, after a context error";
    case FailureKind::kUndoFailed:
      return "could not be put back as it was";
    case FailureKind::kWorkerFailed:
      return "got no memory ahead from the worker";
  }
  return "";
}

class StderrSink final : public FailureSink {
 public:
  void report(const FailureReport& report) noexcept override {
    const std::string_view driver = name_of(report.error.driver);
    std::fprintf(stderr, "granule: %llu bytes at 0x%llx %s (%.*s: %.*s %.*s)\n",
                 static_cast<unsigned long long>(report.size),
                 static_cast<unsigned long long>(report.ptr.value), text_of(report.kind),
                 static_cast<int>(report.error.call.size()), report.error.call.data(),
                 static_cast<int>(driver.size()), driver.data(),
                 static_cast<int>(report.error.detail.size()), report.error.detail.data());
  }
};

}  // namespace

FailureSink& stderr_failure_sink() noexcept {
  static StderrSink sink;
  return sink;
}

}  // namespace granule
