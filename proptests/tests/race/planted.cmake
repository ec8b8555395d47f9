# Copies of the core's sources with races planted in them, each behind a number: for the test that
# must find every one. Nothing of it is in a library. A line that is not there any more is an error.
set(planted_dir ${CMAKE_CURRENT_BINARY_DIR}/planted)
file(GLOB core_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/src/*.cpp)
set(planted_sources)
foreach(source ${core_sources})
  get_filename_component(name ${source} NAME_WE)
  file(READ ${source} text_${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()

# plant(FILE FROM TO): every FROM becomes TO, where RACE is the number that is switched on.
function(plant file from to)
  string(FIND "${text_${file}}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "core/src/${file}.cpp: nothing to plant a race in: ${from}")
  endif()
  string(REPLACE "${from}" "${to}" text "${text_${file}}")
  set(text_${file} "${text}" PARENT_SCOPE)
endfunction()

# 1: an idle range is taken off the list after the lock was given back. Who comes second gets a
# record of its own for the same range, so that lists and counts stay whole.
plant(cache "if (best) delist_idle(*best);" "if (best && RACE != 1) delist_idle(*best);")
plant(cache "    Record* const record = pick_idle(stream, size, capacity, pass);
    if (!record) return nullptr;"
      "    Record* record = pick_idle(stream, size, capacity, pass);
    if (!record) return nullptr;
    if (RACE == 1) {
      lock.unlock();
      lock.lock();
      if (static_cast<SetHook*>(record)->is_linked()) {
        delist_idle(*record);
      } else {
        Record* const twin = make<Record>(driver_.runtime());
        twin->primary.stream = record->primary.stream;
        twin->base = record->base;
        twin->size = record->size;
        twin->last = record->last;
        ++twin->last->refs;
        record = twin;
      }
    }")
# 2: the budget is read under the lock and written under another.
plant(chunks "  const Lock lock(mutex_);
  const std::uint64_t room" "  Lock lock(mutex_);
  const std::uint64_t room")
plant(chunks "  charged_ += size;
  return {};"
      "  const std::uint64_t before = charged_;
  if (RACE == 2) lock.unlock();
  if (RACE == 2) lock.lock();
  charged_ = before + size;
  return {};")
# 3: a range that is being reaped does not say so, to other collects.
plant(pending "      record->state = RecordState::kReaping;
      if (was" "      if (RACE != 3) record->state = RecordState::kReaping;
      if (was")
# 4: nor does one that is waited for.
plant(pending "    record->state = RecordState::kReaping;
  }
  const Status waited" "    if (RACE != 4) record->state = RecordState::kReaping;
  }
  const Status waited")
# 5: a pending range is out of the list before its memory is back.
plant(pending "    last = std::exchange(record->last, nullptr);"
      "    last = std::exchange(record->last, nullptr);
    if (RACE == 5) pending_.erase(pending_.iterator_to(*record));")
plant(pending "    pending_.erase(pending_.iterator_to(*record));
    ++given_back_;
    changed_.notify_all();"
      "    if (RACE != 5) pending_.erase(pending_.iterator_to(*record));
    if (RACE != 5) ++given_back_;
    if (RACE != 8) changed_.notify_all();")
# 8 (above): nobody is told that a pending range is gone.
# 6: a mapping's count is read under the lock and written under another.
plant(mappings "      const Lock lock(mutex_);
      if (--last->refs != 0) return;"
      "      Lock lock(mutex_);
      const std::uint32_t left = last->refs - 1;
      if (RACE == 6) lock.unlock();
      if (RACE == 6) lock.lock();
      last->refs = left;
      if (left != 0) return;")
# 7: addresses are claimed without a look at who has them.
plant(mappings "if (next != reservation.mappings.end() && next->base < mapping.end()) return false;"
      "if (RACE != 7 && next != reservation.mappings.end() && next->base < mapping.end()) return false;")
# 9: a lock is held across a driver call.
plant(chunks "    status = driver_.vmm(release);"
      "    Lock lock(mutex_, std::defer_lock);
    if (RACE == 9) lock.lock();
    status = driver_.vmm(release);")
# 10: a stream is announced as gone while an idle range behind it is on its way to a buffer.
plant(pending "while (in_transit_ != 0)" "while (RACE != 10 && in_transit_ != 0)")
# 11: room in the cache is made under one lock and taken under another.
plant(cache "bool ResourceCore::keep_idle(Record* record) {"
      "bool ResourceCore::keep_idle(Record* record) {
  bool made_room = false;")
plant(cache "      if (enlist_closed(*record)) return true;"
      "      if (RACE == 11 && made_room) {
        record->size = committed(*record);
        open_.erase(open_.iterator_to(*record));
        enlist_idle(*record);
        return true;
      }
      if (enlist_closed(*record)) return true;")
plant(cache "if (!room.ok() || !*room) return false;"
      "if (!room.ok() || !*room) return false;
    made_room = true;")
# 12: the worker does not ask whether somebody is at work on the buffer, nor is it waited for.
plant(worker "if (record.at_work != 0 ||" "if ((RACE != 12 && record.at_work != 0) ||")

plant(worker "while (worker_extends_ &&" "while (RACE != 12 && worker_extends_ &&")

foreach(source ${core_sources})
  get_filename_component(name ${source} NAME_WE)
  set(file ${planted_dir}/${name}.cpp)
  file(WRITE ${planted_dir}/${name}.new "#define RACE granule::planted_race
namespace granule {
extern int planted_race;
}
${text_${name}}")
  configure_file(${planted_dir}/${name}.new ${file} COPYONLY)
  list(APPEND planted_sources ${file})
endforeach()
