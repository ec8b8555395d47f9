// Running a program with somebody who looks on and takes notes.
#include <granule/prop/story.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include "world.hpp"

namespace granule::prop {
namespace {

class Teller final : public RunObserver {
 public:
  Teller(Story& story, Pictures wanted) : story_(story), wanted_(wanted) {}

  std::unique_ptr<Backend> put_around(Backend& inner) {
    auto made = std::make_unique<record::RecordBackend>(inner);
    recorder_ = made.get();
    return made;
  }

  void before(const World&, std::size_t) override {}

  void after(const World& world, std::size_t statement, const Reply& reply) override {
    const Statement& s = world.program.statements[statement];
    StoryStep& step = step_of(world, statement);
    step.reply = to_text(reply);
    step.skipped = reply.kind == Reply::Kind::kSkipped;
    step.would_block = reply.kind == Reply::Kind::kWouldBlock;
    take_calls(world, step);
    if (wanted_ == Pictures::kEnd) return;
    // In the middle of a repeat nobody will see what there is now, unless it fails: see `end`.
    if (s.repeat && world.sizes.counter != s.repeat->last) return;
    step.picture = keep(snapshot_of(world));
  }

  /// At the end or at the failure, before anything is given back.
  void end(const World& world) {
    const std::size_t picture = keep(snapshot_of(world));
    if (!story_.steps.empty()) {
      StoryStep& last = story_.steps.back();
      take_calls(world, last);
      last.picture = picture;  // also where it stopped in the middle of a repeat
    }
    for (const record::Entry& entry : recorder_->take()) story_.calls.push_back(entry);
    recorder_ = nullptr;
  }

  /// Once everything is told: numbers of pictures are those of the ones that were kept.
  void settle_pictures() {
    drop_down_to(kMostPictures);
    for (StoryStep& step : story_.steps)
      step.picture -= std::min(step.picture, story_.dropped_pictures);
  }

 private:
  StoryStep& step_of(const World& world, std::size_t statement) {
    const Statement& s = world.program.statements[statement];
    if (s.repeat && world.sizes.counter != s.repeat->first)
      for (auto step = story_.steps.rbegin(); step != story_.steps.rend(); ++step) {
        if (step->statement != statement) continue;
        ++step->times;
        std::rotate(step.base() - 1, step.base(), story_.steps.end());
        return story_.steps.back();
      }
    story_.steps.emplace_back().statement = statement;
    return story_.steps.back();
  }

  /// Where threads are under way at once: those of the step's thread and of the library's own.
  void take_calls(const World& world, StoryStep& step) {
    for (const record::Entry& entry : recorder_->take()) {
      waiting_.push_back(story_.calls.size());
      story_.calls.push_back(entry);
    }
    std::vector<std::size_t> others;
    for (const std::size_t number : waiting_) {
      const record::Entry& entry = story_.calls[number];
      if (entry.origin == CallOrigin::kHarness) continue;
      const bool mine = !world.scheduler || entry.thread == world.present_thread ||
                        entry.thread >= kLibraryThread;
      (mine ? step.calls : others).push_back(number);
    }
    waiting_ = std::move(others);
  }

  /// The number of that picture, counted with the ones that were dropped.
  std::size_t keep(Snapshot shot) {
    std::vector<Snapshot>& kept = story_.pictures;
    if (kept.empty() || !(kept.back() == shot)) {
      kept.push_back(std::move(shot));
      if (kept.size() > 2 * kMostPictures) drop_down_to(kMostPictures);
    }
    return story_.dropped_pictures + kept.size() - 1;
  }

  void drop_down_to(std::size_t most) {
    std::vector<Snapshot>& kept = story_.pictures;
    if (kept.size() <= most) return;
    const std::size_t over = kept.size() - most;
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(over));
    story_.dropped_pictures += over;
  }

  Story& story_;
  const Pictures wanted_;
  record::RecordBackend* recorder_ = nullptr;  // of the run in progress
  std::vector<std::size_t> waiting_;           // calls of threads whose statement goes on
};

}  // namespace

Story tell(const Program& program, RunOptions options, Pictures wanted) {
  Story story;
  story.program = &program;
  Teller teller(story, wanted);
  options.observer = &teller;
  options.decorate = [&teller](Backend& inner) { return teller.put_around(inner); };
  options.inspect = [&teller](const World& world) { teller.end(world); };
  story.report = run_guarded(program, options);
  teller.settle_pictures();
  return story;
}

}  // namespace granule::prop
