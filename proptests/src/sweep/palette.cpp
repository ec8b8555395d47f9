// All short programs over the palette, by an odometer.
#include <algorithm>
#include <utility>

#include <granule/prop/sweep.hpp>

namespace granule::prop {
namespace {

enum class Move : std::uint8_t {
  kAllocate,
  kAllocateCapacity,
  kGrowFirst,
  kGrowLast,
  kResizeLast,
  kShrinkLast,
  kCloseFirst,
  kCloseLast,
  kDecoyLast,
  kUseLast,
};

/// Writes one program. First and last are those of the open buffers; where they are one and the
/// same, so are the operations on them, and only one is offered.
class PaletteWriter {
 public:
  PaletteWriter(Chooser& chooser, std::vector<Option> options) : c_(chooser) {
    Statement stream;
    stream.verb = Verb::kStream;
    stream.operands.emplace_back(Name{"s"});
    Statement resource;
    resource.verb = Verb::kResourceVmm;
    resource.operands.emplace_back(Name{"r"});
    resource.options = std::move(options);
    program_.statements = {std::move(stream), std::move(resource)};
  }

  Program write(std::uint32_t length) {
    for (std::uint32_t i = 0; i < length; ++i) write_one();
    return std::move(program_);
  }

 private:
  struct Open {
    std::string name;
    std::uint64_t granules = 1;
  };

  std::vector<Move> offered() const {
    std::vector<Move> moves{Move::kAllocate, Move::kAllocateCapacity};
    if (open_.empty()) return moves;
    moves.insert(moves.end(), {Move::kGrowLast, Move::kResizeLast, Move::kShrinkLast,
                               Move::kCloseLast, Move::kDecoyLast, Move::kUseLast});
    if (open_.size() > 1) moves.insert(moves.end(), {Move::kGrowFirst, Move::kCloseFirst});
    return moves;
  }

  void write_one() {
    const std::vector<Move> moves = offered();
    switch (moves[c_.pick(moves.size())]) {
      case Move::kAllocate:
        return allocate(false);
      case Move::kAllocateCapacity:
        return allocate(true);
      case Move::kGrowFirst:
        return grow(open_.front());
      case Move::kGrowLast:
        return grow(open_.back());
      case Move::kResizeLast:
        return sized(Verb::kResize, open_.back().granules += 1);
      case Move::kShrinkLast:
        return sized(Verb::kShrink, open_.back().granules = 1);
      case Move::kCloseFirst:
        return close(0);
      case Move::kCloseLast:
        return close(open_.size() - 1);
      case Move::kDecoyLast:
        return decoy();
      case Move::kUseLast:
        return use();
    }
  }

  void allocate(bool capacity) {
    Statement s = make(Verb::kAllocate, buffer_name());
    s.operands = {Name{"r"}, Size::granules(1)};
    if (capacity) s.options.push_back({"capacity", Operand(Size::granules(4))});
    s.options.push_back({"on", Operand(Name{"s"})});
    open_.push_back({s.target, 1});
    program_.statements.push_back(std::move(s));
  }

  void grow(const Open& input) {
    Statement s = make(Verb::kGrow, buffer_name());
    const std::uint64_t granules = input.granules + 1;
    s.operands = {Name{input.name}, Size::granules(granules)};
    open_.push_back({s.target, granules});
    program_.statements.push_back(std::move(s));
  }

  void sized(Verb verb, std::uint64_t granules) {
    Statement s = make(verb, "");
    s.operands = {Name{open_.back().name}, Size::granules(granules)};
    program_.statements.push_back(std::move(s));
  }

  void close(std::size_t index) {
    Statement s = make(Verb::kClose, "");
    s.operands = {Name{open_[index].name}};
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
    program_.statements.push_back(std::move(s));
  }

  void decoy() {
    Statement s = make(Verb::kDecoy, "");
    s.operands = {Name{"d" + std::to_string(++decoys_)}, Name{open_.back().name},
                  Size::granules(1)};
    program_.statements.push_back(std::move(s));
  }

  void use() {
    Statement s = make(Verb::kUse, "");
    Range range;
    range.name = open_.back().name;
    s.operands = {range};
    s.options.push_back({"on", Operand(Name{"s"})});
    program_.statements.push_back(std::move(s));
  }

  static Statement make(Verb verb, std::string target) {
    Statement s;
    s.verb = verb;
    s.target = std::move(target);
    return s;
  }

  std::string buffer_name() { return "b" + std::to_string(++buffers_); }

  Chooser& c_;
  Program program_;
  std::vector<Open> open_;
  std::uint32_t buffers_ = 0;
  std::uint32_t decoys_ = 0;
};

}  // namespace

Palette::Palette(std::uint32_t length, std::vector<Option> options) : options_(std::move(options)) {
  for (std::uint32_t each = 1; each <= length; ++each) {
    OdometerChooser all;
    do {
      PaletteWriter(all, {}).write(each);
      offsets_.push_back(static_cast<std::uint32_t>(choices_.size()));
      lengths_.push_back(static_cast<std::uint8_t>(each));
      for (const Choice& choice : all.choices())
        choices_.push_back(static_cast<std::uint8_t>(choice.value));
    } while (all.advance());
  }
}

Program Palette::program(std::uint64_t number) const {
  const std::uint32_t length = lengths_[number];
  const auto begin = choices_.begin() + static_cast<std::ptrdiff_t>(offsets_[number]);
  ReplayChooser chooser(std::vector<std::uint64_t>(begin, begin + length));
  Program program = PaletteWriter(chooser, options_).write(length);
  program.name = "e" + std::to_string(length) + "_" + std::to_string(number);
  return program;
}

}  // namespace granule::prop
