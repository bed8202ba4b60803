"""The same requests to real Kafka and to us; all that the answers say is compared.

A case (`cases.Case`) is a name, an API, a version and a function that makes the request for a
target, whose topic ids it may ask for. `compare.differences` tells what two answers say
differently, but for what `compare.FREE` leaves free (ids, times, ports) and for the order of lists
that Kafka gives in no particular one. `live` sends cases to a running Kafka and a running node;
`over_image` asks Kafka's request handler and ours over one image, byte for byte. To add an API:
a file with its `CASES`, named in `test_live.py`.
"""
