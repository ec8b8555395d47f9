// Generated faults: plausible codes for each call that the library makes.
#include <array>
#include <string_view>

#include "writer.hpp"

namespace granule::prop::gen {

/// A call and what it may be answered with.
struct FaultRow {
  std::string_view call;
  std::array<std::string_view, 4> codes;
};

namespace {

constexpr FaultRow kFaults[] = {
    {"cuMemSetAccess",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_NOT_READY"}},
    {"cuMemMap",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_NOT_READY"}},
    {"cuMemCreate",
     {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_NOT_PERMITTED",
      "CUDA_ERROR_NOT_READY"}},
    {"cuMemAddressReserve",
     {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_UNKNOWN",
      "CUDA_ERROR_NOT_READY"}},
    {"cuMemUnmap",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_NOT_READY", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuMemRelease",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_NOT_READY", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuMemAddressFree",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_NOT_READY", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuEventCreate",
     {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_CONTEXT",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuEventRecord",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_INVALID_CONTEXT",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuEventQuery",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_NOT_READY", "CUDA_ERROR_INVALID_HANDLE",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuEventSynchronize",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_OUT_OF_MEMORY",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuStreamSynchronize",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_OUT_OF_MEMORY",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuStreamWaitEvent",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuStreamIsCapturing",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuDevicePrimaryCtxRetain",
     {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_DEVICE_UNAVAILABLE",
      "CUDA_ERROR_UNKNOWN"}},
    {"cuMemExportToShareableHandle",
     {"CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_OPERATING_SYSTEM"}},
    {"cuMemImportFromShareableHandle",
     {"CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_OUT_OF_MEMORY"}},
    {"any",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_NOT_READY"}},
};

/// Of a resource that is being made.
constexpr FaultRow kMakingFaults[] = {
    {"cuMemGetAllocationGranularity",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED",
      "CUDA_ERROR_NOT_READY"}},
    {"cuDeviceGetAttribute",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED",
      "CUDA_ERROR_INVALID_DEVICE"}},
};

constexpr FaultRow kPoolFaults[] = {
    {"cuMemPoolCreate",
     {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_NOT_SUPPORTED",
      "CUDA_ERROR_INVALID_VALUE"}},
    {"cuMemPoolSetAttribute",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED",
      "CUDA_ERROR_OUT_OF_MEMORY"}},
    {"cuMemAllocFromPoolAsync",
     {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE",
      "CUDA_ERROR_INVALID_HANDLE"}},
    {"cuMemFreeAsync",
     {"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_HANDLE",
      "CUDA_ERROR_INVALID_CONTEXT"}},
};

/// Answers of a driver that has not tried: calls that were made do not give them.
bool asks_for_another_try(std::string_view call, std::string_view code) {
  if (code == "CUDA_ERROR_NOT_READY") return true;
  return call == "cuMemFreeAsync" &&
         (code == "CUDA_ERROR_INVALID_HANDLE" || code == "CUDA_ERROR_INVALID_CONTEXT");
}

}  // namespace

/// The contexts are lost to an error of earlier work.
bool Writer::fail_contexts() {
  Line line = Line(Verb::kFail)
                  .word(c_.chance(1, 2) ? "any" : "cuStreamIsCapturing")
                  .option("nth", Size::bytes(1 + c_.pick(8)))
                  .flag(c_.chance(1, 2) ? "surfacing" : "sticky");
  line.option("with",
              Word{c_.chance(1, 2) ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_ILLEGAL_ADDRESS"});
  add(line);
  faults_armed_ = true;
  return true;
}

const FaultRow& Writer::pick_fault() {
  if (has(Feature::kPools) && c_.chance(1, 3)) return kPoolFaults[c_.pick(std::size(kPoolFaults))];
  if (has(Feature::kResources) && c_.chance(1, 6))
    return kMakingFaults[c_.pick(std::size(kMakingFaults))];
  return kFaults[c_.pick(std::size(kFaults))];
}

bool Writer::fail() {
  if (has(Feature::kFaultsSticky) && c_.chance(1, 8)) return fail_contexts();
  const FaultRow& row = pick_fault();
  Line line = Line(Verb::kFail)
                  .word(std::string(row.call))
                  .option("nth", Size::bytes(1 + c_.pick(row.call == "any" ? 12 : 3)));
  switch (c_.pick(6)) {
    case 3:
      line.option("times", Word{"2"});
      break;
    case 4:
      line.option("times", Word{"12"});
      break;
    case 5:
      line.option("times", Word{"all"});
      break;
    default:
      break;
  }
  if (row.call == "cuMemCreate" && c_.chance(1, 4)) line.option("if", Word{"rdma"});
  const std::string_view code = row.codes[c_.pick(4)];
  if (has(Feature::kFaultsAfter) && !asks_for_another_try(row.call, code) && c_.chance(1, 2))
    line.flag("after");
  line.option("with", Word{std::string(code)});
  add(line);
  faults_armed_ = true;
  return true;
}

bool Writer::fail_host() {
  Line line = Line(Verb::kFailHostAlloc).option("nth", Size::bytes(1 + c_.pick(4)));
  if (c_.chance(1, 4)) line.option("times", Word{"all"});
  add(line);
  faults_armed_ = true;
  return true;
}

bool Writer::no_faults() {
  if (!faults_armed_) return false;
  add(Line(Verb::kNoFaults));
  faults_armed_ = false;
  stolen_ = false;
  return true;
}

bool Writer::steal() {
  add(Line(Verb::kSteal).size(Size::granules(c_.between(1, plan_.memory))));
  stolen_ = true;
  return true;
}

bool Writer::unsteal() {
  if (!stolen_) return false;
  add(Line(Verb::kUnsteal));
  stolen_ = false;
  return true;
}

bool Writer::hints() {
  add(Line(Verb::kIgnoreHints).word(c_.chance(1, 3) ? "off" : "on"));
  return true;
}

}  // namespace granule::prop::gen
