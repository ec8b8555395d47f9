// Three devices. The H200's numbers were read from one (driver 580.159.04); of the others, those
// that such a device reports; where two devices agree the H200's serves.
#include "profile.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace granule::libcuda {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

constexpr Profile kProfiles[] = {
    {"h200", "NVIDIA H200", 142'600 * kMiB, 9, 0, true},
    {"a100", "NVIDIA A100-SXM4-80GB", 80'500 * kMiB, 8, 0, true},
    {"laptop", "NVIDIA GeForce RTX 4060 Laptop GPU", 7'800 * kMiB, 8, 9, false},
};

constexpr int kUnknown = -1000;
constexpr int kModel = -1001;  // the model answers

/// By number of the attribute, from 0.
constexpr std::array<int, 148> kH200 = {
    kUnknown,  1024,       1024,    1024,    64,     2147483647, 65535,   65535,
    49152,     65536,  // 0
    32,        2147483647, 65536,   1980000, 512,    1,          132,     0,
    0,         1,  // 10
    0,         131072,     131072,  65536,   16384,  16384,      16384,   32768,
    32768,     2048,  // 20
    512,       1,          1,       kModel,  0,      0,          3201000, 6016,
    62914560,  2048,  // 30
    3,         kModel,     32768,   2048,    1,      32768,      32768,   8192,
    8192,      32768,  // 40
    0,         32,         32768,   32768,   2046,   32768,      131072,  65536,
    16384,     16384,  // 50
    16384,     32768,      2048,    32768,   32768,  2048,       32768,   32768,
    2046,      268435456,  // 60
    131072,    65000,      2097120, 32768,   32768,  kModel,     kModel,  32768,
    1,         1,  // 70
    1,         233472,     65536,   1,       0,      0,          0,       2,
    0,         1,  // 80
    1,         1,          0,       0,       0,      1,          1,       232448,
    0,         1,  // 90
    0,         0,          kModel,  kModel,  kModel, kModel,     32,      1,
    39321600,  134217728,  // 100
    kModel,    1024,       1,       1,       1,      kModel,     kModel,  1,
    100,       9,  // 110
    1,         1,          kModel,  1,       1,      1,          4,       1,
    kModel,    1,  // 120
    0,         -1,         0,       0,       kModel, 0,          0,       0,
    0,         590680286,                                                     // 130
    415174878, kModel,     1,       0,       1,      kModel,     0,       0,  // 140
};

struct Other {
  int attribute;
  int a100;
  int laptop;
};
constexpr Other kOthers[] = {
    {13, 1410000, 2370000},
    {16, 108, 24},
    {32, 1, 0},
    {36, 1593000, 8001000},
    {37, 5120, 128},
    {38, 41943040, 33554432},
    {39, 2048, 1536},
    {40, 3, 1},
    {81, 167936, 102400},
    {87, 2, 64},
    {97, 166912, 101376},
    {106, 32, 24},
    {108, 31457280, 22020096},
    {109, 134213632, 134213632},
    {120, 0, 0},
    {121, 0, 0},
    {126, 1, 1},
    {127, 0, 0},
};

}  // namespace

const Profile& profile_named(std::string_view key) {
  for (const Profile& profile : kProfiles)
    if (profile.key == key) return profile;
  return kProfiles[0];
}

std::uint64_t memory_of(const Options& options) {
  const std::uint64_t memory =
      options.memory != 0 ? options.memory : profile_named(options.profile).memory;
  return std::max(memory, 64 * kMiB);
}

std::optional<int> profile_attribute(const Profile& profile, int attribute) {
  if (attribute < 0 || static_cast<std::size_t>(attribute) >= kH200.size()) return std::nullopt;
  if (attribute == 75) return profile.major;
  if (attribute == 76) return profile.minor;
  for (const Other& other : kOthers) {
    if (other.attribute != attribute || profile.key == "h200") continue;
    return profile.key == "a100" ? other.a100 : other.laptop;
  }
  const int value = kH200[static_cast<std::size_t>(attribute)];
  if (value == kUnknown || value == kModel) return std::nullopt;
  return value;
}

}  // namespace granule::libcuda
