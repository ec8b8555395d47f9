# cuda-python #2344: each buffer that is closed keeps its physical memory.
from cuda.core import Device, VirtualMemoryResource

device = Device()
device.set_current()
resource = VirtualMemoryResource(device)
for size in range(1, 4):
    buffer = resource.allocate(size << 21)
    buffer.close()
