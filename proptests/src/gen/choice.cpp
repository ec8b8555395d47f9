// Decisions of generators: weights, the odometer, strings of choices.
#include <granule/prop/choice.hpp>

namespace granule::prop {

std::size_t Chooser::weighted(std::span<const std::uint32_t> weights) {
  std::uint64_t total = 0;
  for (const std::uint32_t weight : weights) total += weight;
  if (total == 0) return weights.size();
  std::uint64_t left = pick(total);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (left < weights[i]) return i;
    left -= weights[i];
  }
  return weights.size();
}

ReplayChooser::ReplayChooser(const std::vector<Choice>& choices) {
  values_.reserve(choices.size());
  for (const Choice& choice : choices) values_.push_back(choice.value);
}

bool OdometerChooser::advance() {
  digits_.resize(at_);  // decisions that the last combination did not ask for
  at_ = 0;
  while (!digits_.empty() && digits_.back().value + 1 >= digits_.back().bound) digits_.pop_back();
  if (digits_.empty()) return false;
  ++digits_.back().value;
  return true;
}

std::string to_text(const std::vector<Choice>& choices) {
  std::string text;
  for (const Choice& choice : choices) {
    if (!text.empty()) text += ' ';
    text += std::to_string(choice.value) + "/" + std::to_string(choice.bound);
  }
  return text;
}

std::vector<Choice> choices_from_text(std::string_view text) {
  std::vector<Choice> choices;
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  bool any = false;
  bool slash = false;
  const auto finish = [&] {
    if (any && slash && number > 0) choices.push_back({value, number});
    number = 0;
    any = slash = false;
  };
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
      any = true;
    } else if (c == '/' && any && !slash) {
      value = number;
      number = 0;
      any = false;
      slash = true;
    } else {
      finish();
    }
  }
  finish();
  return choices;
}

}  // namespace granule::prop
