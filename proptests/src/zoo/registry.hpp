// The parts of the list of specimens.
#pragma once

#include <initializer_list>
#include <span>

#include <granule/prop/zoo.hpp>

namespace granule::prop::zoo {

constexpr FeatureSet needs(std::initializer_list<Feature> features) {
  FeatureSet set;
  for (const Feature feature : features) set.add(feature);
  return set;
}

std::span<const Specimen> naive_specimens();
std::span<const Specimen> core_specimens();

}  // namespace granule::prop::zoo
