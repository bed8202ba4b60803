# For kernels: functions of C, whose addresses they are given.

ctypedef unsigned int (*crc_function)(const unsigned char *, size_t) noexcept nogil
ctypedef size_t (*zstd_function)(
    void *, unsigned char *, size_t, const unsigned char *, size_t
) noexcept nogil


cdef inline unsigned int crc_by(
    long long function, const unsigned char *data, size_t size
) noexcept nogil:
    return (<crc_function><void *><size_t>function)(data, size)


cdef inline long long unzstd_by(
    long long function,
    long long context,
    unsigned char *out,
    size_t room,
    const unsigned char *data,
    size_t size,
) noexcept nogil:
    """How many bytes it wrote; below 0: why it could not."""
    return <long long>(<zstd_function><void *><size_t>function)(
        <void *><size_t>context, out, room, data, size
    )
