# cmake --install BUILD --prefix PREFIX: the program, the recipes, and a package for other projects:
#
#   find_package(fedep REQUIRED)
#   target_link_libraries(mine PRIVATE fedep::sim)   # or message, round, data, model, …: the folders of fedep/
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fedep)
install(EXPORT fedep NAMESPACE fedep:: FILE fedepTargets.cmake DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fedepConfig.cmake.in ${PROJECT_BINARY_DIR}/fedepConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fedepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fedepConfig.cmake ${PROJECT_BINARY_DIR}/fedepConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/own_libraries.cmake
        DESTINATION ${package})

install(TARGETS fedep)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipe DESTINATION ${CMAKE_INSTALL_DATADIR}/fedep FILES_MATCHING PATTERN *.toml)
