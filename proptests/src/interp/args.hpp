// Reading the operands of driver calls: names become values; a name that is unknown is remembered,
// so that a handler asks once, at the end, whether the statement has to be skipped.
#pragma once

#include <granule/backends/names.hpp>
#include <granule/prop/text.hpp>

#include "world.hpp"

namespace granule::prop {

class Args {
 public:
  Args(World& world, const Statement& statement) : world_(world), s_(statement) {}

  bool missing() const { return !missing_.empty(); }
  Reply skip() const { return Reply::skipped("no `" + missing_ + "`"); }

  std::uint64_t address(std::size_t index) {
    const auto* operand = s_.operand<Address>(index);
    return operand ? value(*operand) : 0;
  }
  std::uint64_t address(std::string_view key) {
    const auto* operand = s_.value<Address>(key);
    return operand ? value(*operand) : 0;
  }
  EventHandle event(std::size_t index) {
    const auto* operand = s_.operand<Address>(index);
    if (!operand) return {};
    const auto found = world_.event(*operand);
    if (!found) missing_ = operand->name;
    return found.value_or(EventHandle{});
  }
  std::uint64_t size(std::size_t index) const {
    const auto* operand = s_.operand<Size>(index);
    return operand ? world_.eval(*operand) : 0;
  }
  std::uint64_t size(std::string_view key, std::uint64_t fallback = 0) const {
    const auto* operand = s_.value<Size>(key);
    return operand ? world_.eval(*operand) : fallback;
  }
  std::uint8_t byte(std::size_t index) const {
    const auto* operand = s_.operand<Byte>(index);
    return operand ? operand->value : std::uint8_t{0};
  }
  Location place(std::size_t index) {
    const auto* operand = s_.operand<Place>(index);
    return operand ? world_.location(*operand).value_or(Location{}) : Location{};
  }
  /// The stream that `on` names, or operand `index`.
  StreamObject* stream() {
    const Name* name = s_.value<Name>("on");
    return name ? stream(*name) : nullptr;
  }
  StreamObject* stream(std::size_t index) {
    const Name* name = s_.operand<Name>(index);
    return name ? stream(*name) : nullptr;
  }
  bool has_stream() const { return s_.has("on"); }

  /// A keyword or a number for an enumeration.
  template <class E>
  E word(std::size_t index) {
    const Word* operand = s_.operand<Word>(index);
    return operand ? enum_of<E>(operand->text) : E{};
  }
  template <class E>
  E enum_of(const std::string& text) {
    if (const auto known = trace::spelled<E>(text)) return *known;
    return static_cast<E>(number(text));
  }
  AllocationProperties properties();
  AccessEntries grants(std::size_t from);

 private:
  static std::uint64_t number(const std::string& text) {
    std::uint64_t value = 0;
    const bool hex = text.rfind("0x", 0) == 0;
    for (std::size_t i = hex ? 2 : 0; i < text.size(); ++i) {
      const char c = text[i];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 0;
      value = value * (hex ? 16 : 10) + static_cast<std::uint64_t>(digit);
    }
    return value;
  }
  std::uint64_t value(const Address& operand) {
    const auto found = world_.address(operand);
    if (!found) missing_ = operand.name;
    return found.value_or(0);
  }
  StreamObject* stream(const Name& name) {
    auto* found = world_.find_as<StreamObject>(name.text);
    if (found) return found;
    const auto* raw = world_.find_as<RawObject>(name.text);
    if (!raw || raw->kind != RawObject::Kind::kDeadStream) {
      missing_ = name.text;
      return nullptr;
    }
    dead_.handle.value = raw->value;
    return &dead_;
  }

  World& world_;
  const Statement& s_;
  std::string missing_;
  StreamObject dead_;  // a destroyed stream: only its handle
};

/// A program's call on a stream, with that stream's device current where that matters.
template <class C>
DriverStatus program_call_on(World& world, const StreamObject& stream, C& call) {
  const DeviceScope scope(world, stream.kind == StreamKind::kCreated ? 0 : stream.device,
                          DeviceScope::Bare::kStays);
  call.stream = stream.handle;
  return world.program_call(call);
}

/// Notes that raw calls wrote into [address, address + size): buffers there hold unknown bytes.
void disturb_buffers(World& world, std::uint64_t address, std::uint64_t size);

}  // namespace granule::prop
