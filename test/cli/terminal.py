#!/usr/bin/env python3
"""test/cli/terminal.py: runs a program in a pseudo-terminal and plays a script of input.

    terminal.py TRANSCRIPT STEP... -- PROGRAM ARGS...

Steps, in order: send:TEXT (Python escapes: \\r is Enter, \\x03 Ctrl-C, \\x04 Ctrl-D), wait:TEXT (until
it appears in new output), sleep:SECONDS, stop (suspends the program, waits until it is suspended,
then continues it), size:COLUMNS, touch:FILE (creates an empty file). Standard error also goes to the terminal, unless
$TERMINAL_STDERR names a file; likewise $TERMINAL_STDOUT. The raw output is written to
TRANSCRIPT. Returns the program's status (128 + signal), 125 when a wait took too long.
"""
import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time


def main():
    split = sys.argv.index("--")
    steps, command = sys.argv[2:split], sys.argv[split + 1:]
    child, fd = pty.fork()
    if child == 0:
        for number, name in ((1, "TERMINAL_STDOUT"), (2, "TERMINAL_STDERR")):
            if os.environ.get(name):
                os.dup2(os.open(os.environ[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execvp(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    output, seen = b"", 0
    status = None

    def read(timeout):
        nonlocal output
        if not select.select([fd], [], [], timeout)[0]:
            return True
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b""
        output += piece
        return bool(piece)

    try:
        for step in steps:
            verb, _, rest = step.partition(":")
            if verb == "send":
                os.write(fd, codecs.escape_decode(rest.encode())[0])
            elif verb == "sleep":
                end = time.monotonic() + float(rest)
                while time.monotonic() < end and read(0.05):
                    pass
            elif verb == "size":
                fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(rest), 0, 0))
            elif verb == "touch":
                open(rest, "w").close()
            elif verb == "stop":
                os.kill(child, signal.SIGSTOP)
                os.waitpid(child, os.WUNTRACED)
                os.kill(child, signal.SIGCONT)
            elif verb == "wait":
                end = time.monotonic() + 15
                want = codecs.escape_decode(rest.encode())[0]
                while want not in output[seen:]:
                    if time.monotonic() > end or not read(0.5):
                        sys.stderr.write(f"terminal: no {rest!r} in {output[seen:]!r}\n")
                        os.kill(child, signal.SIGKILL)
                        status = 125
                        return status
                seen = output.index(want, seen) + len(want)
        end = time.monotonic() + 15
        while read(0.2):
            if time.monotonic() > end:
                sys.stderr.write(f"terminal: it goes on: {output[seen:]!r}\n")
                os.kill(child, signal.SIGKILL)
                break
        _, code = os.waitpid(child, 0)
        status = os.waitstatus_to_exitcode(code)
        status = 128 - status if status < 0 else status
        return status
    finally:
        with open(sys.argv[1], "wb") as transcript:
            transcript.write(output)


sys.exit(main())
