// Access: grants to what there is and what is to come, their undo, and lists that are full.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

constexpr std::int32_t kDevices = 24;

class GrantTest : public testing::Test {
 protected:
  GrantTest() {
    driver.script = [](Call& call) -> std::optional<DriverStatus> {
      auto* count = std::get_if<DeviceGetCount>(&call);
      if (!count) return std::nullopt;
      count->count = kDevices;
      return DriverStatus::kSuccess;
    };
    environment.sink = &sink;
    environment.runtime.memory = &memory;
  }
  ~GrantTest() override { EXPECT_EQ(memory.blocks, 0u); }
  VirtualMemoryResource resource(const VmmOptions& options = {}) {
    return VirtualMemoryResource::create(driver, options, environment).value();
  }
  static const AccessEntry& entry(const MemSetAccess& call, std::size_t i) {
    return call.access.entries[i];
  }
  CountedMemory memory;
  KeptReports sink;
  Environment environment;
  ScriptedBackend driver;
  Stream stream = Stream::bind(driver, StreamHandle{0x77}).value();
};

// Access that changes could end work of those that had it; idle memory goes first.
TEST_F(GrantTest, ThatChangesAccessGivesIdleMemoryBack) {
  VmmOptions options;
  options.peers = {{1}};
  options.peer_access = Access::kRead;
  options.cache = 8 * kG;
  auto r = resource(options);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  Buffer a = r.allocate(stream, 2 * kG).value();
  GrowOptions nobody;
  nobody.peers = std::vector<DeviceId>();
  Buffer b = a.grow(3 * kG, nobody).value().buffer;
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_TRUE(r.grant({2}, Access::kReadWrite).ok());
  EXPECT_EQ(r.statistics().cached, kG) << "what is the same or new changes nothing for anybody";
  Buffer c = a.grow(3 * kG, nobody).value().buffer;
  EXPECT_TRUE(r.grant({1}, Access::kReadWrite).ok());
  EXPECT_EQ(r.statistics().cached, 0u);
}

TEST_F(GrantTest, WaitsForTheOneBeforeIt) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  std::atomic<bool> done{false};
  std::thread second;
  driver.script = [&](Call& call) -> std::optional<DriverStatus> {
    if (!std::holds_alternative<MemSetAccess>(call)) return std::nullopt;
    driver.script = nullptr;
    second = std::thread([&] {
      EXPECT_TRUE(r.grant({2}, Access::kRead).ok());
      done = true;
    });
    for (int i = 0; i < 20 && !done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(done) << "both mark what they have reached";
    return std::nullopt;
  };
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  second.join();
  EXPECT_EQ(driver.count<MemSetAccess>(), 6u);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(GrantTest, ReachesAnyNumberOfChunks) {
  auto r = resource();
  std::vector<Buffer> many;
  for (int i = 0; i < 100; ++i) many.push_back(r.allocate(stream, kG).value());
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), 200u);
}

TEST_F(GrantTest, ReachesEveryMappingAndThoseToCome) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  GrowResult b = a.grow(2 * kG).value();  // moved: the chunk of a is mapped twice
  const std::size_t before = driver.count<MemSetAccess>();
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), before + 4);
  EXPECT_EQ(driver.last<MemSetAccess>().access.count, 1u) << "only what is new";
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 0).location, device_location({1}));
  Buffer c = r.allocate(stream, kG).value();
  ASSERT_EQ(driver.last<MemSetAccess>().access.count, 2u);
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 1).access, Access::kRead);
  const std::size_t after = driver.count<MemSetAccess>();
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), after) << "given already";
  EXPECT_TRUE(r.grant({1}, Access::kReadWrite).ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), after + 5) << "wider";
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), after + 5) << "narrower is nothing";
}

