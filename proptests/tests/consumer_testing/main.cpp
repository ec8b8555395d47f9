// An allocator of one's own under granule's programs: pages of one cuMemCreate each, whose close
// forgets the handle. The second program of two shows it.
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace {

using namespace granule;  // NOLINT: a small program

constexpr std::uint64_t kGranule = 2 << 20;

struct Page : prop::TargetBuffer {
  DevicePtr at;
  bool closed = false;
  DevicePtr ptr() const override { return at; }
  std::uint64_t size() const override { return closed ? 0 : kGranule; }
  bool is_closed() const override { return closed; }
};

class Pages : public prop::TargetResource {
 public:
  explicit Pages(Backend& driver) : driver_(driver) {}
  Result<std::unique_ptr<prop::TargetBuffer>> allocate(const Stream&, std::uint64_t size,
                                                       const AllocateOptions&) override {
    if (size != kGranule) return Error();
    auto page = std::make_unique<Page>();
    MemAddressReserve reserve;
    reserve.size = kGranule;
    driver_.run(reserve);
    MemCreate create;
    create.size = kGranule;
    create.properties.location = device_location({0});
    driver_.run(create);
    MemMap map;
    map.ptr = page->at = reserve.ptr;
    map.size = kGranule;
    map.handle = create.handle;
    driver_.run(map);
    MemSetAccess access;
    access.ptr = reserve.ptr;
    access.size = kGranule;
    access.access.push({device_location({0}), Access::kReadWrite});
    driver_.run(access);
    return std::unique_ptr<prop::TargetBuffer>(std::move(page));
  }
  Status close(prop::TargetBuffer& buffer, const Stream*) override {
    auto& page = static_cast<Page&>(buffer);
    if (std::exchange(page.closed, true)) return {};
    MemUnmap unmap{page.at, kGranule};
    driver_.run(unmap);
    MemAddressFree free{page.at, kGranule};
    driver_.run(free);
    return {};  // cuMemRelease is missing
  }
  Status drop(prop::TargetBuffer& buffer) override { return close(buffer, nullptr); }
  std::optional<std::uint64_t> stat(std::string_view) const override { return std::nullopt; }

 private:
  Backend& driver_;
};

prop::RunReport run(std::string_view text) {
  const prop::ParseResult parsed = prop::parse(text, "mine.granule");
  if (!parsed.ok()) std::printf("%s\n", prop::to_text(parsed.errors[0]).c_str());
  prop::RunOptions options;
  options.strict = true;
  options.target = [](const prop::TargetContext& context, const prop::TargetOptions&) {
    return Result<std::unique_ptr<prop::TargetResource>>(std::make_unique<Pages>(*context.backend));
  };
  prop::RunReport report = prop::run(parsed.document.programs[0], options);
  if (report.failure) std::printf("found: %s\n", report.failure->message.c_str());
  return report;
}

}  // namespace

int main() {
  const bool right = run("granule 1\nresource r vmm\n").ok();
  const bool wrong = run("granule 1\nresource r vmm\na = allocate r 1g\nclose a\n").ok();
  return right && !wrong ? 0 : 1;
}
