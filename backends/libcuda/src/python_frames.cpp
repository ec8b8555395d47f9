// Python frames of the calling thread, through the interpreter's C functions, found at run time.
// Nothing of Python is needed to build; in a process without it nothing is found and nothing done.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "sites.hpp"

namespace granule::libcuda {
namespace {

/// The functions of CPython 3.9 and later that are used; objects are opaque.
struct Python {
  int (*is_initialized)() = nullptr;
  int (*is_finalizing)() = nullptr;   // Py_IsFinalizing or its older name
  void* (*thread_state)() = nullptr;  // of this thread, whether or not it holds the lock
  void* (*holder)() = nullptr;        // the thread state that holds the lock (before 3.12)
  int (*ensure)() = nullptr;          // takes the lock
  void (*release)(int) = nullptr;
  void* (*current_frame)() = nullptr;  // borrowed
  void* (*back)(void*) = nullptr;      // new reference
  void* (*code)(void*) = nullptr;      // new reference
  int (*line)(void*) = nullptr;
  void* (*attribute)(void*, const char*) = nullptr;  // new reference
  const char* (*utf8)(void*) = nullptr;
  void (*decref)(void*) = nullptr;
  void (*incref)(void*) = nullptr;
  void (*fetch)(void**, void**, void**) = nullptr;
  void (*restore)(void*, void*, void*) = nullptr;
  bool complete = false;
};

template <class F>
bool find(F& function, const char* name, const char* other = nullptr) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr && other != nullptr) found = dlsym(RTLD_DEFAULT, other);
  std::memcpy(&function, &found, sizeof(found));
  return found != nullptr;
}

Python find_python() {
  Python py;
  py.complete = find(py.is_initialized, "Py_IsInitialized") &&
                find(py.is_finalizing, "Py_IsFinalizing", "_Py_IsFinalizing") &&
                find(py.thread_state, "PyGILState_GetThisThreadState") &&
                find(py.holder, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet") &&
                find(py.ensure, "PyGILState_Ensure") && find(py.release, "PyGILState_Release") &&
                find(py.current_frame, "PyEval_GetFrame") && find(py.back, "PyFrame_GetBack") &&
                find(py.code, "PyFrame_GetCode") && find(py.line, "PyFrame_GetLineNumber") &&
                find(py.attribute, "PyObject_GetAttrString") && find(py.utf8, "PyUnicode_AsUTF8") &&
                find(py.decref, "Py_DecRef") && find(py.incref, "Py_IncRef") &&
                find(py.fetch, "PyErr_Fetch") && find(py.restore, "PyErr_Restore");
  return py;
}

/// The text of an attribute of a code object, interned; never null.
const std::string* text_of(const Python& py, void* code, const char* name) {
  const std::string* text = nullptr;
  if (void* value = py.attribute(code, name)) {
    if (const char* utf8 = py.utf8(value)) text = interned(utf8);
    py.decref(value);
  }
  return text != nullptr ? text : interned("?");
}

void walk(const Python& py, Site& site) {
  void* error[3] = {};
  py.fetch(&error[0], &error[1], &error[2]);
  void* frame = py.current_frame();
  if (frame != nullptr) py.incref(frame);
  while (frame != nullptr && site.python_count < Site::kPythonFrames) {
    void* code = py.code(frame);
    PythonFrame& out = site.python[site.python_count++];
    out.file = text_of(py, code, "co_filename");
    out.function = text_of(py, code, "co_name");
    out.line = py.line(frame);
    py.decref(code);
    void* outer = py.back(frame);
    py.decref(frame);
    frame = outer;
  }
  if (frame != nullptr) py.decref(frame);
  py.restore(error[0], error[1], error[2]);
}

}  // namespace

void capture_python(Site& site) {
  static const Python py = find_python();
  if (!py.complete || py.is_initialized() == 0 || py.is_finalizing() != 0) return;
  void* own = py.thread_state();
  if (own == nullptr) return;  // no thread of the interpreter
  // Callers usually let go of the lock around driver calls: it is taken for the walk.
  const bool held = py.holder() == own;
  const int state = held ? 0 : py.ensure();
  walk(py, site);
  if (!held) py.release(state);
}

}  // namespace granule::libcuda
