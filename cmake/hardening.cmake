# What makes a fault in the program, or a file laid in its way, harder to use. tools/check_hardening looks for all of it in what
# was built.

# Programs are loaded anywhere, and all that the loader fills in is read-only before main() begins. Static libraries are
# compiled as parts of programs: as parts of a shared library (-fPIC) their functions could not be inlined.
set(in_a_program "$<IN_LIST:$<TARGET_PROPERTY:TYPE>,EXECUTABLE;STATIC_LIBRARY;OBJECT_LIBRARY>")
add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,${in_a_program}>:-fPIE>")
add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>" -Wl,-z,relro,-z,now,-z,noexecstack)

# Buffers on the stack are guarded, and copies by functions of libc checked where the compiler knows how much there is room for.
# The latter needs an optimizer, and sanitizers check more themselves.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
if(NOT CMAKE_BUILD_TYPE STREQUAL Debug AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
endif()

# Libraries are looked for in the folders that they were linked from and where the system has them, from the start. CMake would
# fill up the path of a program that is not installed with colons, to have room for another; an empty entry is the folder that
# one happens to be in.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
