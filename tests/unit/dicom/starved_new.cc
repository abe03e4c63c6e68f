/* starved_new.cc - replaces operator new, so that all C++ allocations, including DCMTK's, can fail. */
#include <cerrno>
#include <cstdlib>
#include <new>

extern "C" bool starved_new(void); /* in test_peek_memory.c: must this allocation fail? */

void *
operator new(size_t size, const std::nothrow_t &) noexcept
{
    if (starved_new()) {
        errno = ENOMEM; /* like malloc */
        return nullptr;
    }
    return std::malloc(size ? size : 1);
}

void *
operator new(size_t size)
{
    void *memory = operator new(size, std::nothrow);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

void *
operator new[](size_t size)
{
    return operator new(size);
}

void *
operator new[](size_t size, const std::nothrow_t &) noexcept
{
    return operator new(size, std::nothrow);
}

void
operator delete(void *memory) noexcept
{
    std::free(memory);
}

void
operator delete(void *memory, size_t) noexcept
{
    std::free(memory);
}

void
operator delete[](void *memory) noexcept
{
    std::free(memory);
}

void
operator delete[](void *memory, size_t) noexcept
{
    std::free(memory);
}

void
operator delete(void *memory, const std::nothrow_t &) noexcept
{
    std::free(memory);
}

void
operator delete[](void *memory, const std::nothrow_t &) noexcept
{
    std::free(memory);
}
