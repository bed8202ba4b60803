"""`python -m kraftline` is the same as `kraftline`."""

from kraftline.cli.main import main

main()
