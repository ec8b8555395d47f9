# The same with the pool resource, whose buffers give everything back; and streams and events.
from cuda.core import Device, DeviceMemoryResource

device = Device()
device.set_current()
stream = device.create_stream()
resource = DeviceMemoryResource(device)
for size in range(1, 4):
    buffer = resource.allocate(size << 21, stream=stream)
    buffer.fill(0x5A, stream=stream)
    event = stream.record()
    buffer.close(stream)
    event.sync()
stream.sync()
print(device.name, event.is_done)