TEST_F(GrantTest, RefusedGrantTakesBackWhatItGave) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  driver.fail<MemSetAccess>(DriverStatus::kUnknown, 2);
  const std::size_t before = driver.log.size();
  const Status done = r.grant({1}, Access::kReadWrite);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().object, b.ptr().value);
  EXPECT_EQ(driver.calls(before), "MemSetAccess MemSetAccess MemSetAccess MemSetAccess");
  const auto& undone = std::get<MemSetAccess>(driver.log[before + 2]);
  EXPECT_EQ(undone.ptr, a.ptr());
  ASSERT_EQ(undone.access.count, 1u);
  EXPECT_EQ(entry(undone, 0).location, device_location({1}));
  EXPECT_EQ(entry(undone, 0).access, Access::kNone);
  driver.lift();
  Buffer c = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemSetAccess>().access.count, 1u) << "later chunks do not have it";
  EXPECT_TRUE(r.grant({1}, Access::kReadWrite).ok()) << "and it can be had later";
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(GrantTest, UndoThatIsRefusedIsReported) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  driver.fail<MemSetAccess>(DriverStatus::kUnknown, 1, 2);
  EXPECT_FALSE(r.grant({1}, Access::kReadWrite).ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kUndoFailed);
  EXPECT_EQ(sink.reports[0].ptr, a.ptr());
  EXPECT_EQ(sink.reports[0].size, kG);
}

TEST_F(GrantTest, SixteenPlacesAreAllThereCanBe) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  for (std::int32_t device = 1; device < 16; ++device)
    EXPECT_TRUE(r.grant({device}, Access::kRead).ok()) << device;
  const std::size_t before = driver.log.size();
  const Status full = r.grant({16}, Access::kRead);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(driver.count<MemSetAccess>(), 16u);
  EXPECT_GE(driver.log.size(), before);
  EXPECT_TRUE(r.grant({3}, Access::kReadWrite).ok()) << "one that is there";
}

TEST_F(GrantTest, GrowWithPeersOfItsOwnKeepsTheGrantsIfThereIsRoom) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.grant({2}, Access::kRead).ok());
  GrowOptions options;
  options.peers = std::vector<DeviceId>{{1}};
  options.peer_access = Access::kRead;
  GrowResult b = a.grow(2 * kG, options).value();
  const MemSetAccess& given = driver.last<MemSetAccess>();
  ASSERT_EQ(given.access.count, 3u);
  EXPECT_EQ(entry(given, 1).location, device_location({1}));
  EXPECT_EQ(entry(given, 1).access, Access::kRead);
  EXPECT_EQ(entry(given, 2).location, device_location({2}));
  options.peers->clear();
  for (std::int32_t device = 3; device < 18; ++device) options.peers->push_back({device});
  const Result<GrowResult> full = b.buffer.grow(3 * kG, options);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(GrantTest, GrowMayTakeAccessAwayFromItsOwnSide) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  GrowOptions options;
  options.self_access = Access::kRead;
  GrowResult b = a.grow(2 * kG, options).value();
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 0).access, Access::kRead);
  options.self_access = Access::kNone;
  const std::size_t before = driver.count<MemSetAccess>();
  GrowResult c = b.buffer.grow(3 * kG, options).value();
  EXPECT_EQ(driver.count<MemSetAccess>(), before) << "an empty list is not asked for";
}

TEST_F(GrantTest, WideningWaitsForWhatNobodyOwns) {
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  options.cache = 4 * kG;
  auto r = resource(options);
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  Buffer idle = r.allocate(stream, kG).value();
  Buffer gone = r.allocate(stream, 8 * kG).value();
  EXPECT_TRUE(idle.close().ok());
  EXPECT_TRUE(gone.close().ok());
  EXPECT_EQ(r.statistics().cached, kG);
  EXPECT_EQ(r.statistics().retired, 8 * kG);
  EXPECT_TRUE(r.grant({2}, Access::kRead).ok());
  EXPECT_EQ(r.statistics().cached, kG) << "a device that had none disturbs nobody";
  EXPECT_TRUE(r.grant({1}, Access::kReadWrite).ok());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_EQ(r.statistics().retired, 0u);
}

