# For kernels: a checksum by a function of C, whose address they are given.

ctypedef unsigned int (*crc_function)(const unsigned char *, size_t) noexcept nogil


cdef inline unsigned int crc_by(
    long long function, const unsigned char *data, size_t size
) noexcept nogil:
    return (<crc_function><void *><size_t>function)(data, size)
