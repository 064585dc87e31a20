from multiprocessing import shared_memory
s = shared_memory.SharedMemory(create=True, size=16)
s.buf[:3] = b"abc"
t = shared_memory.SharedMemory(name=s.name)
print(bytes(t.buf[:3]))
t.close(); s.close(); s.unlink()
