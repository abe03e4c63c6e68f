/* starved_new.cc - what C++ allocates, DCMTK included, passes through here. */
#include <cerrno>
#include <cstdlib>
#include <new>

extern "C" bool starved_new(void); /* test_peek_memory.c: is this one to fail? */

void *
operator new(size_t size, const std::nothrow_t &) noexcept
{
    if (starved_new()) {
        errno = ENOMEM; /* as malloc leaves it */
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
