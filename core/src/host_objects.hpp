// Makes and unmakes the core's records in host memory taken through the seam.
#pragma once

#include <new>
#include <utility>

#include <granule/backend_api/sync.hpp>

namespace granule::detail {

/// A new T, or null if there is no host memory.
template <class T, class... Args>
T* make(const Runtime& runtime, Args&&... args) noexcept {
  void* block = runtime.host_memory().allocate(sizeof(T), alignof(T));
  return block ? ::new (block) T(std::forward<Args>(args)...) : nullptr;
}

template <class T>
void unmake(const Runtime& runtime, T* object) noexcept {
  if (!object) return;
  object->~T();
  runtime.host_memory().deallocate(object, sizeof(T), alignof(T));
}

/// Owns a fresh record until it is handed on with release().
template <class T>
class Fresh {
 public:
  template <class... Args>
  explicit Fresh(const Runtime& runtime, Args&&... args)
      : runtime_(&runtime), object_(make<T>(runtime, std::forward<Args>(args)...)) {}
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
  ~Fresh() { unmake(*runtime_, object_); }
  explicit operator bool() const { return object_ != nullptr; }
  T* operator->() const { return object_; }
  T* get() const { return object_; }
  T* release() { return std::exchange(object_, nullptr); }

 private:
  const Runtime* runtime_;
  T* object_;
};

}  // namespace granule::detail
