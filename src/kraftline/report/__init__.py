"""Tables of history as one self-contained page of pictures."""