TEST_F(GrantTest, WideningIsRefusedWhileARangeIsParked) {
  auto r = resource();
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  const auto plain = driver.script;
  {
    Buffer a = r.allocate(stream, kG).value();
    driver.script = [&](Call& call) -> std::optional<DriverStatus> {
      auto* query = std::get_if<StreamIsCapturing>(&call);
      if (!query) return plain(call);
      query->status = CaptureStatus::kActive;
      return DriverStatus::kSuccess;
    };
  }
  EXPECT_EQ(r.grant({1}, Access::kReadWrite).error().code, ErrorCode::kCapturing);
  driver.script = plain;
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_TRUE(r.grant({1}, Access::kReadWrite).ok());
}

TEST_F(GrantTest, OwnSideCanBeWidened) {
  VmmOptions options;
  options.self_access = Access::kNone;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<MemSetAccess>(), 0u);
  EXPECT_TRUE(r.grant({0}, Access::kReadWrite).ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), 1u);
  EXPECT_EQ(r.grant({kDevices}, Access::kReadWrite).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(GrantTest, HostMemoryForTheUndoIsTakenFirst) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  memory.fail_in = 1;
  const Status done = r.grant({1}, Access::kRead);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().exhausted, Exhausted::kHost);
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok()) << "the next one is not locked out";
}

TEST_F(GrantTest, EqualListsAreOne) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  GrowOptions options;
  options.self_access = Access::kReadWrite;  // as the resource's own
  const std::size_t before = memory.blocks;
  GrowResult b = a.grow(2 * kG, options).value();
  EXPECT_EQ(memory.blocks, before + 4) << "record, reservation, mapping, chunk; no list";
  options.self_access = Access::kRead;
  GrowResult c = b.buffer.grow(3 * kG, options).value();
  EXPECT_EQ(memory.blocks, before + 9) << "and a list of its own";
  EXPECT_TRUE(c.buffer.close().ok());
  EXPECT_EQ(memory.blocks, before + 4) << "which goes with its last chunk";
}

TEST_F(GrantTest, EachOptionOfAGrowMakesAListOfItsOwn) {
  VmmOptions resources;
  resources.peers = {{2}, {1}, {2}};
  auto r = resource(resources);
  Buffer a = r.allocate(stream, kG).value();
  ASSERT_EQ(driver.last<MemSetAccess>().access.count, 3u) << "each peer once";
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 1).location, device_location({1}));
  GrowOptions narrower;
  narrower.peer_access = Access::kRead;
  Buffer b = a.grow(2 * kG, narrower).value().buffer;
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 1).access, Access::kRead);
  GrowOptions fewer;
  fewer.peers = std::vector<DeviceId>{{3}};
  Buffer c = b.grow(3 * kG, fewer).value().buffer;
  ASSERT_EQ(driver.last<MemSetAccess>().access.count, 2u);
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 1).location, device_location({3}));
  GrowOptions none;
  none.capacity = 8 * kG;
  Buffer d = c.grow(4 * kG, none).value().buffer;
  EXPECT_EQ(driver.last<MemSetAccess>().access.count, 3u) << "as the resource says";
  narrower.peer_access = Access::kReadWrite;
  memory.fail_in = 2;  // a mark or two in front of the list
  GrowOptions another;
  another.self_access = Access::kRead;
  memory.fail_in = 1;
  EXPECT_EQ(d.grow(5 * kG, another).status().error().exhausted, Exhausted::kHost);
  memory.fail_in = 0;
}

TEST_F(GrantTest, WiderAccessIsThatOfChunksToCome) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_TRUE(r.grant({2}, Access::kRead).ok());
  EXPECT_TRUE(r.grant({1}, Access::kReadWrite).ok());
  EXPECT_EQ(r.grant({2}, Access::kNone).error().code, ErrorCode::kInvalidArgument);
  Buffer b = r.allocate(stream, kG).value();
  ASSERT_EQ(driver.last<MemSetAccess>().access.count, 3u);
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 1).access, Access::kReadWrite);
  EXPECT_EQ(entry(driver.last<MemSetAccess>(), 2).access, Access::kRead);
  EXPECT_EQ(r.grant({1}, static_cast<Access>(9)).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace granule
