// SPDX-License-Identifier: Apache-2.0
// Asio and Beast compiled once, instead of in every file that includes them (see CMakeLists.txt).
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
