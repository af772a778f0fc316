# Writes a C++ source with the bytes of some files, each behind a function named after it: report.css -> report_css().
#
#   cmake -D "FILES=a/report.html;a/report.css" -D HEADER=fedep/page/report/page_files.h -D OUT=page_files.cpp -P embed.cmake

set(text "// Made by cmake/embed.cmake; changes belong into the files it was made of.\n#include \"${HEADER}\"\n\nnamespace fedep {\n")
foreach(file IN LISTS FILES)
  cmake_path(GET file FILENAME name)
  string(MAKE_C_IDENTIFIER "${name}" name)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REPEAT "0x..," 16 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  string(APPEND text "\nstd::string_view ${name}() {\n  static constexpr unsigned char kBytes[] = {\n${bytes}};\n"
                     "  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};\n}\n")
endforeach()
string(APPEND text "\n}  // namespace fedep\n")
file(WRITE "${OUT}" "${text}")
