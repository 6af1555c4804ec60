# SPDX-License-Identifier: Apache-2.0
# Finds the Python whose packages are used: the one that builds the wheel, that of .venv, or the system's.
if(NOT Python_EXECUTABLE AND EXISTS "${POLYOP_ROOT}/.venv/bin/python")
  set(Python_EXECUTABLE "${POLYOP_ROOT}/.venv/bin/python")
endif()
find_package(Python REQUIRED COMPONENTS Interpreter)

# polyop_python_package(VARIABLE NAME): sets VARIABLE to the folder of a package, or to an empty text. While pip builds
# in an isolated environment, the target environment's packages are not on the path, but in the folders of sysconfig.
function(polyop_python_package variable name)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "
import importlib.util, pathlib, sysconfig
spec = importlib.util.find_spec('${name}')
found = [*spec.submodule_search_locations] if spec else []
found += [path for kind in ('platlib', 'purelib') if (path := pathlib.Path(sysconfig.get_path(kind), '${name}')).is_dir()]
print(*found[:1], end='')"
    OUTPUT_VARIABLE folder ERROR_QUIET)
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

# polyop_python_root(VARIABLE NAME): sets VARIABLE in the cache to the folder of a package, unless it has a value. An
# empty value is found anew, because the package may have been installed after the first configuration.
function(polyop_python_root variable name)
  polyop_python_package(found "${name}")
  if(NOT ${variable})
    set(${variable} "${found}" CACHE PATH "Folder of the Python package ${name}" FORCE)
  endif()
endfunction()
