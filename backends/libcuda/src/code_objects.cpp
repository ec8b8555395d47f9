// Images and kernels by handle, and as much of PTX as parameters need.
#include "code_objects.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>

namespace granule::libcuda {
namespace {

struct Image {
  bool complete = false;  // has no other kernels than those listed
  std::vector<KernelFacts> kernels;
  std::map<std::string, std::uint64_t, std::less<>> handles;
};

struct Objects {
  std::mutex mutex;
  std::map<std::uint64_t, Image> images;
  std::map<std::uint64_t, KernelFacts> kernels;
  std::uint64_t next = 0x10;
  std::uint64_t fresh() { return next += 0x10; }
};
Objects& objects() {
  static auto* const all = new Objects;
  return *all;
}

enum class Format { kText, kElf, kPacked };

/// Byte by byte, so that a text shorter than four is not read past its end.
bool begins_with(const void* image, const unsigned char (&magic)[4]) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  for (std::size_t i = 0; i < 4; ++i)
    if (bytes[i] != magic[i]) return false;
  return true;
}

Format format_of(const void* image) {
  if (begins_with(image, {0x7f, 'E', 'L', 'F'})) return Format::kElf;
  if (begins_with(image, {0x50, 0xed, 0x55, 0xba})) return Format::kPacked;
  if (begins_with(image, {0xb1, 0x43, 0x62, 0x46})) return Format::kPacked;
  return Format::kText;
}

std::uint32_t size_of_type(std::string_view type) {
  const std::size_t digit = type.find_first_of("0123456789");
  if (digit == std::string_view::npos) return type == ".pred" ? 1 : 0;
  std::uint32_t bits = 0;
  for (const char c : type.substr(digit))
    if (std::isdigit(static_cast<unsigned char>(c)) != 0)
      bits = bits * 10 + static_cast<unsigned>(c - '0');
  return bits / 8;
}

std::uint32_t number_at(std::string_view text) {
  std::uint32_t value = 0;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) break;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
    if (value > (1u << 20)) break;
  }
  return value;
}

/// ".param .align 8 .b8 name[16]" or ".param .u64 name".
void add_parameter(std::string_view text, KernelFacts& kernel) {
  std::uint32_t align = 0;
  std::uint32_t size = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    at = end;
    if (word == ".align") {
      const std::size_t number = text.find_first_not_of(" \t\r\n", at);
      if (number != std::string_view::npos) align = number_at(text.substr(number));
    } else if (word[0] == '.' && word != ".param" && word != ".ptr" && word != ".global" &&
               size == 0) {
      size = size_of_type(word);
    }
  }
  const std::size_t bracket = text.find('[');
  if (bracket != std::string_view::npos) size *= number_at(text.substr(bracket + 1));
  if (align == 0) align = std::clamp<std::uint32_t>(size, 1, 8);
  const std::uint32_t end =
      kernel.offsets.empty() ? 0 : kernel.offsets.back() + kernel.sizes.back();
  kernel.offsets.push_back((end + align - 1) / align * align);
  kernel.sizes.push_back(size);
}

}  // namespace

std::vector<KernelFacts> kernels_in_ptx(std::string_view text) {
  std::vector<KernelFacts> kernels;
  for (std::size_t at = text.find(".entry"); at != std::string_view::npos;
       at = text.find(".entry", at + 1)) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at + 6);
    if (begin == std::string_view::npos || begin == at + 6) continue;
    const std::size_t end = text.find_first_of(" \t\r\n({;", begin);
    if (end == std::string_view::npos) continue;
    KernelFacts kernel;
    kernel.name = text.substr(begin, end - begin);
    kernel.known = true;
    const std::size_t open = text.find_first_not_of(" \t\r\n", end);
    if (open != std::string_view::npos && text[open] == '(') {
      const std::size_t close = std::min(text.find(')', open), text.size());
      std::string_view list = text.substr(open + 1, close - open - 1);
      while (list.find(".param") != std::string_view::npos) {
        const std::size_t comma = list.find(',');
        add_parameter(list.substr(0, comma), kernel);
        if (comma == std::string_view::npos) break;
        list.remove_prefix(comma + 1);
      }
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::uint64_t load_image(const void* image) {
  Image made;
  const Format format = format_of(image);
  made.complete = format == Format::kText;
  if (format == Format::kText) made.kernels = kernels_in_ptx(static_cast<const char*>(image));
  if (format == Format::kElf) made.kernels = kernels_in_elf(image);
  const std::lock_guard lock(objects().mutex);
  const std::uint64_t handle = objects().fresh();
  objects().images.emplace(handle, std::move(made));
  return handle;
}

bool unload_image(std::uint64_t handle) {
  const std::lock_guard lock(objects().mutex);
  const auto it = objects().images.find(handle);
  if (it == objects().images.end()) return false;
  for (const auto& [name, kernel] : it->second.handles) objects().kernels.erase(kernel);
  objects().images.erase(it);
  return true;
}

std::optional<std::uint64_t> kernel_in_image(std::uint64_t image, std::string_view name) {
  const std::lock_guard lock(objects().mutex);
  const auto it = objects().images.find(image);
  if (it == objects().images.end()) return std::nullopt;
  Image& found = it->second;
  const auto known = found.handles.find(name);
  if (known != found.handles.end()) return known->second;
  KernelFacts facts;
  facts.name = name;
  const auto listed = std::find_if(found.kernels.begin(), found.kernels.end(),
                                   [&](const KernelFacts& k) { return k.name == name; });
  if (listed != found.kernels.end()) facts = *listed;
  if (found.complete && listed == found.kernels.end()) return std::nullopt;
  const std::uint64_t handle = objects().fresh();
  objects().kernels.emplace(handle, facts);
  found.handles.emplace(name, handle);
  return handle;
}

std::optional<std::uint32_t> kernel_count(std::uint64_t image) {
  const std::lock_guard lock(objects().mutex);
  const auto it = objects().images.find(image);
  if (it == objects().images.end()) return std::nullopt;
  return static_cast<std::uint32_t>(it->second.kernels.size());
}

std::optional<KernelFacts> kernel_facts(std::uint64_t kernel) {
  const std::lock_guard lock(objects().mutex);
  const auto it = objects().kernels.find(kernel);
  if (it == objects().kernels.end()) return std::nullopt;
  return it->second;
}

}  // namespace granule::libcuda
