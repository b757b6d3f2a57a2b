# Writes OUT: each manual page of FOLDER as plain text, in the order in which a reader wants them. Without MANDOC there is none.
cmake_minimum_required(VERSION 3.22)
file(GLOB pages RELATIVE ${FOLDER} ${FOLDER}/*.1 ${FOLDER}/*.5 ${FOLDER}/*.7)
list(REMOVE_ITEM pages rlock.1 rlock-run.1)
list(PREPEND pages rlock.1 rlock-run.1)
set(code "#pragma once
#include <array>

namespace rlock::cli {

struct PageText {
  const char* name;  // rlock-run.1
  const char* text;
};

")
set(rows "")
set(count 0)
if(MANDOC)
  string(ASCII 8 backspace)  # mandoc prints bold letters twice, and underlines others
  foreach(page IN LISTS pages)
    execute_process(COMMAND ${MANDOC} -T ascii -O width=80 ${FOLDER}/${page} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE ".${backspace}" "" text "${text}")
    string(APPEND rows "    {\"${page}\", R\"manual(${text})manual\"},\n")
    math(EXPR count "${count} + 1")
  endforeach()
endif()
file(WRITE ${OUT} "${code}inline constexpr std::array<PageText, ${count}> kManual = {{\n${rows}}};\n\n}  // namespace rlock::cli\n")
