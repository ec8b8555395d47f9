// Setup of a generated program: devices, streams, resources with good and bad options.
#include "writer.hpp"

namespace granule::prop::gen {

void Writer::write_setup() {
  write_devices();
  make_stream();
  if (has(Feature::kStreams))
    for (std::uint64_t more = c_.between(0, 2); more > 0; --more) make_stream();
  if (has(Feature::kHints) && c_.chance(1, 2)) hints();
  const bool pool = has(Feature::kPools);
  const bool recycler = has(Feature::kRecycler);
  if (pool) write_resource(ResourceKind::kPool, false);
  if (recycler) write_resource(ResourceKind::kRecycler, false);
  if (!(pool || recycler) || !c_.chance(1, 3)) write_resource(ResourceKind::kVmm, false);
}

void Writer::write_devices() {
  if (has(Feature::kTiny)) {
    Size memory = Size::granules(plan_.memory);
    if (plan_.odd_memory) {
      Term half;
      half.value = 1;
      half.unit = Unit::kMiB;
      memory.terms.push_back(half);
    }
    add(Line(Verb::kDevice).number(0).option("memory", memory));
  }
  if (!has(Feature::kSecondDevice)) return;
  Line line = Line(Verb::kDevice).number(1);
  if (has(Feature::kTiny)) line.option("memory", Size::granules(plan_.memory));
  if (c_.chance(1, 8)) line.option("peers", Word{"none"});
  add(line);
}

bool Writer::make_stream() {
  constexpr std::size_t kMost = 5;
  if (streams_.size() >= kMost) return false;
  StreamFact fact;
  fact.name = fresh(NameKind::kStream);
  Line line = Line(Verb::kStream).name(fact.name);
  const bool first = streams_.empty();
  switch (first ? 0 : c_.pick(has(Feature::kDefaultStreams) ? 6 : 4)) {
    case 3:
      line.word("blocking");
      break;
    case 4:
      line.word("legacy");
      fact.created = false;
      break;
    case 5:
      line.word("per_thread");
      fact.created = false;
      break;
    default:
      break;
  }
  if (!first && has(Feature::kSecondDevice) && c_.chance(1, 3)) {
    fact.device = 1;
    line.option("device", Size::bytes(1));
  }
  add(line);
  streams_.push_back(std::move(fact));
  return true;
}

void Writer::add_placement(Line& line, ResourceFact& fact) {
  const bool host = has(Feature::kHost) && c_.chance(1, 2);
  fact.host = host;
  if (host) {
    Place place;
    switch (c_.pick(3)) {
      case 0:
        place.kind = "host";
        break;
      case 1:
        place.kind = "host_numa";
        place.id = 0;
        break;
      default:
        place.kind = "host_numa_current";
    }
    line.option("location", place);
    // Without a device that has access no stream can work in it.
    if (c_.chance(2, 3)) line.option("peers", NumberList{{0}});
  } else if (has(Feature::kSecondDevice) && c_.chance(1, 4)) {
    Place place;
    place.id = 1;
    line.option("location", place);
  } else if (has(Feature::kSecondDevice) && c_.chance(1, 3)) {
    // The owner may be named among its peers, and has its own access all the same.
    line.option("peers", c_.chance(1, 3) ? NumberList{{0, 1}} : NumberList{{1}});
    if (c_.chance(1, 3)) line.option("peer_access", Word{"r"});
  }
  if (has(Feature::kShare) && !host) {
    fact.shared = true;
    line.option("handle", Word{"posix_fd"});
  }
  if (has(Feature::kAlign))
    line.option("align", Size::granules(c_.one_of<std::uint64_t>({2, 4, 16})));
  if (has(Feature::kRdma) && !host) {
    if (c_.chance(1, 2)) {
      line.flag("rdma");
    } else {
      line.option("rdma", Word{"required"});
    }
  }
}

void Writer::add_policy(Line& line, const ResourceFact& fact) {
  if (has(Feature::kDeferred)) line.option("free", Word{"deferred"});
  if (has(Feature::kCache)) {
    line.option("cache", Size::granules(c_.one_of<std::uint64_t>({4, 64, 1, 2})));
    if (has(Feature::kFit)) {
      Term percent;
      percent.kind = Term::Kind::kPercent;
      percent.value = c_.one_of<std::uint64_t>({50, 25, 100});
      line.option("fit", Size{{percent}});
    }
  }
  if (has(Feature::kLimit)) line.option("limit", Size::granules(c_.between(1, plan_.memory)));
  if (has(Feature::kWorker)) line.flag("worker");
  if (!has(Feature::kPolicy)) return;
  if (c_.chance(1, 2)) line.option("commit_ahead", Size::granules(c_.between(1, 4)));
  if (c_.chance(1, 3)) {
    Term percent;
    percent.kind = Term::Kind::kPercent;
    percent.value = c_.one_of<std::uint64_t>({25, 50, 100});
    line.option("slack", Size{{percent}});
  }
  if (!fact.host && c_.chance(1, 2)) line.option("max_chunk", Size::granules(c_.between(1, 4)));
}

void Writer::add_bad_option(Line& line) {
  Place place;
  switch (c_.pick(9)) {
    case 0:
      line.option("align", Size::bytes(3));
      break;
    case 1:
      line.option("peers", NumberList{{7}});
      break;
    case 2:
      line.option("peers", NumberList{{0}});
      break;
    case 3:
      line.option("handle", Word{"fabric"});
      break;
    case 4:
      line.flag("managed");
      break;
    case 5:
      place.id = 5;
      line.option("location", place);
      break;
    case 6:
      place.kind = "host";
      line.option("location", place).option("rdma", Word{"required"});
      break;
    case 7:
      line.option("self_access", Word{"r"});
      break;
    default:
      line.option("peers", NumberList{{1, 1}});
  }
}

void Writer::write_resource(ResourceKind kind, bool bad) {
  ResourceFact fact;
  fact.kind = kind;
  fact.name = fresh(NameKind::kResource);
  const Verb verb = kind == ResourceKind::kVmm    ? Verb::kResourceVmm
                    : kind == ResourceKind::kPool ? Verb::kResourcePool
                                                  : Verb::kResourceRecycler;
  Line line = Line(verb).name(fact.name);
  if (bad) {
    add_bad_option(line);
  } else if (kind == ResourceKind::kVmm) {
    add_placement(line, fact);
    add_policy(line, fact);
    if (c_.chance(1, 12)) line.option("granularity", Word{"minimum"});
  } else if (kind == ResourceKind::kPool) {
    if (c_.chance(1, 2)) line.flag("default");
    if (c_.chance(1, 2)) line.option("threshold", Size::max());
  } else if (has(Feature::kLimit)) {
    line.option("limit", Size::granules(c_.between(1, plan_.memory)));
  }
  add(line);
  if (!bad) resources_.push_back(std::move(fact));
}

}  // namespace granule::prop::gen
