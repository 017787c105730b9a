// SPDX-License-Identifier: Apache-2.0
// Runs a function on the blocking pool and comes back to the coroutine's own thread. The coroutine
// waits for it whatever happens, so the function may use what the caller owns.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace spud::gateway::internal {

// Below this many bytes the hop costs more than the work.
inline constexpr std::size_t kInlineBytes = 8 << 10;

template <typename T, typename Function>
boost::asio::awaitable<T> call(Function function) {
  co_return function();
}

// `size`: bytes of the input that the work grows with. `T` must be default-constructible or a
// Result (Asio default-constructs it when the function throws).
template <typename T, typename Function>
boost::asio::awaitable<T> run_blocking(boost::asio::thread_pool& pool, std::size_t size,
                                       Function function) {
  if (size <= kInlineBytes) co_return function();
  co_return co_await boost::asio::co_spawn(pool, call<T>(std::move(function)),
                                           boost::asio::use_awaitable);
}

}  // namespace spud::gateway::internal
