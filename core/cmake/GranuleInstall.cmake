# Installs the libraries by component, with a CMake package and pkg-config files. Everything is
# relocatable: no file holds an absolute path.
include(CMakePackageConfigHelpers)

set(granule_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/granule)
get_property(granule_components GLOBAL PROPERTY GRANULE_COMPONENTS)
list(REMOVE_DUPLICATES granule_components)

# What one component needs of the others.
set(granule_needs_backend_api)
set(granule_needs_core backend_api)
set(granule_needs_decorators backend_api)
set(granule_needs_model backend_api)
set(granule_needs_cuda backend_api decorators)
set(granule_needs_testing backend_api core decorators model)

foreach(component IN LISTS granule_components)
  get_property(libraries GLOBAL PROPERTY GRANULE_LIBRARIES_OF_${component})
  install(
    TARGETS ${libraries}
    EXPORT granule-${component}
    COMPONENT ${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT granule-${component} NAMESPACE granule:: DESTINATION ${granule_cmake_dir}
          FILE granule-${component}.cmake COMPONENT ${component})

  # pkg-config: granule-core.pc and so on.
  set(pc_name granule-${component})
  file(RELATIVE_PATH pc_up "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
  string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
  list(TRANSFORM granule_needs_${component} PREPEND granule- OUTPUT_VARIABLE pc_requires)
  string(REPLACE ";" ", " pc_requires "${pc_requires}")
  set(pc_libs)
  foreach(library IN LISTS libraries)
    get_target_property(type ${library} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      string(PREPEND pc_libs "-l${library} ")
    endif()
  endforeach()
  set(pc_private "-pthread")
  if(CMAKE_DL_LIBS)
    string(APPEND pc_private " -l${CMAKE_DL_LIBS}")
  endif()
  if(NOT BUILD_SHARED_LIBS)
    string(APPEND pc_libs "${pc_private}")
  endif()
  configure_file(${CMAKE_CURRENT_LIST_DIR}/granule.pc.in
                 ${PROJECT_BINARY_DIR}/pkgconfig/${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${pc_name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endforeach()

set(granule_needs_table)
foreach(component IN LISTS granule_components)
  string(APPEND granule_needs_table
         "set(_granule_needs_${component} ${granule_needs_${component}})\n")
endforeach()
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/granuleConfig.cmake.in ${PROJECT_BINARY_DIR}/granuleConfig.cmake
  INSTALL_DESTINATION ${granule_cmake_dir} NO_SET_AND_CHECK_MACRO
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/granuleConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/granuleConfig.cmake
              ${PROJECT_BINARY_DIR}/granuleConfigVersion.cmake
        DESTINATION ${granule_cmake_dir} COMPONENT backend_api)

# A foreign project against the install tree, static and shared.
if(GRANULE_BUILD_TESTS AND TARGET granule_core AND TARGET granule_model AND NOT GRANULE_SANITIZE
   AND NOT GRANULE_COVERAGE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" granule_type)
  foreach(shared OFF ON)
    set(test_name consumer_static)
    if(shared)
      set(test_name consumer_shared)
    endif()
    add_test(
      NAME ${test_name}
      COMMAND
        ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}
        -DWORK=${PROJECT_BINARY_DIR}/${test_name} -DSHARED=${shared} -DCXX=${CMAKE_CXX_COMPILER}
        -DTYPE=${CMAKE_BUILD_TYPE} -DLAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
        "-DFLAGS=${CMAKE_CXX_FLAGS}" "-DTYPE_FLAGS=${CMAKE_CXX_FLAGS_${granule_type}}" -P ${CMAKE_CURRENT_LIST_DIR}/consumer_test.cmake)
    set_tests_properties(${test_name} PROPERTIES LABELS "package;slow" TIMEOUT 1200)
  endforeach()
endif()
if(TARGET granule)
  install(TARGETS granule RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
endif()
