# Installs the build tree somewhere, moves the result, and lets a foreign project use it:
# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DSHARED=ON|OFF -DCXX=... -DTYPE=... [-DLAUNCHER=...]
#       [-DFLAGS=...] [-DTYPE_FLAGS=...] -P consumer_test.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "failed: ${command}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK}/first ${WORK}/prefix ${WORK}/build ${WORK}/build_testing)
string(TOUPPER "${TYPE}" type)
set(common -G Ninja -DCMAKE_BUILD_TYPE=${TYPE} -DCMAKE_CXX_COMPILER=${CXX}
           "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCMAKE_CXX_FLAGS_${type}=${TYPE_FLAGS}")
if(LAUNCHER)
  list(APPEND common -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
endif()

if(SHARED)
  # The shared libraries are built beside, from the same sources and flags: ccache has them.
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/shared ${common} -DBUILD_SHARED_LIBS=ON
      -DGRANULE_BUILD_TESTS=OFF -DGRANULE_BUILD_GPU_TESTS=OFF -DGRANULE_BUILD_CLI=OFF)
  run(${CMAKE_COMMAND} --build ${WORK}/shared --target granule_core granule_model)
  set(BUILD ${WORK}/shared)
endif()
set(components backend_api core model)
if(NOT SHARED)
  list(APPEND components decorators testing)
endif()
foreach(component ${components})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first --component ${component})
endforeach()
file(RENAME ${WORK}/first ${WORK}/prefix) # what is installed may be moved

run(${CMAKE_COMMAND} -S ${SOURCE}/proptests/tests/consumer -B ${WORK}/build ${common}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
message(STATUS "CMake package: ${out}")

if(NOT SHARED) # the harness is built as static libraries only
  run(${CMAKE_COMMAND} -S ${SOURCE}/proptests/tests/consumer_testing -B ${WORK}/build_testing
      ${common} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
  run(${CMAKE_COMMAND} --build ${WORK}/build_testing)
  run(${WORK}/build_testing/consumer)
  message(STATUS "component testing: ${out}")
endif()

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE pc ${WORK}/prefix/*/granule-core.pc)
  get_filename_component(pc_dir ${pc} DIRECTORY)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} ${pkg_config} --cflags --libs granule-core
      granule-model)
  separate_arguments(flags UNIX_COMMAND "${out}")
  separate_arguments(extra UNIX_COMMAND "${FLAGS}")
  get_filename_component(lib_dir ${pc_dir}/.. ABSOLUTE)
  run(${CXX} -std=c++20 ${extra} ${SOURCE}/proptests/tests/consumer/main.cpp -o
      ${WORK}/build/by_pkg_config ${flags} -Wl,-rpath,${lib_dir})
  run(${WORK}/build/by_pkg_config)
  message(STATUS "pkg-config: ${out}")
else()
  message(STATUS "pkg-config is not installed: left out")
endif()
