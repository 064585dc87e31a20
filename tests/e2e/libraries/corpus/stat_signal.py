import numpy as np
from scipy.fft import rfft, rfftfreq
from scipy.signal import butter, filtfilt, find_peaks
t = np.arange(0, 1, 1 / 500)
wave = np.sin(2 * np.pi * 5 * t) + 0.3 * np.sin(2 * np.pi * 100 * t)
assert rfftfreq(500, 1 / 500)[np.argmax(np.abs(rfft(wave)))] == 5
smooth = filtfilt(*butter(4, 20, fs=500), wave)
assert len(find_peaks(smooth, height=0.5)[0]) == 5
