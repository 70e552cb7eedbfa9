@echo off
rem Called by the launchers with the project's directory: makes sure an environment is there before they use it.
setlocal
set "READY="
if exist "%~1\.venv\Scripts\python.exe" if not exist "%~1\.venv\installed\core.unfinished" (
    fc /b "%~1\requirements\core.lock" "%~1\.venv\installed\core.lock" >nul 2>&1 && set "READY=1"
)
if defined READY exit /b 0
set "PYTHON=%HEADRACE_PYTHON%"
if not defined PYTHON for %%P in (python.exe python3.exe py.exe) do if not defined PYTHON (
    %%P -c "import sys; sys.exit(sys.version_info < (3, 11))" >nul 2>&1
    if not errorlevel 1 set "PYTHON=%%P"
)
if not defined PYTHON (
    echo Headrace needs Python 3.11 or newer, and no python on your PATH is one. 1>&2
    echo Install Python 3.11 or newer, or set HEADRACE_PYTHON to its path. 1>&2
    exit /b 1
)
set "PYTHONPATH=%~1\src"
"%PYTHON%" -P -m headrace.cli.bootstrap "%~1" .venv core "%HEADRACE_PYTHON%"
exit /b %ERRORLEVEL%
