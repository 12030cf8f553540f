"""Processes that wait for a signal to end."""

import subprocess
import sys

# Signals interrupt each part of a wait.
WAITS = """
import signal
from hpkit.signals import Signals
signals = Signals(signal.SIGALRM)
for number in range(20_000):
    signals.arrived = False
    signal.setitimer(signal.ITIMER_REAL, 1e-5 + number % 100 * 1e-6)
    while not signals.wait(1e-4):
        pass
"""

# The engine's signal often reaches a thread of gRPC.
ANOTHER_THREAD = """
import signal, threading, time
from hpkit.signals import Signals
signals = Signals(signal.SIGALRM)
thread = threading.Thread(target=time.sleep, args=(2,), daemon=True)
thread.start()
send = threading.Timer(0.2, signal.pthread_kill, (thread.ident, signal.SIGALRM))
send.start()
assert signals.wait(60)
"""


def test_a_signal_to_another_thread_ends_a_wait():
    subprocess.run([sys.executable, "-c", ANOTHER_THREAD], timeout=30, check=True)


def test_a_wait_ends_wherever_the_signal_interrupts_it():
    subprocess.run([sys.executable, "-c", WAITS], timeout=300, check=True)
