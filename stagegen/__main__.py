"""``python -m stagegen``: the same command without the installed script."""

from stagegen.cli import main

main()
