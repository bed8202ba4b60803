"""What a controller decides: pure functions from an image and a request to records and an answer,
and the one task that carries them out."""
