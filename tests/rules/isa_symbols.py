#!/usr/bin/env python3
"""No code compiled for one instruction set may be linked where another was meant: an object's shared (weak) functions must be
named after its instruction set. Usage: isa_symbols.py ISA OBJECT..."""
import subprocess
import sys


def foreign_functions(isa, objects):
    out = subprocess.run(["nm", "-C", "--defined-only", *objects], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        fields = line.split(maxsplit=2)
        if len(fields) == 3 and fields[1] in "WwVvu" and f"::{isa}::" not in fields[2]:
            yield fields[2]


def main():
    isa, objects = sys.argv[1], sys.argv[2:]
    foreign = list(foreign_functions(isa, objects))
    for name in foreign:
        print(f"compiled for {isa} and shared with every other file: {name}")
    sys.exit(1 if foreign else 0)


if __name__ == "__main__":
    main()
