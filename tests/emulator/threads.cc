#include "tests/emulator/threads.hh"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <random>
#include <thread>
#include <vector>

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace emulator
{

namespace
{

enum {
    THREADS = 1024, /* max per block */
    WARPS = THREADS / WARP,
    STACK = 128 << 10,
    ALIGNED = 128,
};

enum class state { READY, AT_WARP, AT_BLOCK, ENDED };

[[noreturn]] void
give_up(const char *why)
{
    fprintf(stderr, "emulator: block %u,%u,%u thread %u,%u,%u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
            threadIdx.y, threadIdx.z, why);
    abort();
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

/* Runs one kernel after the other in a fiber. */
struct strand {
    boost::context::fiber fiber;
    uint3 index;
    enum state state;
    uint32_t mask; /* lanes that it waits for, AT_WARP */
    taken take;
    uint64_t result;                             /* received value */
    std::vector<struct copy> begun;              /* copies of the open group */
    std::deque<std::vector<struct copy>> groups; /* complete groups that it has not waited for */
};

struct warp {
    uint32_t lanes;   /* lanes of the warp */
    uint32_t ended;   /* lanes that have ended */
    uint32_t waiting; /* AT_WARP */
    uint32_t ready;
    struct brought brought;
};

/* Runs blocks, one at a time. */
class runner
{
  public:
    runner();
    void run(size_t shared_bytes, const std::function<void()> &kernel, pthread_barrier_t *grid);
    uint64_t meet_warp(uint32_t mask, uint64_t value, uint32_t source, taken take);
    int meet_block(bool predicate);

    struct strand &running()
    {
        return strands[at];
    }

    uint32_t lane() const
    {
        return at % WARP;
    }

    pthread_barrier_t *grid; /* set during a cooperative launch */

  private:
    void begin();
    void leave(enum state state);
    void go_on(uint32_t which);
    bool settle(struct warp &warp, uint32_t mask);
    void run_ready(struct warp &warp);
    void open_barrier();
    void drop_ended();

    uint32_t draw(uint32_t below)
    {
        return (uint32_t)(random() % below);
    }

    std::unique_ptr<struct strand[]> strands;
    struct warp warps[WARPS];
    uint32_t count, alive, at_block;
    int predicates, last_predicates;
    uint32_t at; /* index of the running strand */
    const std::function<void()> *kernel;
    boost::context::fiber caller;
    std::minstd_rand random;
};

thread_local runner *current;

unsigned
seed()
{
    const char *wanted = getenv("NOCTULE_EMULATOR_SEED");

    return wanted ? (unsigned)strtoul(wanted, nullptr, 10) : 1;
}

runner::runner() : grid(nullptr), strands(new struct strand[THREADS]), random(seed())
{
    const auto live = [this](boost::context::fiber &&from) {
        caller = std::move(from);
        for (;;) {
            (*kernel)();
            running().begun.clear();
            running().groups.clear();
            leave(state::ENDED);
        }
        return boost::context::fiber();
    };

    for (uint32_t i = 0; i < THREADS; i++)
        strands[i].fiber =
            boost::context::fiber(std::allocator_arg, boost::context::protected_fixedsize_stack(STACK), live);
}

/* Switches back to the scheduler, which tracks the state of each strand. */
void
runner::leave(enum state state)
{
    struct strand &own = strands[at];

    own.state = state;
    caller = std::move(caller).resume();
}

void
runner::go_on(uint32_t which)
{
    struct strand &strand = strands[which];

    at = which;
    threadIdx = strand.index;
    strand.fiber = std::move(strand.fiber).resume();
}

void
runner::begin()
{
    count = blockDim.x * blockDim.y * blockDim.z;
    if (count == 0 || count > THREADS)
        give_up("a block of so many threads cannot be");
    alive = count;
    at_block = 0;
    predicates = 0;
    for (uint32_t i = 0; i < count; i++) {
        strands[i].index = make_uint3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
        strands[i].state = state::READY;
    }
    for (uint32_t w = 0; w * WARP < count; w++) {
        uint32_t lanes = std::min<uint32_t>(count - w * WARP, WARP);
        warps[w].lanes = warps[w].ready = (uint32_t)((1ull << lanes) - 1);
        warps[w].ended = warps[w].waiting = 0;
    }
}

/* Gives all lanes of the mask their results, if each has arrived or ended. */
bool
runner::settle(struct warp &warp, uint32_t mask)
{
    const uint32_t here = mask & ~warp.ended;
    struct strand *lanes = &strands[(size_t)(&warp - warps) * WARP];
    taken take = nullptr;

    if (here & ~warp.waiting)
        return false;
    for (uint32_t rest = here; rest; rest &= rest - 1) {
        struct strand &strand = lanes[__builtin_ctz(rest)];
        if (strand.mask != mask || (take && strand.take != take))
            return false;
        take = strand.take;
    }
    for (uint32_t rest = here; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        lanes[lane].result = take ? take(warp.brought, here, lane) : 0;
        lanes[lane].state = state::READY;
    }
    warp.waiting &= ~here;
    warp.ready |= here;
    return true;
}

uint64_t
runner::meet_warp(uint32_t mask, uint64_t value, uint32_t source, taken take)
{
    struct warp &warp = warps[at / WARP];
    struct strand &own = strands[at];

    if (!(mask >> lane() & 1) || (mask & ~warp.lanes))
        give_up("the mask names lanes that there are not, or not the caller");
    warp.brought.value[lane()] = value;
    warp.brought.source[lane()] = source;
    own.mask = mask;
    own.take = take;
    warp.waiting |= 1u << lane();
    warp.ready &= ~(1u << lane());
    if (!settle(warp, mask))
        leave(state::AT_WARP);
    return own.result;
}

int
runner::meet_block(bool predicate)
{
    predicates += predicate;
    at_block++;
    warps[at / WARP].ready &= ~(1u << lane());
    leave(state::AT_BLOCK);
    return last_predicates;
}

/* Runs each ready lane until it waits, in random order. */
void
runner::run_ready(struct warp &warp)
{
    const uint32_t first = (uint32_t)(&warp - warps) * WARP;

    while (warp.ready) {
        uint32_t turned = draw(WARP), from_here = warp.ready >> turned ? warp.ready >> turned << turned : warp.ready,
                 lane = (uint32_t)__builtin_ctz(from_here);
        go_on(first + lane);
        if (strands[first + lane].state == state::ENDED) {
            warp.ready &= ~(1u << lane);
            warp.ended |= 1u << lane;
            alive--;
        }
    }
}

void
runner::open_barrier()
{
    for (uint32_t i = 0; i < count; i++)
        if (strands[i].state == state::AT_BLOCK) {
            strands[i].state = state::READY;
            warps[i / WARP].ready |= 1u << i % WARP;
        }
    last_predicates = predicates;
    predicates = 0;
    at_block = 0;
}

void
runner::drop_ended()
{
    bool is_settled = false;

    for (uint32_t w = 0; w * WARP < count; w++)
        for (uint32_t rest = warps[w].waiting; rest; rest &= rest - 1)
            is_settled |= settle(warps[w], strands[w * WARP + (uint32_t)__builtin_ctz(rest)].mask);
    if (!is_settled)
        give_up("waits for a lane that does not come");
}

void
runner::run(size_t shared_bytes, const std::function<void()> &work, pthread_barrier_t *of_grid)
{
    /* Allocate exactly the requested size, so that a sanitizer detects accesses beyond it. */
    void *own = nullptr;

    if (posix_memalign(&own, ALIGNED, shared_bytes))
        give_up("there is no memory for a block's shared memory");
    memset(own, UNDEFINED, shared_bytes);
    block_shared = (unsigned char *)own;
    kernel = &work;
    grid = of_grid;
    begin();
    while (alive) {
        const uint32_t number = (count + WARP - 1) / WARP, turned = draw(number);

        for (uint32_t w = 0; w < number; w++)
            run_ready(warps[(w + turned) % number]);
        if (alive && at_block == alive)
            open_barrier();
        else if (alive)
            drop_ended();
    }
    free(own);
}

/* Keeps idle runners, because their stacks take long to create. */
std::mutex idle_mutex;
auto &idle = *new std::vector<std::unique_ptr<runner>>; /* never destroyed: its fibers wait in kernels' frames */

std::unique_ptr<runner>
take_runner()
{
    std::lock_guard<std::mutex> held(idle_mutex);

    if (idle.empty())
        return std::make_unique<runner>();
    std::unique_ptr<runner> last = std::move(idle.back());
    idle.pop_back();
    return last;
}

void
give_back(std::unique_ptr<runner> done)
{
    std::lock_guard<std::mutex> held(idle_mutex);

    idle.push_back(std::move(done));
}

void
run_block(runner *by, uint64_t number, dim3 grid, dim3 size, size_t shared_bytes, const std::function<void()> &kernel,
          pthread_barrier_t *of_grid)
{
    blockIdx = make_uint3((unsigned)(number % grid.x), (unsigned)(number / grid.x % grid.y),
                          (unsigned)(number / grid.x / grid.y));
    blockDim = size;
    gridDim = grid;
    current = by;
    by->run(shared_bytes, kernel, of_grid);
    current = nullptr;
}

} /* namespace */

thread_local unsigned char *block_shared;

uint64_t
meet_warp(uint32_t mask, uint64_t value, uint32_t source, taken take)
{
    return current->meet_warp(mask, value, source, take);
}

int
meet_block(bool predicate)
{
    return current->meet_block(predicate);
}

void
meet_grid()
{
    if (!current->grid)
        give_up("a grid that was not launched cooperatively cannot meet");
    current->meet_block(false);
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
        pthread_barrier_wait(current->grid);
    current->meet_block(false);
}

void
copy_later(void *to, const void *from, size_t bytes)
{
    current->running().begun.push_back({to, from, bytes});
}

void
end_group()
{
    struct strand &own = current->running();

    own.groups.push_back(std::move(own.begun));
    own.begun.clear();
}

void
wait_for_groups(size_t pending)
{
    struct strand &own = current->running();

    for (; own.groups.size() > pending; own.groups.pop_front())
        for (const struct copy &copy : own.groups.front())
            if (copy.from)
                memcpy(copy.to, copy.from, copy.bytes);
            else
                memset(copy.to, 0, copy.bytes);
}

uint32_t
lane()
{
    return current->lane();
}

void
run_grid(dim3 grid, dim3 size, size_t shared_bytes, bool is_cooperative, const std::function<void()> &kernel)
{
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;

    if (shared_bytes > SHARED)
        give_up("so much shared memory there is not");
    if (!is_cooperative) {
        std::unique_ptr<runner> by = take_runner();
        for (uint64_t i = 0; i < blocks; i++)
            run_block(by.get(), i, grid, size, shared_bytes, kernel, nullptr);
        give_back(std::move(by));
        return;
    }
    pthread_barrier_t barrier;
    std::vector<std::thread> threads;
    pthread_barrier_init(&barrier, nullptr, (unsigned)blocks);
    for (uint64_t i = 0; i < blocks; i++)
        threads.emplace_back([&, i] {
            std::unique_ptr<runner> by = take_runner();
            run_block(by.get(), i, grid, size, shared_bytes, kernel, &barrier);
            give_back(std::move(by));
        });
    for (std::thread &each : threads)
        each.join();
    pthread_barrier_destroy(&barrier);
}

} /* namespace emulator */
