// Parts of SVG pictures that the page uses too.
#pragma once

#include <string>

#include <granule/prop/picture.hpp>

namespace granule::prop::picture {

/// Style rules of the pictures' classes.
std::string_view picture_style();

/// Of a page: the picture without its style rules and without a title.
std::string svg_for_page(const Snapshot& snapshot);

/// What stands behind a step's number and statement: the caption of its picture.
std::string when_text(const Story& story, const StoryStep* step);

}  // namespace granule::prop::picture
