import os, sys
os.close(1)
print("nowhere")
