# cuda-python #2907: a buffer grown to a size that is no multiple of the granularity.
from cuda.core import Device, VirtualMemoryResource

device = Device()
device.set_current()
resource = VirtualMemoryResource(device)
buffer = resource.allocate(2 << 20)
buffer = resource.modify_allocation(buffer, 7 << 19)
buffer.close()
