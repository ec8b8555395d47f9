// A program that uses the installed library, on the model, so that it runs without a GPU.
#include <granule/model/model.hpp>
#include <granule/resource.hpp>

#include <cstdio>

int main() {
  granule::model::ModelBackend driver;  // on a GPU: granule::cuda::CudaBackend::open()
  granule::Init init;
  driver.run(init);  // cuInit; CudaBackend::open does it by itself

  auto resource = granule::VirtualMemoryResource::create(driver, {}).value();
  const granule::Stream stream = granule::Stream::legacy({0});

  granule::Buffer buffer = resource.allocate(stream, 6 << 20, {.capacity = 64 << 20}).value();
  const granule::DevicePtr before = buffer.ptr();
  buffer.resize(32 << 20).value();  // maps more memory behind it: no byte is copied
  std::printf("grown to %llu bytes, %s\n", static_cast<unsigned long long>(buffer.size()),
              buffer.ptr() == before ? "same address" : "moved");

  granule::GrowResult larger = buffer.grow(256 << 20).value();  // `buffer` stays valid beside it
  if (granule::Status closed = buffer.close(); !closed)         // errors are values
    std::printf("%s\n", granule::to_string(closed.error()).c_str());
  return larger.buffer.size() == 256 << 20 ? 0 : 1;
}
