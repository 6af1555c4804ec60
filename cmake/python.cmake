# The Python whose packages are built against: the one that builds the wheel, .venv's, or the system's.
if(NOT Python_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python")
endif()
find_package(Python REQUIRED COMPONENTS Interpreter)

# polyop_python_package(VARIABLE NAME): the folder of a package, or nothing.
function(polyop_python_package variable name)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; s = u.find_spec('${name}'); print(s.submodule_search_locations[0] if s else '', end='')"
    OUTPUT_VARIABLE folder ERROR_QUIET)
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()
