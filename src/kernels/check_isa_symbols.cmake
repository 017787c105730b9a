# SPDX-License-Identifier: Apache-2.0
# Each ISA object defines exactly one external symbol. A second one - an inline function of some
# header, compiled with AVX-512 - could be the copy that the linker keeps for the whole program,
# and an older CPU would die in it.
#   cmake -DNM=nm -DOBJECTS="a.o;b.o" [-DOBJECT=regex -DSYMBOL=regex] -P check_isa_symbols.cmake
if(NOT DEFINED OBJECT)
  set(OBJECT "kernels_avx[0-9]+_")
  set(SYMBOL " T spud::kernels::with_avx")
endif()
set(checked 0)
foreach(object IN LISTS OBJECTS)
  if(NOT object MATCHES "${OBJECT}")
    continue()
  endif()
  execute_process(COMMAND ${NM} -C --defined-only --extern-only ${object}
                  OUTPUT_VARIABLE symbols OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" symbols "${symbols}")
  list(LENGTH symbols count)
  if(NOT count EQUAL 1 OR NOT symbols MATCHES "${SYMBOL}")
    list(JOIN symbols "\n  " text)
    message(FATAL_ERROR "${object} exports ${count} symbols, it may export one that matches ${SYMBOL}:\n  ${text}")
  endif()
  math(EXPR checked "${checked} + 1")
endforeach()
if(checked EQUAL 0)
  message(FATAL_ERROR "no ISA object among: ${OBJECTS}")
endif()
message(STATUS "${checked} ISA objects export one symbol each")
