# SPDX-License-Identifier: Apache-2.0
# Settings of the Debian package, which tools/deb.sh builds with `cpack -G DEB`.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The maintainers of polyop")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Operators that ONNX lacks, for ONNX Runtime")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Operators under the node names of MMCV, MMDeploy, autoware and TensorRT's plugins:\n the library for ONNX Runtime, the CLI polyop, and the SDK for your own operators.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "graphviz, python3")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# The formulas belong to the Python package, which is installed from a wheel.
foreach(component IN ITEMS libraries Unspecified)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR}" "${PROJECT_NAME}" ${component} /)
endforeach()
include(CPack)
