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


def test_a_wait_ends_wherever_the_signal_interrupts_it():
    subprocess.run([sys.executable, "-c", WAITS], timeout=300, check=True)
