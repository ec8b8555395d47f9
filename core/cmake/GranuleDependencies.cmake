# Finds the packages that the chosen parts need; says what to install where one is missing.
find_package(Threads REQUIRED)
set(granule_missing)

if(NOT TARGET Boost::headers)
  find_package(Boost 1.65 QUIET)
  if(NOT Boost_FOUND)
    list(APPEND granule_missing libboost-dev)
  endif()
endif()

if(GRANULE_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    list(APPEND granule_missing libgtest-dev)
  endif()
  find_package(rapidcheck QUIET)
  if(NOT rapidcheck_FOUND)
    list(APPEND granule_missing librapidcheck-dev)
  endif()
endif()

if(GRANULE_BUILD_CLI)
  find_package(CLI11 QUIET)
  if(NOT CLI11_FOUND)
    list(APPEND granule_missing libcli11-dev)
  endif()
endif()
if(GRANULE_BUILD_CLI OR GRANULE_BUILD_TESTS)
  find_package(nlohmann_json QUIET)
  if(NOT nlohmann_json_FOUND)
    list(APPEND granule_missing nlohmann-json3-dev)
  endif()
endif()

if(granule_missing)
  list(REMOVE_DUPLICATES granule_missing)
  string(REPLACE ";" " " granule_missing "${granule_missing}")
  message(
    FATAL_ERROR
      "Packages are missing. On Debian or Ubuntu:\n"
      "  apt-get install ${granule_missing}\n"
      "Or leave parts out: -DGRANULE_BUILD_TESTS=OFF -DGRANULE_BUILD_CLI=OFF. "
      "The core needs only the headers of Boost.Intrusive.")
endif()
