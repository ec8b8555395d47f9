// What the signs of a picture mean: colours, hatches, strips, and only those that appear in it.
#pragma once

#include <string_view>

#include <granule/prop/snapshot.hpp>

#include "canvas.hpp"

namespace granule::prop::picture {

inline constexpr int kLegendWidth = 900;
inline constexpr std::string_view kBlockColour = "#D9D2C5";

/// Which signs a picture has.
struct Seen {
  bool mapped = false;
  bool twice = false;
  bool gap = false;
  bool block = false;
  bool buffer = false;
  bool suspended = false;
  bool taken = false;
  bool held = false;
  bool put_aside = false;
  bool freed = false;
  bool quarantined = false;
  bool shortened = false;
};

/// The colour of a physical allocation of that name. They come again; names do not.
std::string_view colour_of(std::string_view memory);

/// Draws from `at` downwards; the last line's y comes back.
int draw_legend(Canvas& canvas, const Snapshot& snapshot, const Seen& seen, Place at);

}  // namespace granule::prop::picture
