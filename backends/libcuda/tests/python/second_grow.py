# cuda-python #2908: a second grow maps the first chunk over the whole old size.
from cuda.core import Device, VirtualMemoryResource

device = Device()
device.set_current()
resource = VirtualMemoryResource(device)
buffer = resource.allocate(2 << 20)
buffer = resource.modify_allocation(buffer, 4 << 20)
buffer = resource.modify_allocation(buffer, 6 << 20)
buffer.close()
