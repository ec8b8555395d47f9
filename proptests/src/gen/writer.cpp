// The loop of the generator, and the choice of names, sizes and objects.
#include "writer.hpp"

#include <algorithm>
#include <array>

namespace granule::prop {

Program generate(Chooser& chooser, const GenerateOptions& options) {
  return gen::Writer(chooser, options).write();
}

Program generate(std::uint64_t seed, std::uint64_t index, const GenerateOptions& options) {
  RandomChooser chooser{Rng(seed, index)};
  Program program = generate(chooser, options);
  program.name = "p" + std::to_string(seed) + "_" + std::to_string(index);
  return program;
}

namespace gen {

Writer::Writer(Chooser& chooser, const GenerateOptions& options)
    : c_(chooser), options_(options), plan_(make_plan(chooser, options)) {}

Program Writer::write() {
  program_.name = "generated";
  program_.statements.reserve(options_.operations + 12);
  write_setup();
  const std::size_t end = program_.statements.size() + options_.operations;
  while (program_.statements.size() < end) write_one();
  return std::move(program_);
}

Writer::Emit Writer::emit_of(Op op) {
  static constexpr std::array<Emit, kOpCount> kTable{
      &Writer::allocate,      &Writer::close,         &Writer::grow,          &Writer::resize,
      &Writer::shrink,        &Writer::drop,          &Writer::use,           &Writer::fill,
      &Writer::copy,          &Writer::sync,          &Writer::hold,          &Writer::release,
      &Writer::busy,          &Writer::pause,         &Writer::record,        &Writer::wait,
      &Writer::decoy,         &Writer::remove,        &Writer::hole,          &Writer::probe,
      &Writer::suspend,       &Writer::resume,        &Writer::holder,        &Writer::drop_holder,
      &Writer::used,          &Writer::collect,       &Writer::trim,          &Writer::grant,
      &Writer::export_buffer, &Writer::import_buffer, &Writer::close_export,  &Writer::move,
      &Writer::make_stream,   &Writer::destroy,       &Writer::begin_capture, &Writer::end_capture,
      &Writer::resource,      &Writer::drop_resource, &Writer::pool_setting,  &Writer::threads,
      &Writer::fail,          &Writer::fail_host,     &Writer::no_faults,     &Writer::steal,
      &Writer::unsteal,       &Writer::hints,         &Writer::context};
  return kTable[static_cast<std::size_t>(op)];
}

void Writer::write_one() {
  const std::size_t op = c_.weighted(plan_.weights);
  if (op < kOpCount && (this->*emit_of(static_cast<Op>(op)))()) return;
  if (!allocate()) sync();  // what was drawn has nothing to work on
}

void Writer::add(Line& line) {
  Statement statement = line.take();
  statement.thread = thread_;
  program_.statements.push_back(std::move(statement));
}

std::string Writer::fresh(NameKind kind) {
  static constexpr std::array<const char*, 8> kStems{"a", "s", "r", "e", "d", "h", "k", "x"};
  const auto index = static_cast<std::size_t>(kind);
  const std::uint32_t number = made_[index]++;
  return number == 0 ? kStems[index] : kStems[index] + std::to_string(number);
}

Size Writer::around(std::uint64_t granules) {
  switch (c_.pick(6)) {
    case 0:
    case 1:
    case 2:
      return Size::granules(granules);
    case 3:
      return granules == 0 ? Size::granules(0) : Size::granules(granules, -1);
    case 4:
      return Size::granules(granules, 1);
    default:
      return Size::granules(granules + 1);
  }
}

Size huge_size(Chooser& c) {
  switch (c.pick(8)) {
    case 0:
      return Size::max();
    case 1: {
      Size size = Size::max();  // rounds up to 0 if nobody looks
      size.terms.push_back(Size::granules(1, 0).terms[0]);
      size.terms.back().negative = true;
      return size;
    }
    case 2: {
      Size size = Size::max();  // the largest whole number of granules
      Term term = Size::granules(1).terms[0];
      term.negative = true;
      size.terms.push_back(term);
      size.terms.push_back(Size::bytes(1).terms[0]);
      return size;
    }
    default:
      break;
  }
  Term power;
  power.kind = Term::Kind::kPowerOfTwo;
  power.value = c.one_of<std::uint64_t>({40, 46, 47, 48, 62, 63});
  return Size{{power}};
}

Size Writer::any_size() {
  switch (static_cast<SizeKind>(c_.weighted(plan_.sizes))) {
    case SizeKind::kFew:
      return Size::granules(c_.between(2, 4));
    case SizeKind::kEdge:
      return around(c_.between(1, 4));
    case SizeKind::kSome:
      return Size::granules(c_.between(1, std::max<std::uint64_t>(2, plan_.memory / 2)));
    case SizeKind::kZero:
      return Size::granules(0);
    case SizeKind::kByte:
      return Size::bytes(1);
    case SizeKind::kMemory:
      return around(plan_.memory);
    case SizeKind::kHuge:
      return huge_size(c_);
    default:
      return Size::granules(1);
  }
}

Size Writer::grown_size(const BufferFact& buffer) {
  switch (c_.pick(8)) {
    case 0:
    case 1:
    case 2:
      return Size::granules(buffer.granules + 1);
    case 3:
      return Size::granules(buffer.granules + c_.between(1, 4));
    case 4:
      return around(buffer.granules);
    case 5:
      return around(std::max(buffer.capacity, buffer.granules));
    case 6:
      return Size::granules(buffer.granules * 2);
    default:
      return any_size();
  }
}

std::uint64_t Writer::granules_of(const Size& size) {
  SizeContext context;
  const std::uint64_t bytes = size.evaluate(context);
  const std::uint64_t granules = bytes / context.granule + (bytes % context.granule != 0 ? 1 : 0);
  return std::min<std::uint64_t>(granules, 1u << 20);
}

Range Writer::range_of(const BufferFact& buffer) {
  Range range;
  range.name = buffer.name;
  if (buffer.granules == 0 || c_.chance(1, 2)) return range;
  range.whole = false;
  const std::uint64_t from = c_.pick(buffer.granules);
  const std::uint64_t to = from + 1 + c_.pick(buffer.granules - from);
  range.from = c_.chance(1, 6) ? Size::granules(from, 1) : Size::granules(from);
  if (!c_.chance(1, 4)) range.to = c_.chance(1, 6) ? Size::granules(to, -1) : Size::granules(to);
  return range;
}

BufferFact* Writer::pick_vmm(bool awake) {
  const bool skip_suspended = awake && !c_.chance(1, 16);  // refused, which is to be seen too
  return pick_buffer([&](const BufferFact& b) {
    return resources_[b.resource].kind == ResourceKind::kVmm && !(skip_suspended && b.suspended);
  });
}

ResourceFact* Writer::pick_resource(ResourceKind kind) {
  std::vector<ResourceFact*> found;
  for (ResourceFact& resource : resources_)
    if (resource.kind == kind && !resource.name.empty()) found.push_back(&resource);
  return found.empty() ? nullptr : found[c_.pick(found.size())];
}

StreamFact* Writer::pick_stream() {
  return streams_.empty() ? nullptr : &streams_[c_.pick(streams_.size())];
}

std::string Writer::stream_name(bool often_default) {
  if (streams_.empty() || (often_default && has(Feature::kDefaultStreams) && c_.chance(1, 6)))
    return {};
  return streams_[c_.pick(streams_.size())].name;
}

std::size_t Writer::index_of(const ResourceFact* resource) const {
  return static_cast<std::size_t>(resource - resources_.data());
}

}  // namespace gen
}  // namespace granule::prop
