# Functions that every folder's CMakeLists uses: a library, a test program, and what all share.
include(GNUInstallDirs)

add_library(granule_build_flags INTERFACE)
target_compile_features(granule_build_flags INTERFACE cxx_std_20)
target_compile_options(
  granule_build_flags
  INTERFACE -Wall
            -Wextra
            -Wconversion
            -Wshadow
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            $<$<BOOL:${GRANULE_WARNINGS_AS_ERRORS}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # GCC 12 and 13 warn at -O2 of overlaps inside "literal" + std::string, which are none (PR 105651).
  target_compile_options(granule_build_flags INTERFACE -Wno-restrict)
endif()
if(GRANULE_SANITIZE)
  target_compile_options(granule_build_flags INTERFACE -fsanitize=${GRANULE_SANITIZE}
                                                       -fno-omit-frame-pointer)
  target_link_options(granule_build_flags INTERFACE -fsanitize=${GRANULE_SANITIZE})
  if(GRANULE_SANITIZE MATCHES "undefined")
    target_compile_options(granule_build_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()
if(GRANULE_COVERAGE AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "GRANULE_COVERAGE needs clang++: gcc counts the edges of exceptions as well")
endif()

# granule_library(NAME [INCLUDE DIR...] [SOURCES ...] [LINK target...] [PRIVATE_INCLUDE DIR...]
#                 [EXCLUDE regex] [COMPONENT name] [NO_INSTALL])
# Makes library granule_NAME with alias granule::NAME. All headers under the INCLUDE directories
# are its public ones and are installed, but those that match EXCLUDE. LINK targets are public
# dependencies. COMPONENT is what find_package(granule COMPONENTS ...) calls it (default: NAME).
function(granule_library name)
  cmake_parse_arguments(arg "NO_INSTALL" "EXCLUDE;COMPONENT" "INCLUDE;SOURCES;LINK;PRIVATE_INCLUDE" ${ARGN})
  set(target granule_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(granule::${name} ALIAS ${target})
  set_target_properties(
    ${target}
    PROPERTIES EXPORT_NAME ${name}
               POSITION_INDEPENDENT_CODE ON
               # Headers are most of the work: a dozen files compile in little more time than one.
               UNITY_BUILD ${GRANULE_UNITY}
               UNITY_BUILD_BATCH_SIZE 14
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               DEFINE_SYMBOL ""
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${arg_LINK}
                                  PRIVATE $<BUILD_INTERFACE:granule_build_flags>)
  target_include_directories(${target} PRIVATE ${arg_PRIVATE_INCLUDE})
  if(GRANULE_COVERAGE)
    if(name MATCHES "^(core|model|backend_api)$")
      target_compile_options(${target} PRIVATE -fprofile-instr-generate -fcoverage-mapping)
    endif()
    target_link_options(${target} INTERFACE -fprofile-instr-generate)
  endif()
  set(headers)
  set(bases)
  foreach(dir IN LISTS arg_INCLUDE)
    get_filename_component(dir ${dir} ABSOLUTE)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${dir}/*.hpp ${dir}/*.h ${dir}/*.def)
    if(arg_EXCLUDE)
      list(FILTER found EXCLUDE REGEX "${arg_EXCLUDE}")
    endif()
    list(APPEND headers ${found})
    list(APPEND bases ${dir})
  endforeach()
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${bases} FILES ${headers})
  if(NOT arg_NO_INSTALL)
    if(NOT arg_COMPONENT)
      set(arg_COMPONENT ${name})
    endif()
    if(arg_COMPONENT STREQUAL "testing")
      # A harness is used from source and makes no promise of a stable binary interface.
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default
                                                 VISIBILITY_INLINES_HIDDEN OFF)
    endif()
    set_property(GLOBAL APPEND PROPERTY GRANULE_COMPONENTS ${arg_COMPONENT})
    set_property(GLOBAL APPEND PROPERTY GRANULE_LIBRARIES_OF_${arg_COMPONENT} ${target})
  endif()
endfunction()

# granule_test(NAME SOURCES ... [LINK target...] [PRIVATE_INCLUDE DIR...] [LABELS ...]
#              [ARGS ...] [NO_CTEST])
# A GoogleTest program with gtest_main. It is one ctest entry, so that the cost of starting and of
# compiling headers is paid once a folder; --gtest_filter picks a test.
function(granule_test name)
  if(NOT GRANULE_BUILD_TESTS)
    return()
  endif()
  # Tests of internals need the symbols that a shared library hides.
  cmake_parse_arguments(arg "NO_CTEST" "" "SOURCES;LINK;PRIVATE_INCLUDE;LABELS;ARGS" ${ARGN})
  if(BUILD_SHARED_LIBS AND arg_PRIVATE_INCLUDE)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest GTest::gtest_main
                                        granule_build_flags)
  target_include_directories(${name} PRIVATE ${arg_PRIVATE_INCLUDE})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${GRANULE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  # The code of a test runs once: what counts is the time to compile it.
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  if(NOT arg_NO_CTEST)
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
  endif()
endfunction()
