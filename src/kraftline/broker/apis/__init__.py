"""One file to an API: its key, what it does, and the function `answer`."""
