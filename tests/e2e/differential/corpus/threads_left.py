import threading, time
def work():
    time.sleep(0.1)
    print("a thread that is not a daemon is waited for")
threading.Thread(target=work).start()
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
print("main ends")
