// Pictures of the address space: one drawing as SVG, and a page that goes through a run statement
// by statement. Both stand alone: no font, style sheet or script is fetched. The same story gives
// the same bytes. They may throw std::bad_alloc. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/snapshot.hpp>
#include <granule/prop/story.hpp>

namespace granule::prop {

/// What stands above a picture. Any text; it is escaped.
struct Caption {
  std::string title;
  std::string when;     // the statement after which it looks like this
  std::string failure;  // empty: none
};

/// A picture: one row a reservation with what sees it, boxes coloured and lettered by physical
/// allocation, access by device, and a legend of what appears in it. Sizes within a row are to
/// scale up to eight granules; what is longer is drawn shorter and marked. Long rows of mappings
/// that are alike become one box, and what is left out is said.
std::string svg_of(const Snapshot& snapshot, const Caption& caption);

/// The picture at the end of a story, or at its failure.
std::string svg_of(const Story& story);

/// A page: statements with what they gave and the driver calls that they made, and beside them the
/// picture after the one that is selected, by click or arrow keys. Without scripts the last picture
/// of each story shows. `title` heads the page.
std::string html_of(const std::vector<Story>& stories, std::string_view title);

}  // namespace granule::prop
